#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

namespace treadle {

/// The clocks that times were read from: "2024-06-01T00:00+02:00" is a Saturday, though its time,
/// RowReader::timestamps(), is the Friday before at 22:00. Hours, days of the week and days of a
/// calendar are those of the clock; order and distances are those of the time.
///
/// An optional ability of a DataProvider (`provider.ask<LocalTimes>()`), after open().
class LocalTimes {
 public:
  static constexpr std::string_view kInterface = "treadle.local-times/0";

  virtual ~LocalTimes();

  /// Seconds that the clock of each row is ahead of UTC: float64 [rows]. Undefined: 0 each.
  at::Tensor utc_offsets() const { return do_utc_offsets(); }

 private:
  virtual at::Tensor do_utc_offsets() const = 0;
};

}  // namespace treadle
