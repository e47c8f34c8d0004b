#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/devices/device_constant.h>
#include <treadle/core/model/functional.h>

namespace treadle::layers {

/// Rotary positions. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding"
/// (2021): pairs of numbers of a head turn by an angle that grows with the position p, so that the
/// product of a query and a key depends on their distance. For i < dim / 2:
///
///     y[i]           = x[i] cos(p f[i]) - x[i + dim / 2] sin(p f[i])
///     y[i + dim / 2] = x[i + dim / 2] cos(p f[i]) + x[i] sin(p f[i]),   f[i] = theta^(-2i / dim)
///
/// Number i turns with number i + dim / 2: the halves of GPT-NeoX and LLaMA, not the neighbours 2i
/// and 2i + 1 of the paper and GPT-J. The numbers behind the first `dim` of a head stay as they
/// are.
///
/// "scaling" serves texts longer than those of the training, `factor` times as long:
///
///     linear   f / factor. Chen et al., "Extending Context Window of Large Language Models via
///              Positional Interpolation" (2023)
///     ntk      theta · factor^(dim / (dim - 2)) in place of theta ("NTK-aware scaled RoPE", 2023)
///     llama3   f where its wavelength w = 2π / f is below L / high_freq_factor, f / factor where
///              it is above L / low_freq_factor, and between them ((1 - s) / factor + s) f with
///              s = (L / w - low) / (high - low); L: original_max_position_embeddings. Meta's
///              reference code of Llama 3.1, apply_scaling()
class Rotary {
 public:
  /// `config`: the keys of "rotary". Throws a DocumentError where they contradict each other.
  static void check(const Config& config);
  /// For heads of so many numbers. Throws a DataError where fewer than "dim" are there.
  Rotary(const Config& config, std::int64_t head_dim);

  /// `positions`: int64 [T], or [B, T]. `dtype`: that of the heads.
  RotaryAngles angles(const at::Tensor& positions, c10::ScalarType dtype) const;

 private:
  std::int64_t dim_;
  DeviceConstant frequencies_;  // f [dim / 2]
};

}  // namespace treadle::layers
