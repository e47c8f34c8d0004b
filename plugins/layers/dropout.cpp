#include "dropout.h"

#include <memory>

#include <ATen/ops/alpha_dropout.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/feature_dropout.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/plan/op.h>

namespace treadle::layers {
namespace {

class DropoutOp final : public PlanOp {
 public:
  explicit DropoutOp(double rate) : left_(1 - rate) {}

  std::string_view name() const override { return "dropout"; }
  TensorSpec result(std::span<const TensorSpec> inputs) const override { return inputs[0]; }
  Reads backward_reads() const override { return {.inputs = false, .output = false}; }
  bool draws() const override { return true; }

  /// What each element is multiplied with.
  std::vector<TensorSpec> keeps(std::span<const TensorSpec> inputs) const override {
    return {inputs[0]};
  }

  void forward(const Inputs& inputs, at::Tensor& output,
               std::span<at::Tensor> kept) const override {
    kept[0].bernoulli_(left_).div_(left_);
    at::mul_out(output, inputs[0], kept[0]);
  }

  void backward(const PlanGradients& gradients) const override {
    if (gradients.wanted[0])
      at::mul_out(gradients.of_inputs[0], gradients.of_output, gradients.kept[0]);
  }

 private:
  double left_;
};

}  // namespace

template <Drops kDrops>
Dropout<kDrops>::Dropout(const Config& config, const LayerSpec& spec)
    : rate_(config.get<double>("rate")) {
  only_input(spec);
  if constexpr (kDrops == Drops::kChannels)
    expect_at_least(spec, 3, "channels in dimension 1 and something behind them");
}

template <Drops kDrops>
at::Tensor Dropout<kDrops>::forward(const Inputs& inputs, LayerContext&) {
  if (!is_training() || rate_ == 0)
    return inputs[0];
  if (rate_ >= 1)
    return at::zeros_like(inputs[0]);
  if constexpr (kDrops == Drops::kElements) {
    return at::dropout(inputs[0], rate_, /*train=*/true);
  } else if constexpr (kDrops == Drops::kChannels) {
    return at::feature_dropout(inputs[0], rate_, /*train=*/true);
  } else {
    return at::alpha_dropout(inputs[0], rate_, /*train=*/true);
  }
}

template <Drops kDrops>
std::optional<PlanValue> Dropout<kDrops>::lower(PlanBuilder& builder,
                                                std::span<const PlanValue> inputs) const {
  if (!is_training() || rate_ == 0)
    return inputs[0];
  if (kDrops != Drops::kElements || rate_ >= 1)
    return std::nullopt;
  return builder.apply(std::make_shared<DropoutOp>(rate_), inputs[0]);
}

template class Dropout<Drops::kElements>;
template class Dropout<Drops::kChannels>;
template class Dropout<Drops::kAlpha>;

}  // namespace treadle::layers
