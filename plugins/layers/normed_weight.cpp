#include "normed_weight.h"

#include <utility>
#include <vector>

#include <ATen/ops/dot.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/norm_except_dim.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/tensor/autocast.h>

namespace treadle::layers {
namespace {

/// ‖·‖ over all dimensions but one, [n, 1, …].
constexpr std::int64_t kStepsAtFirst = 15;

at::Tensor norms_of(const at::Tensor& weight, std::int64_t dim) {
  return at::norm_except_dim(weight, 2, dim);
}

}  // namespace

NormedWeight::NormedWeight(const std::string& name, std::shared_ptr<Layer> layer)
    : Layer(name),
      layer_(register_module("layer", std::move(layer))),
      takes_(dynamic_cast<TakesWeight*>(layer_.get())) {
  if (takes_ == nullptr) {
    throw DataError(
        "takes a layer whose weight it can compute, such as \"dense\", \"head\" or "
        "\"conv2d\"; " +
        quote_text(layer_->name()) + " has none");
  }
}

at::Tensor NormedWeight::forward(const Inputs& inputs, LayerContext& context) {
  return takes_->forward_with(normed(takes_->own_weight()), inputs, context);
}

WeightNorm::WeightNorm(const Config& config, std::shared_ptr<Layer> layer)
    : NormedWeight("weight_norm", std::move(layer)), dim_(config.get<std::int64_t>("dim")) {
  if (dim_ >= own_weight().dim()) {
    throw DataError("has \"dim\" " + std::to_string(dim_) + ", and the weight " +
                    TensorSpec::of(own_weight()).text() + " has " +
                    std::to_string(own_weight().dim()) + " dimensions");
  }
  const at::NoGradGuard no_gradients;
  g_ = register_parameter("weight_g", norms_of(own_weight(), dim_).clone());
}

at::Tensor WeightNorm::normed(const at::Tensor& weight) {
  return weight.mul(g_.div(norms_of(weight, dim_)));
}

SpectralNorm::SpectralNorm(const Config& config, std::shared_ptr<Layer> layer)
    : NormedWeight("spectral_norm", std::move(layer)),
      power_iterations_(config.get<std::int64_t>("power_iterations")),
      eps_(config.get<double>("eps")) {
  const at::NoGradGuard no_gradients;
  const at::Tensor matrix = as_matrix(own_weight());
  u_ = register_buffer("u", at::randn({matrix.size(0)}, matrix.options()));
  v_ = register_buffer("v", at::randn({matrix.size(1)}, matrix.options()));
  u_.div_(u_.norm().clamp_min(eps_));
  v_.div_(v_.norm().clamp_min(eps_));
  iterate(matrix, kStepsAtFirst);
}

void SpectralNorm::begin_gathering() {
  const at::NoGradGuard no_gradients;
  const at::Tensor matrix = as_matrix(own_weight());
  // The longest row lies close to what the vectors are on the way to.
  v_.copy_(matrix[matrix.square().sum(1).argmax().item<std::int64_t>()]);
  iterate(matrix, kStepsAtFirst);
}

at::Tensor SpectralNorm::as_matrix(const at::Tensor& weight) const {
  return weight.movedim(output_dim(), 0).flatten(1);
}

void SpectralNorm::iterate(const at::Tensor& matrix, std::int64_t steps) {
  const at::NoGradGuard no_gradients;
  const auto set = [this](at::Tensor& vector, const at::Tensor& value) {
    vector.copy_(value.div(value.norm().clamp_min(eps_)));
  };
  for (std::int64_t step = 0; step < steps; ++step) {
    set(u_, at::mv(matrix, v_));
    set(v_, at::mv(matrix.t(), u_));
  }
}

at::Tensor SpectralNorm::normed(const at::Tensor& weight) {
  const AutocastScope no_autocast{Autocast()};  // σ in the precision of the weights
  const at::Tensor matrix = as_matrix(weight);
  if (is_training())
    iterate(matrix.detach(), power_iterations_);
  // Copies: the next forward changes the buffers, and a backward may come after it.
  const at::Tensor sigma = at::dot(u_.clone(), at::mv(matrix, v_.clone()));
  return weight.div(sigma);
}

}  // namespace treadle::layers
