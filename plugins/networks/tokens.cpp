#include "tokens.h"

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ops/addcmul.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>

namespace treadle::networks {
namespace {

const TensorSpec& stream_of(const LayerSpec& spec, std::size_t dimensions,
                            std::string_view wanted) {
  const TensorSpec& stream = spec.inputs.front();
  if (spec.inputs.size() != 1 || stream.sizes.size() != dimensions)
    throw DataError("takes the stream alone, " + std::string(wanted) + ", got " + stream.text());
  return stream;
}

}  // namespace

ClassToken::ClassToken(const Config&, const LayerSpec& spec) {
  const TensorSpec& stream = stream_of(spec, 3, "sequences [B, length, width]");
  at::Tensor weight = at::empty({stream.width()}, spec.dtype);
  {
    const at::NoGradGuard no_gradients;
    weight.normal_(0, 0.02);
  }
  weight_ = register_parameter("weight", weight);
}

at::Tensor ClassToken::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& x = inputs[0];
  return at::cat({weight_.to(x.scalar_type()).expand({x.size(0), 1, x.size(2)}), x}, 1);
}

FeatureTokenizer::FeatureTokenizer(const Config& config, const LayerSpec& spec) {
  const TensorSpec& stream = spec.inputs.front();
  if (spec.inputs.size() != 1 || stream.sizes.size() < 2 || stream.width() == TensorSpec::kVaries)
    throw DataError("takes the stream alone, numbers [B, ..., features], got " + stream.text());
  const auto width = config.get<std::int64_t>("embedding_dim");
  const double bound = 1 / std::sqrt(static_cast<double>(width));
  const auto drawn = [&] {
    const at::NoGradGuard no_gradients;
    at::Tensor values = at::empty({stream.width(), width}, spec.dtype);
    values.uniform_(-bound, bound);
    return values;
  };
  weight_ = register_parameter("weight", drawn());
  bias_ = register_parameter("bias", drawn());
}

at::Tensor FeatureTokenizer::forward(const Inputs& inputs, LayerContext&) {
  return at::addcmul(bias_, inputs[0].unsqueeze(-1), weight_);
}

}  // namespace treadle::networks
