// The numbers of a step as tensors without dimensions, in float64 on the device of the parameters.
// Nothing here reads one: no item(), no branch on a value, no copy to the host but in read().
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/engine/device_traffic.h>

#include "step_numbers.h"

namespace treadle::engine {
namespace {

class DeviceNumbers final : public StepNumbers {
 public:
  explicit DeviceNumbers(const StepNumbersSetup& setup)
      : setup_(setup),
        record_(setup.totals),
        float64_(setup.arena.parameters().options().dtype(at::kDouble)),
        terms_(static_cast<std::int64_t>(setup.totals.term_count())),
        zero_(at::zeros({}, float64_)),
        list_(at::arange(StepRecord::kMostListed, float64_)) {
    const at::NoGradGuard no_gradients;
    totals_ = at::zeros({2 * terms_ + 1}, float64_);
    batch_ = at::zeros({2 * terms_ + 1}, float64_);
    counters_ = at::zeros({kCounters}, float64_);
    counter(kLossScale).fill_(LossScale::kFirst);
    skipped_at_ = at::zeros({StepRecord::kMostListed}, float64_);
    step_.learning_rate = at::zeros({}, float64_);
    number_ = at::zeros({}, float64_);
    step_.skip = at::zeros({}, float64_.dtype(at::kBool));
    tolerate(0);
  }

  void begin(std::int64_t step, double rate) override {
    const at::NoGradGuard no_gradients;
    is_read_ = false;
    number_.fill_(static_cast<double>(step));
    step_.learning_rate.fill_(rate);
  }

  at::Tensor scale_loss(std::int64_t positions) override {
    const at::NoGradGuard no_gradients;
    factor_ = counter(kLossScale) / LossScale::divisor(positions);
    return factor_;
  }

  bool finish(std::span<const ShardLoss> shards) override {
    const at::NoGradGuard no_gradients;
    const at::Tensor now = sums_of(shards);
    const std::vector<Auxiliary> auxiliary = auxiliary_of(shards);
    at::Tensor loss_is_finite = now.isfinite().all();
    for (const Auxiliary& one : auxiliary)
      loss_is_finite = loss_is_finite.logical_and(one.sum.isfinite());
    const auto add = [&](at::Tensor& total, const at::Tensor& more) {
      total.add_(at::where(loss_is_finite, more, zero_));
    };
    add(totals_, now);
    for (const Auxiliary& one : auxiliary)
      add(total_of(totals_of_auxiliary_, one.name), one.sum);
    if (measured_.batch_loss) {
      batch_.copy_(now);
      clear(batch_auxiliary_);
      for (const Auxiliary& one : auxiliary)
        total_of(batch_auxiliary_, one.name).copy_(one.sum);
    }

    const Timeline::Span span(setup_.timeline, Phase::kUpdate);
    const at::Tensor weight = now[terms_];
    const at::Tensor scale = clip(1 / (factor_.defined() ? weight * factor_ : weight));
    const at::Tensor learns = weight.ne(0);
    const at::Tensor is_finite =
        loss_is_finite.logical_and(scale.isfinite().logical_or(learns.logical_not()));
    note_skip(is_finite);
    if (setup_.scales_loss)
      update_loss_scale(is_finite, learns);
    step_.gradient_scale = scale;
    step_.skip.copy_(
        is_finite.logical_and(learns).logical_and(counter(kDivergedAt).eq(0)).logical_not());
    setup_.update.update(step_);
    return true;
  }

  const StepRecord& read() override {
    if (std::exchange(is_read_, true))
      return record_;
    const at::NoGradGuard no_gradients;
    std::vector<at::Tensor> parts{totals_, counters_, batch_, skipped_at_};
    for (const std::vector<Auxiliary>* all : {&totals_of_auxiliary_, &batch_auxiliary_}) {
      for (const Auxiliary& one : *all)
        parts.push_back(one.sum.view({1}));
    }
    const at::Tensor here = [&] {
      const Waiting waiting(setup_.timeline, totals_.device());  // the one wait
      return waiting.fetched(at::cat(parts));
    }();
    const double* next = here.data_ptr<double>();
    const auto take = [&](std::int64_t count) {
      const std::span<const double> taken(next, static_cast<std::size_t>(count));
      next += count;
      return taken;
    };
    const auto totals = take(2 * terms_ + 1);
    const auto counters = take(kCounters);
    const auto batch = take(2 * terms_ + 1);
    const auto skipped_at = take(StepRecord::kMostListed);
    record_.totals.set(totals, named(totals_of_auxiliary_, take));
    record_.batch.set(batch, named(batch_auxiliary_, take));
    record_.skipped = static_cast<std::int64_t>(counters[kSkipped]);
    const auto listed = std::min(record_.skipped, StepRecord::kMostListed);
    record_.skipped_at.assign(skipped_at.begin(), skipped_at.begin() + listed);
    record_.loss_scale = {counters[kLossScale], static_cast<std::int64_t>(counters[kGoodSteps])};
    record_.skipped_in_a_row = static_cast<std::int64_t>(counters[kSkippedInARow]);
    record_.diverged_at = static_cast<std::int64_t>(counters[kDivergedAt]);
    record_.gradient_norm = counters[kNorm];
    record_.sum_of_norms = counters[kSumOfNorms];
    record_.norms = static_cast<std::int64_t>(counters[kNorms]);
    return record_;
  }

  bool is_read_at_once() const override { return false; }
  void measure(TrainingStep::Measured measured) override { measured_ = measured; }
  void tolerate(std::int64_t most_in_a_row) override {
    tolerated_ = tolerated_skips(setup_, most_in_a_row);
  }
  const at::Tensor& skip() const override { return step_.skip; }
  std::vector<std::pair<std::string, at::Tensor>> memory() const override {
    std::vector<std::pair<std::string, at::Tensor>> all{{"the sums of the losses", totals_},
                                                        {"the loss of the batch", batch_},
                                                        {"the counts of steps", counters_},
                                                        {"the skipped steps", skipped_at_},
                                                        {"the decision to skip", step_.skip}};
    for (const std::vector<Auxiliary>* list : {&totals_of_auxiliary_, &batch_auxiliary_}) {
      for (const Auxiliary& one : *list)
        all.emplace_back("the loss term \"" + one.name + "\"", one.sum);
    }
    return all;
  }

  void clear() override {
    const at::NoGradGuard no_gradients;
    totals_.zero_();
    batch_.zero_();
    clear(totals_of_auxiliary_);
    clear(batch_auxiliary_);
    for (const Counter which : {kSkipped, kNorm, kSumOfNorms, kNorms})
      counter(which).zero_();
    skipped_at_.zero_();
    is_read_ = false;
  }

  void set(const StepRecord& record) override {
    const at::NoGradGuard no_gradients;
    const auto send = [&](const at::Tensor& into, const std::vector<double>& numbers) {
      const at::Tensor here = at::empty({static_cast<std::int64_t>(numbers.size())}, at::kDouble);
      std::copy(numbers.begin(), numbers.end(), here.data_ptr<double>());
      into.copy_(here);
    };
    send(totals_, record.totals.numbers());
    clear(totals_of_auxiliary_);
    for (const auto& [name, sum] : record.totals.auxiliary_sums())
      total_of(totals_of_auxiliary_, name).fill_(sum);
    std::vector<double> counters(kCounters, 0);
    counters[kSkipped] = static_cast<double>(record.skipped);
    counters[kSkippedInARow] = static_cast<double>(record.skipped_in_a_row);
    counters[kDivergedAt] = static_cast<double>(record.diverged_at);
    counters[kNorm] = record.gradient_norm;
    counters[kSumOfNorms] = record.sum_of_norms;
    counters[kNorms] = static_cast<double>(record.norms);
    counters[kLossScale] = record.loss_scale.scale;
    counters[kGoodSteps] = static_cast<double>(record.loss_scale.good_steps);
    send(counters_, counters);
    std::vector<double> skipped_at(record.skipped_at.begin(), record.skipped_at.end());
    skipped_at.resize(static_cast<std::size_t>(StepRecord::kMostListed), 0);
    send(skipped_at_, skipped_at);
    is_read_ = false;
  }

 private:
  enum Counter : std::int64_t {
    kSkipped,
    kSkippedInARow,
    kDivergedAt,
    kNorm,
    kSumOfNorms,
    kNorms,
    kLossScale,
    kGoodSteps,
    kCounters
  };

  /// A term that the model added, by name: float64 [].
  struct Auxiliary {
    std::string name;
    at::Tensor sum;
  };

  at::Tensor counter(Counter which) const { return counters_[which]; }

  /// The tensors stay: recorded work adds to them.
  static void clear(std::vector<Auxiliary>& all) {
    for (Auxiliary& one : all)
      one.sum.zero_();
  }

  /// Sums of all terms, their weights, and the number of rows.
  at::Tensor sums_of(std::span<const ShardLoss> shards) {
    at::Tensor total;
    for (const ShardLoss& shard : shards) {
      if (shard.rows == 0)
        continue;
      std::vector<at::Tensor> numbers;
      for (const BatchLoss::Term& term : shard.loss.terms)
        numbers.push_back(term.sum.to(at::kDouble).reshape({}));
      for (const BatchLoss::Term& term : shard.loss.terms) {
        numbers.push_back(term.weight.defined() ? term.weight.to(float64_).reshape({})
                                                : at::full({}, term.count, float64_));
      }
      numbers.push_back(at::full({}, static_cast<double>(shard.rows), float64_));
      const at::Tensor its = at::stack(numbers);
      total = total.defined() ? total + its : its;
    }
    return total.defined() ? total : at::zeros({2 * terms_ + 1}, float64_);
  }

  static at::Tensor& total_of(std::vector<Auxiliary>& all, const std::string& name,
                              const at::Tensor& zero) {
    const auto known = std::find_if(all.begin(), all.end(),
                                    [&](const Auxiliary& one) { return one.name == name; });
    if (known != all.end())
      return known->sum;
    return all.emplace_back(Auxiliary{name, zero.clone()}).sum;
  }
  at::Tensor& total_of(std::vector<Auxiliary>& all, const std::string& name) {
    return total_of(all, name, zero_);
  }

  std::vector<Auxiliary> auxiliary_of(std::span<const ShardLoss> shards) {
    std::vector<Auxiliary> sums;
    for (const ShardLoss& shard : shards) {
      if (shard.rows == 0)
        continue;
      for (const AuxiliaryLoss& one : shard.loss.auxiliary)
        total_of(sums, one.name).add_(one.sum.to(at::kDouble).reshape({}));
    }
    return sums;
  }

  /// Applies both bounds; the factor that is left for the optimizer to apply. Not finite when a
  /// gradient is not.
  at::Tensor clip(const at::Tensor& scale) {
    const at::Tensor& gradients = setup_.arena.gradients();
    const Clipping& clipping = setup_.clipping;
    const auto norm = [&] {
      // In float64, which has room for the squares.
      return at::linalg_vector_norm(gradients, 2, {}, false, at::kDouble).reshape({}) * scale;
    };
    if (measured_.gradient_norm)
      measure_norm(norm());
    if (clipping.value > 0) {
      const at::Tensor bound = (clipping.value / scale).to(gradients.scalar_type());
      at::Tensor(gradients).clamp_(-bound, bound);
    }
    if (clipping.norm == 0) {
      // A sum is finite only where all of them are; in float64 it does not overflow.
      const at::Tensor sum = gradients.sum(at::kDouble);
      return at::where(sum.isfinite(), scale, at::full({}, NAN, float64_));
    }
    const at::Tensor clipped = norm();
    const at::Tensor bounded =
        at::where(clipped.gt(clipping.norm), scale * (clipping.norm / clipped), scale);
    return at::where(clipped.isfinite(), bounded, clipped);
  }

  void measure_norm(const at::Tensor& norm) {
    counter(kNorm).copy_(norm);
    const at::Tensor is_finite = norm.isfinite();
    counter(kSumOfNorms).add_(at::where(is_finite, norm, zero_));
    counter(kNorms).add_(is_finite.to(at::kDouble));
  }

  void note_skip(const at::Tensor& is_finite) {
    const at::Tensor skipped = is_finite.logical_not().to(at::kDouble);
    if (tolerated_ > 0) {  // otherwise diverged_at is the one
      skipped_at_.add_(list_.eq(counter(kSkipped)).to(at::kDouble) * skipped * number_);
    }
    counter(kSkipped).add_(skipped);
    const at::Tensor in_a_row = (counter(kSkippedInARow) + 1) * skipped;
    counter(kSkippedInARow).copy_(in_a_row);
    const at::Tensor diverges =
        in_a_row.gt(static_cast<double>(tolerated_)).logical_and(counter(kDivergedAt).eq(0));
    counter(kDivergedAt).add_(diverges.to(at::kDouble) * number_);
  }

  /// LossScale::update()
  void update_loss_scale(const at::Tensor& is_finite, const at::Tensor& learns) {
    const at::Tensor scale = counter(kLossScale);
    const at::Tensor good = (counter(kGoodSteps) + learns.to(at::kDouble)) * is_finite;
    const at::Tensor is_full = good.ge(static_cast<double>(LossScale::kInterval));
    const at::Tensor grown = scale * LossScale::kGrowth;
    const at::Tensor after =
        at::where(is_full.logical_and(grown.le(LossScale::kLargest)), grown, scale);
    counter(kLossScale).copy_(at::where(is_finite, after, scale * LossScale::kBackoff));
    counter(kGoodSteps).copy_(at::where(is_full, zero_, good));
  }

  template <typename Take>
  static std::vector<std::pair<std::string, double>> named(const std::vector<Auxiliary>& all,
                                                           const Take& take) {
    std::vector<std::pair<std::string, double>> numbers;
    for (const Auxiliary& one : all)
      numbers.emplace_back(one.name, take(1).front());
    return numbers;
  }

  const StepNumbersSetup setup_;
  StepRecord record_;
  bool is_read_ = true;
  TrainingStep::Measured measured_;
  std::int64_t tolerated_ = 0;

  const at::TensorOptions float64_;
  const std::int64_t terms_;
  const at::Tensor zero_;
  const at::Tensor list_;  // [kMostListed]: 0, 1, …
  at::Tensor totals_;      // [2 terms + 1]: sums, weights, rows
  at::Tensor batch_;       // the same of the last step
  at::Tensor counters_;    // [kCounters]
  at::Tensor skipped_at_;  // [kMostListed]: the first steps that were skipped, 0 behind them
  at::Tensor number_;      // float64 []: of the step
  at::Tensor factor_;      // of the step's loss; undefined: 1
  std::vector<Auxiliary> totals_of_auxiliary_;
  std::vector<Auxiliary> batch_auxiliary_;
  StepTensors step_;
};

}  // namespace

std::unique_ptr<StepNumbers> numbers_on_device(const StepNumbersSetup& setup) {
  return std::make_unique<DeviceNumbers>(setup);
}

}  // namespace treadle::engine
