#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

/// Layers as functions of tensors, for models written by hand. They are what the layers of the same
/// names compute; all of them are differentiable.
namespace treadle {

/// x / sqrt(mean(x²) + eps) · weight along the last dimension (Zhang & Sennrich 2019). `x`:
/// [..., width], `weight`: [width].
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps = 1e-6);

/// The three maps of a SwiGLU block. A bias may be undefined.
struct SwigluWeights {
  at::Tensor gate;  ///< [hidden, in]
  at::Tensor up;    ///< [hidden, in]
  at::Tensor down;  ///< [out, hidden]
  at::Tensor gate_bias = {};
  at::Tensor up_bias = {};
  at::Tensor down_bias = {};
};

/// down(silu(gate(x)) · up(x)) (Shazeer 2020, "GLU Variants Improve Transformer"). `x`: [..., in].
at::Tensor swiglu(const at::Tensor& x, const SwigluWeights& weights);

/// cos and sin of rotary angles: [1, 1, T, dim / 2], or [B, 1, T, dim / 2].
struct RotaryAngles {
  at::Tensor cos;
  at::Tensor sin;
};

/// theta^(-2i / dim) for i < dim / 2, the frequencies of rotary positions (Su et al. 2021): float64
/// [dim / 2] on the CPU.
at::Tensor rotary_frequencies(std::int64_t dim, double theta = 10000);

/// The angles p f. `positions`: int64 [T] or [B, T]; `frequencies`: float64 [dim / 2] on the same
/// device. Computed in float64, because late positions have large angles; the result is float32, or
/// float64 for heads of that dtype.
RotaryAngles rotary_angles(const at::Tensor& positions, const at::Tensor& frequencies,
                           c10::ScalarType dtype);

/// Queries or keys [B, heads, T, head_dim], turned by the angles: number i < dim / 2 with number
/// i + dim / 2, as in GPT-NeoX and LLaMA. Numbers behind the first `dim` stay as they are.
at::Tensor apply_rotary(const at::Tensor& heads, const RotaryAngles& angles);

/// [B, heads, T, n] times [B, kv_heads, n, m]: [B, heads, T, m]. Each of kv_heads serves
/// heads / kv_heads heads that follow one another (grouped-query attention, Ainslie et al. 2023);
/// nothing is repeated in memory.
at::Tensor grouped_matmul(const at::Tensor& of_heads, const at::Tensor& of_kv_heads);

/// softmax(Q Kᵀ / sqrt(head_dim)) V with rotary positions 0 … T - 1. `queries`: [B, heads, T,
/// head_dim]; `keys` and `values`: [B, kv_heads, T, head_dim]. Causal: position t sees 0 … t.
at::Tensor rotary_attention(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, bool is_causal = true, double theta = 10000);

}  // namespace treadle
