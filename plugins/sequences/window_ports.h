#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <treadle/core/data/data_spec.h>

namespace treadle::sequences {

/// The rows of a sample that an input of windows has.
enum class WindowPart {
  kLookback,  ///< the rows before the forecast
  kHorizon,   ///< the rows to predict: columns known in advance
  kFirstRow   ///< one row: columns that are the same in all rows of a series
};

/// One input of windows: some columns of an input of the rows and, behind them, numbers of targets.
struct WindowPort {
  PortSpec spec;  ///< of one row, {width}
  WindowPart part = WindowPart::kLookback;
  std::size_t input = 0;              ///< of the rows
  std::vector<std::int64_t> columns;  ///< of that input, ascending
  std::vector<std::size_t> joined = {};
};

/// The columns that a document names.
struct NamedColumns {
  std::vector<std::string> future;      ///< known in advance: "future"
  std::vector<std::string> unchanging;  ///< the same in all rows of a series: "static"
};

/// The inputs of windows over such rows, tables all of them: each table without its static columns;
/// then "future" and "static", and "future.categories" and "static.categories" of tables of
/// categories. With several tables of numbers these follow the name of each: "<table>.future".
/// `joined`: the targets to put behind the first table of numbers. Throws DataError for a column
/// that no table has.
std::vector<WindowPort> window_ports(const DataSpec& rows, const NamedColumns& named,
                                     const std::vector<std::size_t>& joined);

}  // namespace treadle::sequences
