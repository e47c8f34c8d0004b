#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

/// Floating-point numbers of eight bits and fewer, which libtorch has from 2.1 on or not at all:
/// tensor operations on any device, which wait for none.
namespace treadle {

/// A format with a sign, an exponent, a mantissa, and denormal numbers below the least exponent.
struct NarrowFloat {
  int mantissa_bits;
  int least_exponent;  ///< of a normal number: the smallest is 2^least_exponent
  float largest;

  bool operator==(const NarrowFloat&) const = default;
};

/// Weights and activations: steps of 1/8, no infinity, one NaN of each sign. libtorch's
/// float8_e4m3fn.
///
/// Source of both: Micikevicius et al., "FP8 Formats for Deep Learning" (2022), table 1.
inline constexpr NarrowFloat kE4M3{3, -6, 448};
/// Gradients: steps of 1/4, infinities and NaN. libtorch's float8_e5m2.
inline constexpr NarrowFloat kE5M2{2, -14, 57344};
/// Four bits, neither infinity nor NaN: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
///
/// Source: Open Compute Project, "OCP Microscaling Formats (MX) Specification" 1.0 (2023), 5.3.3.
inline constexpr NarrowFloat kE2M1{1, 0, 6};

/// The nearest numbers of the format, ties to the even mantissa, as float32. Larger ones, and
/// infinities, become the largest; NaN stays NaN. `values`: float32.
at::Tensor rounded_to(const NarrowFloat& format, const at::Tensor& values);

/// The treatment of numbers above the largest of a float8.
enum class Overflow {
  kSaturates,  ///< the largest
  /// NaN in E4M3 and infinity in E5M2, where they would round to more than the largest: as libtorch
  /// converts.
  kIsNotFinite,
};

/// The bits of numbers of float32 as E4M3 or E5M2: uint8, of the same shape. Those of NaN are 0x7f,
/// and 0xff with a sign.
at::Tensor float8_codes(const NarrowFloat& format, const at::Tensor& values,
                        Overflow overflow = Overflow::kSaturates);
/// float32.
at::Tensor float8_values(const NarrowFloat& format, const at::Tensor& codes);

}  // namespace treadle
