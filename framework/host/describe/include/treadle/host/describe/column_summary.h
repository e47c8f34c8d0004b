#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <treadle/host/describe/described_table.h>

namespace treadle::describe {

inline constexpr std::array kQuantiles{0.05, 0.25, 0.5, 0.75, 0.95};
inline constexpr std::int64_t kHistogramBins = 10;
inline constexpr std::size_t kMostListedValues = 20;

/// Of the rows with a value.
struct NumberSummary {
  double least = 0;
  double greatest = 0;
  double mean = 0;
  double deviation = 0;  ///< of the population: divided by n
  /// At kQuantiles, interpolated linearly between order statistics (numpy's default; type 7 of
  /// Hyndman & Fan 1996).
  std::array<double, kQuantiles.size()> quantiles{};
  /// Rows in kHistogramBins bins of equal width from `least` to `greatest`, the last one closed.
  /// One bin where all values are equal.
  std::vector<std::int64_t> histogram;
};

struct ValueCount {
  std::string name;
  std::int64_t rows = 0;
};

/// One column of the rows that are described.
struct ColumnSummary {
  std::string name;
  ColumnKind kind = ColumnKind::kNumber;
  bool is_date = false;
  std::int64_t rows = 0;
  std::int64_t missing = 0;  ///< of these
  std::int64_t distinct = 0;
  std::optional<NumberSummary> numbers;  ///< of numbers and times, unless all are missing
  /// Of categories and texts: at most kMostListedValues, the most frequent first; equally frequent
  /// ones in the order of their names' indices.
  std::vector<ValueCount> frequent;

  double missing_share() const {
    return rows == 0 ? 0 : static_cast<double>(missing) / static_cast<double>(rows);
  }
};

ColumnSummary summarize(const DescribedColumn& column);

// Found by nlohmann::json. from_json throws nlohmann's exceptions on anything else.
void to_json(nlohmann::json& json, const ColumnSummary& summary);
void from_json(const nlohmann::json& json, ColumnSummary& summary);

}  // namespace treadle::describe
