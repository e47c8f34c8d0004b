#include <treadle/sdk.h>

#include <ATen/ops/huber_loss.h>

namespace {

/// The Huber loss (P. J. Huber, "Robust Estimation of a Location Parameter", 1964) of a difference
/// d:
///
///     d^2 / 2                      where |d| <= delta
///     delta * (|d| - delta / 2)    elsewhere
///
/// Several numbers a position: their mean. One object serves a whole run; all functions are const
/// and are called from several threads at once.
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
    return {{"values", target.shape}};
  }

  // A sum, not a mean: sums add up over batches. The framework divides by the weights' sum.
  treadle::LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                                const treadle::TargetBatch& target) const override {
    const at::Tensor& weights = target.weights();  // of positions: rows, time steps, pixels
    if (!weights.defined())
      return {each(outputs[0], target.values()).sum(), {}};
    // Whatever a model computes for padding, it must not count: NaN times 0 is NaN.
    const at::Tensor values = outputs[0].masked_fill(weights.eq(0).unsqueeze(-1), 0);
    return {each(values, target.values()).mul(weights).sum(), {}};
  }

  treadle::Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
    return {treadle::TargetKind::kNumbers, outputs[0]};
  }

  at::Tensor each(const at::Tensor& values, const at::Tensor& targets) const {
    return at::huber_loss(values, targets, at::Reduction::None, delta_).mean(-1);
  }

  double delta_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
