// The numbers of a step as tensors without dimensions, in float64 on the device of the parameters.
// Nothing here reads one: no item(), no branch on a value, no copy to the host but in read().
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "step_numbers.h"

namespace treadle::engine {
namespace {

class DeviceNumbers final : public StepNumbers {
 public:
  explicit DeviceNumbers(const StepNumbersSetup& setup)
      : setup_(setup),
        record_(setup.objective),
        float64_(setup.arena.parameters().options().dtype(at::kDouble)),
        terms_(static_cast<std::int64_t>(setup.objective.terms().size())),
        zero_(at::zeros({}, float64_)) {
    const at::NoGradGuard no_gradients;
    totals_ = at::zeros({2 * terms_ + 1}, float64_);
    batch_ = at::zeros({2 * terms_ + 1}, float64_);
    counters_ = at::zeros({kCounters}, float64_);
    step_.learning_rate = at::zeros({}, float64_);
    step_.skip = at::zeros({}, float64_.dtype(at::kBool));
  }

  bool finish(std::span<const ShardLoss> shards, std::int64_t step, double rate) override {
    const at::NoGradGuard no_gradients;
    is_read_ = false;
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
      batch_auxiliary_ = auxiliary;
    }

    const Timeline::Span span(setup_.timeline, Phase::kUpdate);
    const at::Tensor weight = now[terms_];
    const at::Tensor scale = clip(1 / weight);
    const at::Tensor learns = weight.ne(0);
    const at::Tensor is_finite =
        loss_is_finite.logical_and(scale.isfinite().logical_or(learns.logical_not()));
    note_skip(is_finite, step);
    step_.learning_rate.fill_(rate);
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
    std::vector<at::Tensor> parts{totals_, counters_, batch_};
    for (const std::vector<Auxiliary>* all : {&totals_of_auxiliary_, &batch_auxiliary_}) {
      for (const Auxiliary& one : *all)
        parts.push_back(one.sum.view({1}));
    }
    const at::Tensor here = at::cat(parts).cpu();  // the one wait
    const double* next = here.data_ptr<double>();
    const auto take = [&](std::int64_t count) {
      const std::span<const double> taken(next, static_cast<std::size_t>(count));
      next += count;
      return taken;
    };
    const auto totals = take(2 * terms_ + 1);
    const auto counters = take(kCounters);
    const auto batch = take(2 * terms_ + 1);
    record_.totals.set(totals, named(totals_of_auxiliary_, take));
    record_.batch.set(batch, named(batch_auxiliary_, take));
    record_.skipped = static_cast<std::int64_t>(counters[kSkipped]);
    record_.skipped_in_a_row = static_cast<std::int64_t>(counters[kSkippedInARow]);
    record_.diverged_at = static_cast<std::int64_t>(counters[kDivergedAt]);
    record_.gradient_norm = counters[kNorm];
    record_.sum_of_norms = counters[kSumOfNorms];
    record_.norms = static_cast<std::int64_t>(counters[kNorms]);
    return record_;
  }

  bool is_read_at_once() const override { return false; }
  void measure(TrainingStep::Measured measured) override { measured_ = measured; }
  void tolerate(std::int64_t most_in_a_row) override { tolerated_ = most_in_a_row; }
  const at::Tensor& skip() const override { return step_.skip; }

  void clear() override {
    const at::NoGradGuard no_gradients;
    totals_.zero_();
    batch_.zero_();
    totals_of_auxiliary_.clear();
    batch_auxiliary_.clear();
    for (const Counter which : {kSkipped, kNorm, kSumOfNorms, kNorms})
      counter(which).zero_();
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
    totals_of_auxiliary_.clear();
    for (const auto& [name, sum] : record.totals.auxiliary_sums())
      totals_of_auxiliary_.push_back({name, at::full({}, sum, float64_)});
    std::vector<double> counters(kCounters, 0);
    counters[kSkipped] = static_cast<double>(record.skipped);
    counters[kSkippedInARow] = static_cast<double>(record.skipped_in_a_row);
    counters[kDivergedAt] = static_cast<double>(record.diverged_at);
    counters[kNorm] = record.gradient_norm;
    counters[kSumOfNorms] = record.sum_of_norms;
    counters[kNorms] = static_cast<double>(record.norms);
    send(counters_, counters);
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
    kCounters
  };

  /// A term that the model added, by name: float64 [].
  struct Auxiliary {
    std::string name;
    at::Tensor sum;
  };

  at::Tensor counter(Counter which) const { return counters_[which]; }

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
      for (const BatchLoss::Auxiliary& one : shard.loss.auxiliary)
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
      return at::linalg_vector_norm(gradients, 2).to(at::kDouble).reshape({}) * scale;
    };
    if (measured_.gradient_norm)
      measure_norm(norm());
    if (clipping.value > 0) {
      const at::Tensor bound = (clipping.value / scale).to(gradients.scalar_type());
      at::Tensor(gradients).clamp_(-bound, bound);
    }
    if (clipping.norm == 0) {
      const at::Tensor sum = gradients.sum().to(at::kDouble);
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

  void note_skip(const at::Tensor& is_finite, std::int64_t step) {
    const at::Tensor skipped = is_finite.logical_not().to(at::kDouble);
    counter(kSkipped).add_(skipped);
    const at::Tensor in_a_row = (counter(kSkippedInARow) + 1) * skipped;
    counter(kSkippedInARow).copy_(in_a_row);
    const at::Tensor diverges =
        in_a_row.gt(static_cast<double>(tolerated_)).logical_and(counter(kDivergedAt).eq(0));
    counter(kDivergedAt).add_(diverges.to(at::kDouble) * static_cast<double>(step));
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
  at::Tensor totals_;    // [2 terms + 1]: sums, weights, rows
  at::Tensor batch_;     // the same of the last step
  at::Tensor counters_;  // [kCounters]
  std::vector<Auxiliary> totals_of_auxiliary_;
  std::vector<Auxiliary> batch_auxiliary_;
  StepTensors step_;
};

}  // namespace

std::unique_ptr<StepNumbers> numbers_on_device(const StepNumbersSetup& setup) {
  return std::make_unique<DeviceNumbers>(setup);
}

}  // namespace treadle::engine
