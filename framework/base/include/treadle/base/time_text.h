#pragma once

#include <string>

namespace treadle {

/// A time of the data as a person writes it. Of dates, which are seconds since
/// 1970-01-01T00:00:00Z: "2017-06-28 00:00", with seconds where there are any, fractions left out;
/// else the number.
std::string time_text(double time, bool is_date);

}  // namespace treadle
