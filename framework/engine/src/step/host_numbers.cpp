#include <cmath>

#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>

#include <treadle/tensor/euclidean_norm.h>

#include "step_numbers.h"

namespace treadle::engine {

StepNumbers::~StepNumbers() = default;

namespace {

class HostNumbers final : public StepNumbers {
 public:
  explicit HostNumbers(const StepNumbersSetup& setup)
      : setup_(setup), record_(setup.totals), now_(setup.totals) {
    tolerate(0);
  }

  at::Tensor scale_loss(std::int64_t positions) override {
    factor_ = record_.loss_scale.scale / LossScale::divisor(positions);
    return at::full({}, factor_, at::kDouble);
  }

  void begin(std::int64_t step, double rate) override {
    step_ = step;
    rate_ = rate;
  }

  bool finish(std::span<const ShardLoss> shards) override {
    const Outcome outcome = attempt(shards);
    record_.skipped_in_a_row = outcome == Outcome::kSkipped ? record_.skipped_in_a_row + 1 : 0;
    if (outcome == Outcome::kSkipped)
      record_.note_skipped(step_);
    if (setup_.scales_loss && outcome != Outcome::kNothingToLearn)
      record_.loss_scale.update(outcome == Outcome::kSkipped);
    if (record_.skipped_in_a_row > tolerated_ && record_.diverged_at == 0)
      record_.diverged_at = step_;
    return outcome != Outcome::kSkipped;
  }

  const StepRecord& read() override { return record_; }
  bool is_read_at_once() const override { return true; }
  void measure(TrainingStep::Measured measured) override { measured_ = measured; }
  void tolerate(std::int64_t most_in_a_row) override {
    tolerated_ = tolerated_skips(setup_, most_in_a_row);
  }
  void clear() override { record_.clear(); }
  void set(const StepRecord& record) override { record_ = record; }
  const at::Tensor& skip() const override { return none_; }
  std::vector<std::pair<std::string, at::Tensor>> memory() const override { return {}; }

 private:
  enum class Outcome { kUpdated, kNothingToLearn, kSkipped };

  Outcome attempt(std::span<const ShardLoss> shards) {
    now_.clear();
    for (const ShardLoss& shard : shards) {
      if (shard.rows > 0)
        now_.add(shard.loss, shard.rows);
    }
    if (measured_.batch_loss)
      record_.batch = now_;
    if (!now_.is_finite())
      return Outcome::kSkipped;
    record_.totals.add(now_);
    // A batch without weight has nothing to learn from.
    if (now_.weight() == 0)
      return Outcome::kNothingToLearn;
    const Timeline::Span span(setup_.timeline, Phase::kUpdate);
    const at::NoGradGuard no_gradients;
    const double scale = clip(1.0 / (now_.weight() * factor_));
    if (!std::isfinite(scale))
      return Outcome::kSkipped;
    setup_.update.update(StepInfo{step_, rate_, scale});
    return Outcome::kUpdated;
  }

  /// Applies both bounds; returns the factor that is left for the optimizer to apply. Not finite
  /// when a gradient is not.
  double clip(double scale) {
    const at::Tensor& gradients = setup_.arena.gradients();
    const Clipping& clipping = setup_.clipping;
    if (measured_.gradient_norm)
      measure_norm(gradients, scale);
    if (clipping.value > 0) {
      const double bound = clipping.value / scale;
      gradients.clamp_(-bound, bound);
    }
    if (clipping.norm == 0)
      return are_finite(gradients) ? scale : NAN;
    const double norm = euclidean_norm(gradients) * scale;
    if (!std::isfinite(norm))
      return norm;
    return norm > clipping.norm ? scale * (clipping.norm / norm) : scale;
  }

  /// A sum is finite only where everything in it is; a large one may overflow all the same.
  static bool are_finite(const at::Tensor& gradients) {
    return std::isfinite(gradients.sum().item<double>()) ||
           std::isfinite(euclidean_norm(gradients));
  }

  void measure_norm(const at::Tensor& gradients, double scale) {
    record_.gradient_norm = euclidean_norm(gradients) * scale;
    if (!std::isfinite(record_.gradient_norm))
      return;
    record_.sum_of_norms += record_.gradient_norm;
    ++record_.norms;
  }

  const StepNumbersSetup setup_;
  StepRecord record_;
  std::int64_t step_ = 0;
  double rate_ = 0;
  LossTotals now_;     // of the step
  double factor_ = 1;  // of its loss
  TrainingStep::Measured measured_;
  std::int64_t tolerated_ = 0;
  const at::Tensor none_;
};

}  // namespace

std::unique_ptr<StepNumbers> numbers_on_host(const StepNumbersSetup& setup) {
  return std::make_unique<HostNumbers>(setup);
}

}  // namespace treadle::engine
