#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle::explain {

/// A column by which rows fall into groups.
struct Levels {
  std::string column;
  std::vector<std::string> names;  ///< "red", "missing", "12.5 to 17"
  at::Tensor level;                ///< int64 [N], -1: in no group
};

/// Numbers fall into quantile bins of about the same size; equal values into one. NaN is a level of
/// its own. `values`: float64 [N].
Levels quantile_levels(const std::string& column, const at::Tensor& values, std::int64_t bins = 4);
/// `values`: int64 [N], indices into `names`; below 0: missing.
Levels category_levels(const std::string& column, const at::Tensor& values,
                       std::vector<std::string> names);

struct SubgroupSettings {
  std::int64_t least_rows = 30;  ///< inside and outside
  double significance = 0.05;    ///< of all tests together
  /// Pairs are tried of the most frequent levels, so many.
  std::int64_t most_paired_levels = 200;
};

/// Rows on which the model is significantly worse than on the others.
struct Subgroup {
  struct Condition {
    std::string column;
    std::string level;
  };
  std::vector<Condition> where;  ///< one or two
  std::int64_t rows = 0;
  double mean_loss = 0;
  double mean_loss_outside = 0;
  double p_value = 1;         ///< after Holm's correction
  at::Tensor is_inside = {};  ///< bool [N]
};

struct FoundSubgroups {
  std::int64_t tried = 0;
  std::vector<Subgroup> found;  ///< the largest difference of losses first
};

/// Each level of each column, and each pair of levels of two columns, with at least
/// settings.least_rows rows: a one-sided t test of Welch that the mean loss inside is greater than
/// outside, corrected by Holm for all that were tried. A pair is listed only where neither of its
/// levels is. `losses`: float64 [N], NaN: the row is left out.
FoundSubgroups find_subgroups(const std::vector<Levels>& columns, const at::Tensor& losses,
                              const SubgroupSettings& settings = {});

}  // namespace treadle::explain
