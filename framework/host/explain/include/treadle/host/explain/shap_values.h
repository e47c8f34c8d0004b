#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/random.h>
#include <treadle/host/explain/explained_rows.h>

namespace treadle::explain {

struct ShapSettings {
  std::int64_t rows = 100;            ///< that are explained, drawn from all
  std::int64_t background_rows = 50;  ///< drawn from each part
  /// The predictions that this may take. Where it would be more, background rows are fewer, down to
  /// ten, and then rows.
  std::int64_t most_predictions = 500'000;
};

/// Contributions of columns to single predictions.
struct ShapValues {
  std::int64_t background_rows = 0;  ///< of each part, at most
  /// Of the rows that are explained: int64 [R], places among the rows of all parts, ascending.
  at::Tensor places;
  struct Target {
    at::Tensor predicted;  ///< float64 [R, K]
    at::Tensor base;       ///< float64 [R, K]: the mean prediction over the background of its part
    at::Tensor values;     ///< float64 [R, D, K], D columns
    at::Tensor mean_abs;   ///< float64 [D, K], over rows
  };
  std::vector<Target> targets;
};

/// Shapley values by sampling of permutations (E. Strumbelj & I. Kononenko, "Explaining prediction
/// models and individual predictions with feature contributions", 2014), interventional: a column
/// that is not known yet has the value of a background row.
///
/// Each background row has an order of the columns and its reverse (antithetic: R. Mitchell et al.,
/// "Sampling Permutations for Shapley Value Estimation", JMLR 23, 2022); along an order the columns
/// of the row replace those of the background row one by one, and the change of the prediction is
/// the column's. So values of a row add up to predicted - base whatever is sampled, and the values
/// of a model without interactions are exact: w_j (x_j - mean of x_j over the background) for a
/// linear one.
ShapValues shap_values(const ExplainedRows& rows, const ShapSettings& settings,
                       const RandomStreams& random);

}  // namespace treadle::explain
