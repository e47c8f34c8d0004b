#include <treadle/sdk.h>

#include <ATen/ops/linear.h>
#include <ATen/ops/sigmoid.h>
#include <torch/nn/modules/linear.h>

namespace {

/// g · (x W₁ᵀ + b₁) + (1 - g) · x with g = sigmoid(x W₂ᵀ + b₂), along the last dimension: how much of a
/// row is changed is learned, too (the highway layer of Srivastava et al., 2015, without its
/// activation).
class @Name@Layer final : public treadle::Layer {
 public:
  @Name@Layer(std::int64_t width, double openness, c10::ScalarType dtype)
      : change_(register_module("change", torch::nn::Linear(width, width))),
        gate_(register_module("gate", torch::nn::Linear(width, width))) {
    to(dtype);
    const at::NoGradGuard no_gradients;
    gate_->bias.fill_(openness);
  }

  at::Tensor forward(const treadle::Inputs& inputs, treadle::LayerContext&) override {
    const at::Tensor& x = inputs[0];
    const at::Tensor g = at::sigmoid(gate_->forward(x));
    // Not lerp(), which takes one dtype: in mixed precision, linear layers return 16 bits.
    return x + g * (change_->forward(x) - x);
  }

 private:
  torch::nn::Linear change_;
  torch::nn::Linear gate_;
};

/// Makes the same layer every time it is asked: for each fold, trial and replica.
class @Name@ final : public treadle::LayerFactory {
 public:
  explicit @Name@(const treadle::Config& config) : openness_(config.get<double>("openness")) {}

 private:
  std::shared_ptr<treadle::Layer> do_create(const treadle::LayerSpec& spec) const override {
    const treadle::TensorSpec& input = spec.inputs.front();
    if (spec.inputs.size() != 1 || input.sizes.size() < 2) {
      throw treadle::DataError("takes one input of rows of numbers [B, width], got " +
                               input.text());
    }
    return std::make_shared<@Name@Layer>(input.width(), openness_, spec.dtype);
  }

  double openness_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
