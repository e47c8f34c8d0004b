#include <treadle/sdk.h>

#include <ATen/TensorOperators.h>

namespace {

/// Signum (Bernstein et al., "signSGD: Compressed Optimisation for Non-Convex Problems", 2018,
/// arXiv:1802.04434):
///
///     m <- momentum * m + (1 - momentum) * g
///     p <- p - rate * (sign(m) + weight_decay * p)
///
/// It has no memory of its own: the momentum m is a slot, which the host makes, saves and restores.
class @Name@ final : public treadle::Optimizer {
 public:
  // The schema has checked types and ranges and has filled in the defaults.
  explicit @Name@(const treadle::Config& config)
      : learning_rate_(config.get<double>("learning_rate")),
        momentum_(config.get<double>("momentum")),
        weight_decay_(config.get<double>("weight_decay")) {}

 private:
  static constexpr std::size_t kMomentum = 0;  // position in do_slots()

  double do_learning_rate() const override { return learning_rate_; }

  std::vector<treadle::SlotSpec> do_slots() const override {
    return {{"momentum", treadle::SlotSpec::Kind::kPerElement, 0}};
  }

  void do_update(treadle::ParameterView& view) const override {
    for (const treadle::ParameterPiece& run : view.runs()) {
      const at::Tensor& p = run.parameters();
      const at::Tensor m = momentum_ * run.slot(kMomentum) + (1 - momentum_) * run.gradients();
      run.set_slot(kMomentum, m);
      run.set_parameters(p - view.learning_rate() * (m.sign() + weight_decay_ * p));
    }
  }

  double learning_rate_;
  double momentum_;
  double weight_decay_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
