#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <treadle/base/number.h>
#include <treadle/base/random.h>
#include <treadle/host/explain/explained_rows.h>

namespace treadle::explain {

/// A number that measures predictions, over the rows of all parts.
struct Measure {
  std::string name;
  Direction direction = Direction::kLowerIsBetter;
  /// Of predictions for the rows of each part, in their order.
  std::function<Number(const std::vector<Predictions>&)> of;
};

/// The mean of row_losses() by the weights of rows.
Measure mean_loss(const ExplainedRows& rows, std::size_t target);

/// Columns that are permuted together, and how much worse the model becomes.
struct Importance {
  std::vector<std::size_t> columns;  ///< indices in ExplainedRows::columns
  Number mean;                       ///< over repeats
  Number deviation;                  ///< of the sample; undefined with one repeat
  std::vector<Number> repeats;
};

/// How columns go together for permute(): columns of numbers with |Spearman| of at least
/// `correlation`, and those that are so connected by others. Permuting one of them alone would show
/// the model rows that do not exist, and another one would stand in for it.
std::vector<std::vector<std::size_t>> correlated_groups(const ExplainedRows& rows,
                                                        double correlation = 0.9);
/// Of more columns none are looked for.
inline constexpr std::size_t kMostGroupedColumns = 500;

/// Permutation importance (L. Breiman, "Random Forests", Machine Learning 45, 2001) in each
/// measure: the measure of the rows with a group's columns permuted among the rows of a part, minus
/// that of the rows as they are; of a measure that is better when higher the other way round. So
/// above 0: the model needs the columns. The order is that of `groups`; the same for any number of
/// workers, and for a group whatever the others are.
///
/// Result: one list per measure.
std::vector<std::vector<Importance>> permutation_importance(
    const ExplainedRows& rows, const std::vector<std::vector<std::size_t>>& groups,
    const std::vector<Measure>& measures, std::int64_t repeats, const RandomStreams& random);

}  // namespace treadle::explain
