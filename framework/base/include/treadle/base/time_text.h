#pragma once

#include <string>

namespace treadle {

/// A time of the data as a person writes it. Of dates, which are seconds since
/// 1970-01-01T00:00:00Z: "2017-06-28 00:00", with seconds where there are any, fractions left out;
/// else the number.
std::string time_text(double time, bool is_date);

/// A duration: "0.42 s", "12.3 s", "4:05 min", "2:07:10 h".
std::string seconds_text(double seconds);
/// With milliseconds where that would be 0.00 s.
std::string fine_seconds_text(double seconds);

}  // namespace treadle
