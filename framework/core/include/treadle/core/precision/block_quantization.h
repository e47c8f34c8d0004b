#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace treadle {

/// Numbers in 8 bits each: blocks of them, each with the largest of its absolute values.
///
///     value = codebook[code] * scale of its block
///
/// Two codebooks, for numbers of both signs and for numbers that are not negative. Their 256 values
/// lie close together near 0 and far apart near 1, over seven powers of ten ("dynamic"): a block
/// may hold numbers of very different sizes. A code is that of the nearest value. A number above 0
/// of the second kind never becomes 0: a step that divides by its root would have no bound.
///
/// Source: Dettmers et al., "8-bit Optimizers via Block-wise Quantization" (2022), section 2 and
/// appendix on dynamic tree quantization.
class BlockQuantizer {
 public:
  static constexpr std::int64_t kBlock = 256;

  enum class Signs { kBoth, kNone };

  BlockQuantizer(Signs signs, c10::Device device);

  struct Quantized {
    at::Tensor codes;   ///< uint8 [n]
    at::Tensor scales;  ///< float32 [n / kBlock]
  };
  /// `values`: floating point [n], n a multiple of kBlock, on the device. Nothing waits for it.
  Quantized quantize(const at::Tensor& values) const;
  /// float32 [n].
  at::Tensor dequantize(const Quantized& quantized) const;

  /// float32 [256], ascending, in [-1, 1].
  const at::Tensor& codebook() const { return codebook_; }
  /// That of 0.
  std::uint8_t zero() const { return zero_; }

 private:
  Signs signs_;
  at::Tensor codebook_;
  at::Tensor midpoints_;  // float32 [255], between two values
  std::uint8_t zero_ = 0;
};

}  // namespace treadle
