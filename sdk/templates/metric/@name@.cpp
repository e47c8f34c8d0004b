#include <treadle/sdk.h>

#include <limits>

namespace {

/// The mean over positions (rows, time steps) of
///
///     100 * |target - prediction| / max(|target|, floor)
///
/// in float64. Several numbers a position: their mean. Keeps two numbers, whatever the number of
/// rows. One object per training, another for its test rows: it needs no locks.
class @Name@ final : public treadle::MetricComputer {
 public:
  explicit @Name@(const treadle::Config& config) : floor_(config.get<double>("floor")) {}

 private:
  void do_start(const treadle::TargetSpec& target) override {
    if (target.kind != treadle::TargetKind::kNumbers) {
      throw treadle::DataError("metric \"@name@\" needs numbers, but the target \"" + target.name +
                               "\" is not; use accuracy for classes");
    }
  }

  void do_reset() override {
    sum_ = 0;
    weight_ = 0;
  }

  void do_update(const treadle::Prediction& prediction,
                 const treadle::TargetBatch& target) override {
    const at::Tensor targets = target.values().to(at::kDouble);
    const at::Tensor errors = targets.sub(prediction.values.to(at::kDouble)).abs();
    const at::Tensor each = errors.div(targets.abs().clamp_min(floor_)).mean(-1);
    if (target.weights().defined()) {
      const at::Tensor weights = target.weights().to(at::kDouble);
      // Padding has weight 0 and may hold anything: NaN times 0 is NaN.
      sum_ += each.masked_fill(weights.eq(0), 0).mul(weights).sum().item<double>();
      weight_ += weights.sum().item<double>();
    } else {
      sum_ += each.sum().item<double>();
      weight_ += static_cast<double>(target.positions());
    }
  }

  void do_merge(const treadle::MetricComputer& other) override {
    const auto& more = static_cast<const @Name@&>(other);
    sum_ += more.sum_;
    weight_ += more.weight_;
  }

  treadle::MetricResult do_compute() const override {
    return {{{"@name@", treadle::weighted_mean(100 * sum_, weight_),
              treadle::Direction::kLowerIsBetter}},
            {}};
  }

  treadle::StateDict do_state() const override {
    treadle::StateDict state;
    state.put_number("sum", sum_);
    state.put_number("weight", weight_);
    return state;
  }
  void do_load_state(const treadle::StateDict& state) override {
    sum_ = state.number("sum");
    weight_ = state.number("weight");
  }

  double floor_;
  double sum_ = 0;     // of weight times error
  double weight_ = 0;  // of all positions seen
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
