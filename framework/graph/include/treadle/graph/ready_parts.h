#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <treadle/graph/part.h>

/// Parts that most graphs need and that need no plugin. A document names the same layers: `{"use":
/// "mean"}`.
namespace treadle::graph {

// --- Merging

/// The sum of all inputs. They have the same sizes; with `broadcast`, sizes that broadcast.
Part add(bool broadcast = false);
/// Their sum, divided by how many there are.
Part mean(bool broadcast = false);
/// Their product, of the same sizes or of sizes that broadcast.
Part multiply(bool broadcast = false);
/// One after the other along `dim`; negative counts from the end.
Part cat(std::int64_t dim);
/// [row, column, layer], or how many of each a grid has.
using GridPosition = std::array<std::int64_t, 3>;
/// One after the other along the last dimension, in the order of their cells: by row, column,
/// layer. Input i is in the cell positions[i], and no other input is.
Part grid_cat(const GridPosition& grid, const std::vector<GridPosition>& positions);
/// Throws a DataError where a position is outside of the grid, or two are the same: as a part of a
/// flow finds when the flow is built.
void expect_grid_positions(const GridPosition& grid, const std::vector<GridPosition>& positions);
/// The sum of the inputs that are there: for states, which are absent at first.
Part state_add();
/// Σ_i w[…, i] · x_i, the first input being w and then x_0, x_1, …. What mixture_of_experts() ends
/// with. The x_i have one size; with `pad`, narrower ones are filled up with zeros along the last
/// dimension.
Part weighted_sum(bool pad = false);

// --- One input

/// The input itself: a place for a tag.
Part identity();
/// A part whose values are not kept for backward but computed once more there: a forward of it more
/// for the memory of what enters it. Gradients are the true ones, and random operators draw the
/// same numbers both times; see recomputed.h. It may have no state and no memory.
///
/// `names`: what its parameters are called. kOfFlow: as if the body's nodes stood in the flow
/// itself, which has no others of these names; so the same weights fit with and without it.
enum class RecomputedNames : std::uint8_t { kOfNode, kOfFlow };
Part recompute(const Part& body, RecomputedNames names = RecomputedNames::kOfNode);
/// To sizes as Tensor::reshape takes them; one may be -1.
Part reshape(std::vector<std::int64_t> sizes);

// --- Sources: of their input they take the number of rows only, and each row gets the same.

/// `row`, in the dtype of the parameters: [B, row.sizes...].
Part constant(const at::Tensor& row);
/// A learned tensor, "weight" [shape...], N(mean, std²) at first: [B, shape...].
Part parameter(std::vector<std::int64_t> shape, double mean = 0, double std = 0.02);

// --- Routers for mixture_of_experts(): rows [B, in] become weights [B, experts]. Further inputs
// are added to the first.

/// softmax(x Wᵀ + b)
Part softmax_router(std::int64_t in, std::int64_t experts);
/// sigmoid(x Wᵀ + b): weights that are independent of each other and need not sum to one.
Part sigmoid_router(std::int64_t in, std::int64_t experts);

// --- Routers for switch_()

/// Always this branch.
Part fixed_selector(std::int64_t branch);
/// For SwitchBy::kBatch the largest of x Wᵀ + b, averaged over the rows; for kRow the largest of
/// each row. Has no gradient: W learns nothing from the choice.
Part argmax_selector(std::int64_t in, std::int64_t branches, bool by_row = false);

// --- Conditions for loop()

/// max(state) - threshold: halts as soon as one element is larger.
Part threshold_halt(double threshold);
/// x Wᵀ + b, one number per row. The decision to halt has no gradient.
Part learned_halt(std::int64_t in);

}  // namespace treadle::graph
