#include <treadle/sdk.h>

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

  void do_update(treadle::Block& block, const treadle::StepInfo& info) const override {
    if (block.dtype() == at::kDouble) {
      update_all<double>(block, info);
    } else {
      update_all<float>(block, info);
    }
  }

  template <typename T>
  void update_all(treadle::Block& block, const treadle::StepInfo& info) const {
    const T scale = static_cast<T>(info.gradient_scale);
    const T rate = static_cast<T>(info.learning_rate);
    const T keep = static_cast<T>(momentum_);
    const T decay = static_cast<T>(weight_decay_);
    T* const parameters = block.parameters<T>();
    T* const momentum = block.elements<T>(kMomentum);
    const T* const gradients = block.gradients<T>();
    for (const treadle::Segment& segment : block.segments()) {
      if (!segment.active())
        continue;  // frozen, or the backward pass did not reach it
      for (std::int64_t i = segment.offset; i < segment.offset + segment.size; ++i) {
        momentum[i] = keep * momentum[i] + (1 - keep) * (scale * gradients[i]);
        const T sign = static_cast<T>((momentum[i] > 0) - (momentum[i] < 0));
        parameters[i] -= rate * (sign + decay * parameters[i]);
      }
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
