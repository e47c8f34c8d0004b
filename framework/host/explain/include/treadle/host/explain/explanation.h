#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <treadle/host/explain/explained_rows.h>
#include <treadle/host/explain/permutation_importance.h>
#include <treadle/host/explain/shap_values.h>

namespace treadle::explain {

struct ExplainSettings {
  std::int64_t repeats = 5;       ///< of each permutation
  std::int64_t columns = 6;       ///< the most important ones, that have a partial dependence
  std::int64_t grid_points = 20;  ///< of a partial dependence
  std::int64_t listed_rows = 10;  ///< in the list of the worst, and in each other list
  ShapSettings shap = {};
  std::uint64_t seed = 0;
};

/// How rows are called and shown.
struct RowTexts {
  /// By the number in the data (Batch::rows): "line 17 of data/iris.csv".
  std::function<std::string(std::int64_t row)> place;
  /// A data URI, such as picture_of() makes; of a batch of one row. Null or empty: none.
  std::function<std::string(const Batch& row)> picture = nullptr;
};

/// All reasons, as explain.json has them; docs/guide/reasons.md describes it. `measures`: one per
/// target. Throws a DataError where there are fewer than two rows.
nlohmann::json explain(const ExplainedRows& rows, const std::vector<Measure>& measures,
                       const RowTexts& texts, const ExplainSettings& settings);

}  // namespace treadle::explain
