#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include <treadle/core/model/abilities/takes_indices.h>
#include <treadle/core/model/layer.h>

namespace treadle::layers {

/// Which input of an attention is what, told by type and shape. T: the positions of the stream, S:
/// those of the sequence that it looks at, which is the stream itself where there is no other.
///
///     numbers  [B, S, …]                 the sequence to look at
///     int64    [B]                       lengths: how many of the S positions are no padding
///     bool     [B, S]                    the same as a mask, true where a position is no padding
///     int64    [B, T]                    the document that a position of a packed row belongs to;
///                                        a second one [B, S], for the sequence to look at
///     bool     [T, S], [B, T, S]         a mask, true where t may look at s; [B, heads, T, S] for
///                                        each head, or 1 for all of them
///     numbers  [T, S], [B, heads, T, S]  what is added to the scores; -inf hides
///
/// A matrix whose first size is that of the stream has a row for each row of the batch.
struct AttentionInputs {
  /// The stream alone.
  AttentionInputs() = default;
  /// Throws a DataError for an input that is none of these, or does not fit the others' sizes.
  AttentionInputs(const LayerSpec& spec, std::int64_t heads);

  /// Whether input `index` holds integers or booleans.
  bool takes_indices(std::size_t index) const;
  /// Whether what each position may look at depends on the stream's positions and segments alone.
  bool is_of_one_stream() const { return !memory && !padding && !mask && !bias; }

  std::optional<std::size_t> memory;
  std::optional<std::size_t> padding;
  std::optional<std::size_t> segments;
  std::optional<std::size_t> memory_segments;
  std::optional<std::size_t> mask;
  std::optional<std::size_t> bias;
};

/// Which keys no query sees: relative positions, and what the inputs say.
struct Visibility {
  bool is_causal = false;
  /// Positions farther away than this are not seen; any distance where there is none.
  std::optional<std::int64_t> window;
};

/// Scores [B, heads, T, S] with what `inputs` add to them, and minus infinity where a query does
/// not see a key. The last of the S keys stand where the queries do, unless they are of another
/// sequence.
struct MaskedScores {
  at::Tensor scores;
  /// [..., T, 1], true where a query sees nothing, whose scores are all there; undefined where
  /// there is no such query.
  at::Tensor blind;
};
MaskedScores masked(const at::Tensor& scores, const AttentionInputs& roles, const Inputs& inputs,
                    const Visibility& visibility);

}  // namespace treadle::layers
