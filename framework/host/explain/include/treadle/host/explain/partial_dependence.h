#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/host/explain/explained_rows.h>

namespace treadle::explain {

/// The mean prediction where a column has a value (J. Friedman, "Greedy function
/// approximation", Annals of Statistics 29, 2001): all rows are given the value, and predictions
/// are averaged.
struct PartialDependence {
  std::size_t column = 0;
  at::Tensor values;                ///< float64 [G], ascending; of a category its numbers
  std::vector<at::Tensor> outputs;  ///< by target: float64 [G, K], see explained_outputs()
};

/// The values that a column is given: of numbers the different ones among `points` quantiles, from
/// the 5 % to the 95 % one, or all different values where there are no more; of a category those
/// that occur, the most frequent `points`. float64 [G], ascending; missing values are left out.
at::Tensor grid_of(const ExplainedRows& rows, const ExplainedColumn& column, std::int64_t points);

/// Expects a column that is flat.
PartialDependence partial_dependence(const ExplainedRows& rows, std::size_t column,
                                     const at::Tensor& grid);

}  // namespace treadle::explain
