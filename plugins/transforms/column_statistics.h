#pragma once

#include <limits>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle::transforms {

/// What a column of numbers is like; NaN does not count.
struct ColumnStatistics {
  double count = 0;
  double mean = 0;
  double squares = 0;  ///< sum of squared distances from the mean
  double minimum = std::numeric_limits<double>::infinity();
  double maximum = -std::numeric_limits<double>::infinity();

  /// Divided by the count, not by one less, as scikit-learn's StandardScaler does.
  double variance() const { return count > 0 ? squares / count : 0; }
  /// Whether the variance is nothing but rounding: variance <= n eps variance + (n mean eps)^2
  /// (Chan, Golub & LeVeque, "Algorithms for computing the sample variance", 1983, as used by
  /// scikit-learn).
  bool is_constant() const;
};

/// Adds the rows of `values`, [n, columns.size()], to the statistics. In float64: mean and squares
/// of the rows in two passes, then joined with those of the rows before.
void add_rows(std::vector<ColumnStatistics>& columns, const at::Tensor& values);

/// Adds the rows that `more` are the statistics of, of as many columns (Chan, Golub & LeVeque
/// 1979).
void join(std::vector<ColumnStatistics>& columns, const std::vector<ColumnStatistics>& more);

}  // namespace treadle::transforms
