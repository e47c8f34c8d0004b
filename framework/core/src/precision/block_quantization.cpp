#include <treadle/core/precision/block_quantization.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

/// One bit for the sign, where there is one; then as many zeros as the power of ten, a one, and the
/// rest for a fraction: the means of equal intervals of [0.1, 1].
std::vector<double> dynamic_values(BlockQuantizer::Signs signs) {
  constexpr int kPowers = 7;
  const bool both = signs == BlockQuantizer::Signs::kBoth;
  std::vector<double> values{0, 1};
  for (int power = 0; power < kPowers; ++power) {
    const int intervals = 1 << (both ? power : power + 1);
    const double unit = std::pow(10.0, power - (kPowers - 1));
    for (int i = 0; i < intervals; ++i) {
      const double value = unit * (0.1 + 0.9 * (i + 0.5) / intervals);
      values.push_back(value);
      if (both)
        values.push_back(-value);
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

at::Tensor as_tensor(const std::vector<double>& values) {
  const at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kFloat);
  std::copy(values.begin(), values.end(), tensor.data_ptr<float>());
  return tensor;
}

}  // namespace

BlockQuantizer::BlockQuantizer(Signs signs, c10::Device device) : signs_(signs) {
  const at::NoGradGuard no_gradients;
  const std::vector<double> values = dynamic_values(signs);
  TREADLE_EXPECTS(values.size() == 256, "a code has 8 bits");
  zero_ = static_cast<std::uint8_t>(std::find(values.begin(), values.end(), 0.0) - values.begin());
  std::vector<double> midpoints;
  for (std::size_t i = 0; i + 1 < values.size(); ++i)
    midpoints.push_back((values[i] + values[i + 1]) / 2);
  codebook_ = as_tensor(values).to(device);
  midpoints_ = as_tensor(midpoints).to(device);
}

BlockQuantizer::Quantized BlockQuantizer::quantize(const at::Tensor& values) const {
  const at::Tensor blocks = values.to(at::kFloat).view({-1, kBlock});
  const at::Tensor scales = blocks.abs().amax(1);
  // Within a block of zeros anything would do but 0 / 0.
  const at::Tensor shares = blocks / at::where(scales.eq(0), scales + 1, scales).unsqueeze(1);
  at::Tensor codes = at::bucketize(shares, midpoints_, /*out_int32=*/true).to(at::kByte);
  if (signs_ == Signs::kNone)
    codes = at::where(shares.gt(0), codes.clamp_min(zero_ + 1), codes);
  return {codes.view({-1}), scales};
}

at::Tensor BlockQuantizer::dequantize(const Quantized& quantized) const {
  const at::Tensor shares = codebook_.index_select(0, quantized.codes.to(at::kLong));
  return shares.view({-1, kBlock}).mul(quantized.scales.unsqueeze(1)).view({-1});
}

}  // namespace treadle
