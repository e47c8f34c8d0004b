#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/row_reader.h>

#include "time_grid.h"

namespace treadle::series {

/// How rows become series; series.schema.json has the parameters.
struct SeriesOptions {
  enum class Fill { kError, kForward, kLinear, kZero };
  /// Values of an input column some steps before, or the change since then.
  struct Lag {
    std::string column;
    std::int64_t steps = 1;
    bool is_difference = false;

    /// Of the column it becomes: "sales_lag_7", "sales_diff_1".
    std::string name() const {
      return column + (is_difference ? "_diff_" : "_lag_") + std::to_string(steps);
    }
  };

  explicit SeriesOptions(const Config& config);

  std::optional<TimeGrid> grid;  ///< absent: rows keep their times
  std::string aggregate = "mean";
  Fill fill = Fill::kError;
  std::vector<std::string> calendar;
  std::vector<Lag> lags;
};

/// The rows of `source` as series, in memory: one series after the other in the order in which they
/// begin, each in order of time. Inputs and targets are tables; calendar and lags are further
/// columns of the first input of numbers. `utc_offsets`: LocalTimes of the source; days of the grid
/// and features of the calendar are those of its clocks. Throws DataError for data that cannot be
/// series so.
MatrixRows::Matrices series_rows(const RowReader& source, const SeriesOptions& options,
                                 const at::Tensor& utc_offsets = {});

}  // namespace treadle::series
