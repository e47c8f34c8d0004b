#include <treadle/tensor/float8.h>

#include <cmath>
#include <limits>

#include <ATen/ops/copysign.h>
#include <ATen/ops/isnan.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

// float32
constexpr int kMantissaBits = 23;
constexpr int kBias = 127;
constexpr std::int64_t kExponentBits = 0x7f800000;
constexpr std::int64_t kHighestMantissaBit = std::int64_t{1} << (kMantissaBits - 1);

std::int64_t exponent_field(int exponent) {
  return static_cast<std::int64_t>(kBias + exponent) << kMantissaBits;
}

/// Rounded as if the format had one exponent more above its largest number; magnitudes beyond
/// `limit` become `limit`. Zeros keep their sign.
///
/// The sum of x and 1.5 · 2^(e + 23 - m), where e is the exponent of x and m the bits of the
/// mantissa, has a last bit worth 2^(e - m). So the addition itself rounds, ties to even, and the
/// subtraction is exact. An e below the least exponent is that one: denormal numbers.
at::Tensor rounded_within(const NarrowFloat& format, const at::Tensor& values, double limit) {
  TREADLE_EXPECTS(values.scalar_type() == at::kFloat, "numbers to round are float32");
  const at::Tensor within = values.detach().clamp(-limit, limit);
  const at::Tensor rounder =
      within.view(at::kInt)
          .bitwise_and(kExponentBits)
          .clamp_(exponent_field(format.least_exponent),
                  exponent_field(std::ilogb(format.largest) + 1))
          .add_(static_cast<std::int64_t>(kMantissaBits - format.mantissa_bits) << kMantissaBits)
          .bitwise_or_(kHighestMantissaBit)
          .view(at::kFloat);
  return within.add(rounder).sub_(rounder).copysign_(within);
}

// The upper bits of a float16 with the same mantissa are a float8: those of E5M2 as they are, those
// of E4M3, whose exponents begin eight higher, of the number times 2^-8.
constexpr int kHalfMantissaBits = 10;
constexpr int kHalfLeastExponent = -14;

int half_shift(const NarrowFloat& format) {
  TREADLE_EXPECTS(format == kE4M3 || format == kE5M2, "E4M3 and E5M2 have eight bits");
  return kHalfMantissaBits - format.mantissa_bits;
}

double to_half(const NarrowFloat& format) {
  return std::exp2(kHalfLeastExponent - format.least_exponent);
}

constexpr std::int64_t kMagnitude = 0x7f;
constexpr std::int64_t kSign = 0x80;

}  // namespace

at::Tensor rounded_to(const NarrowFloat& format, const at::Tensor& values) {
  return rounded_within(format, values, format.largest);
}

at::Tensor float8_codes(const NarrowFloat& format, const at::Tensor& values, Overflow overflow) {
  const int shift = half_shift(format);
  const double beyond = 2.0 * format.largest;
  const at::Tensor rounded = rounded_within(
      format, values, overflow == Overflow::kSaturates ? double{format.largest} : beyond);
  const at::Tensor magnitude = rounded.abs()
                                   .mul_(to_half(format))
                                   .to(at::kHalf)
                                   .view(at::kShort)
                                   .bitwise_right_shift(shift)
                                   .clamp_max_(kMagnitude)
                                   .masked_fill_(at::isnan(values), kMagnitude);
  const at::Tensor sign = values.view(at::kInt).lt(0).to(at::kShort).mul_(kSign);
  return magnitude.add(sign).to(at::kByte);
}

at::Tensor float8_values(const NarrowFloat& format, const at::Tensor& codes) {
  TREADLE_EXPECTS(codes.scalar_type() == at::kByte, "codes are uint8");
  const at::Tensor wide = codes.to(at::kShort);
  const at::Tensor magnitude = wide.bitwise_and(kMagnitude);
  const at::Tensor half = magnitude.mul(std::int64_t{1} << half_shift(format))
                              .sub_(wide.bitwise_and(kSign).mul_(std::int64_t{1} << 8));
  const at::Tensor values = half.view(at::kHalf).to(at::kFloat).mul_(1 / to_half(format));
  // E4M3 has no infinity: its highest exponent is one as any other.
  return format == kE4M3 ? values.masked_fill(magnitude.eq(kMagnitude),
                                              std::numeric_limits<double>::quiet_NaN())
                         : values;
}

}  // namespace treadle
