#include <treadle/sdk.h>

#include <ATen/ops/huber_loss.h>

namespace {

/// The Huber loss (P. J. Huber, "Robust Estimation of a Location Parameter", 1964) of a difference
/// d:
///
///     d^2 / 2                      where |d| <= delta
///     delta * (|d| - delta / 2)    elsewhere
///
/// Several numbers a row: their mean. One object serves a whole run; all functions are const and
/// are called from several threads at once.
class @Name@ final : public treadle::Loss {
 public:
  explicit @Name@(const treadle::Config& config) : delta_(config.get<double>("delta")) {}

 private:
  std::vector<treadle::OutputSpec> do_outputs_for(
      const treadle::TargetSpec& target) const override {
    if (target.kind != treadle::TargetKind::kNumbers) {
      throw treadle::DataError("loss \"@name@\" needs numbers, but the target \"" + target.name +
                               "\" is not; use cross_entropy for classes");
    }
    return {{"values", target.width}};
  }

  // A sum and its weight, not a mean: both add up over batches.
  treadle::LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                                const treadle::Batch& batch) const override {
    const at::Tensor rows =
        at::huber_loss(outputs[0], batch.targets, at::Reduction::None, delta_).mean(1);
    if (!batch.weights.defined())
      return {rows.sum(), {}};
    return {rows.mul(batch.weights).sum(), batch.weights.sum()};
  }

  treadle::Predictions do_predictions(const std::vector<at::Tensor>& outputs) const override {
    return {treadle::TargetKind::kNumbers, outputs[0]};
  }

  double delta_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
