#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include <treadle/core/model/layer.h>

/// Positions of a sequence that are not padding: what the optional reference of a layer describes,
/// lengths (int64 [B]) or a mask (bool [B, length], true where a position counts).
namespace treadle::layers {

bool describes_padding(const TensorSpec& reference);

/// The only reference of a layer over sequences, if there is one: its index among the inputs.
/// Throws a DataError for anything else.
std::optional<std::size_t> padding_reference(const LayerSpec& spec);

/// bool [B, length], true where a position counts.
at::Tensor real_positions(const at::Tensor& reference, std::int64_t length);

/// int64 [B, length], the position of each in its own segment, from 0: the documents of a packed
/// row stand one after the other. `segments`: int64 [B, length], what each position belongs to.
at::Tensor positions_in_segments(const at::Tensor& segments);

/// `real` as [B, length, 1, ...], to stand beside `sequence`.
at::Tensor beside(const at::Tensor& real, const at::Tensor& sequence);

/// Where the last position that counts is, for at::gather along dimension 1 of sequences
/// [B, length, ...] of such sizes, and which rows have none.
struct LastPositions {
  at::Tensor index;    ///< int64 [B, 1, ...]
  at::Tensor is_none;  ///< bool [B, 1, 1 ...]
};
LastPositions last_positions(at::IntArrayRef sizes, const at::Tensor& real);

/// The last position that counts, of [B, length, ...]: [B, ...]; zeros where none does.
at::Tensor last_position(const at::Tensor& sequence, const at::Tensor& real);

}  // namespace treadle::layers
