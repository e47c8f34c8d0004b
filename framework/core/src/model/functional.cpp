#include <treadle/core/model/functional.h>

#include <cmath>
#include <limits>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/core/model/linear.h>

namespace treadle {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x.mul(at::rsqrt(x.square().mean(-1, /*keepdim=*/true).add(eps))).mul(weight);
}

at::Tensor swiglu(const at::Tensor& x, const SwigluWeights& weights) {
  const at::Tensor gate = at::silu(linear_in_precision(x, weights.gate, weights.gate_bias));
  const at::Tensor up = linear_in_precision(x, weights.up, weights.up_bias);
  return linear_in_precision(gate.mul(up), weights.down, weights.down_bias);
}

at::Tensor rotary_frequencies(std::int64_t dim, double theta) {
  TREADLE_EXPECTS(dim > 0 && dim % 2 == 0, "numbers turn in pairs");
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < dim; i += 2)
    frequencies.push_back(std::pow(theta, -static_cast<double>(i) / static_cast<double>(dim)));
  return at::tensor(frequencies, at::kDouble);
}

RotaryAngles rotary_angles(const at::Tensor& positions, const at::Tensor& frequencies,
                           c10::ScalarType dtype) {
  const at::Tensor angles = positions.to(at::kDouble).unsqueeze(-1).mul(frequencies).unsqueeze(-3);
  const c10::ScalarType wide = dtype == at::kDouble ? at::kDouble : at::kFloat;
  return {angles.cos().to(wide), angles.sin().to(wide)};
}

at::Tensor apply_rotary(const at::Tensor& heads, const RotaryAngles& angles) {
  const std::int64_t half = angles.cos.size(-1);
  const at::Tensor first = heads.narrow(-1, 0, half);
  const at::Tensor second = heads.narrow(-1, half, half);
  std::vector<at::Tensor> parts{
      first.mul(angles.cos).sub(second.mul(angles.sin)).to(heads.scalar_type()),
      second.mul(angles.cos).add(first.mul(angles.sin)).to(heads.scalar_type())};
  if (2 * half < heads.size(-1))
    parts.push_back(heads.narrow(-1, 2 * half, heads.size(-1) - 2 * half));
  return at::cat(parts, -1);
}

at::Tensor grouped_matmul(const at::Tensor& of_heads, const at::Tensor& of_kv_heads) {
  const std::int64_t rows = of_heads.size(0);
  const std::int64_t heads = of_heads.size(1);
  const std::int64_t kv_heads = of_kv_heads.size(1);
  if (kv_heads == heads)
    return at::matmul(of_heads, of_kv_heads);
  TREADLE_EXPECTS(heads % kv_heads == 0, "each key head serves as many query heads");
  const std::int64_t length = of_heads.size(2);
  return at::matmul(of_heads.reshape({rows, kv_heads, heads / kv_heads * length, -1}), of_kv_heads)
      .view({rows, heads, length, -1});
}

at::Tensor rotary_attention(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, bool is_causal, double theta) {
  const std::int64_t length = queries.size(2);
  const std::int64_t head_dim = queries.size(3);
  const at::TensorOptions options = queries.options().requires_grad(false);
  const RotaryAngles angles = rotary_angles(
      at::arange(length, options.dtype(at::kLong)),
      rotary_frequencies(head_dim, theta).to(queries.device()), queries.scalar_type());
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  at::Tensor scores = grouped_matmul(apply_rotary(queries, angles).mul(scale),
                                     apply_rotary(keys, angles).transpose(-2, -1));
  if (is_causal) {
    const at::Tensor is_later = at::ones({length, length}, options.dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(is_later, -std::numeric_limits<double>::infinity());
  }
  return grouped_matmul(at::softmax(scores, -1), values);
}

}  // namespace treadle
