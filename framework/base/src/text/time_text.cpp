#include <treadle/base/time_text.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace treadle {
namespace {

// Beyond the years 0 to 9999 a number says more than a date.
constexpr double kFirstSecond = -62167219200.0;
constexpr double kLastSecond = 253402300799.0;

template <typename... Values>
std::string print(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace

std::string time_text(double time, bool is_date) {
  char text[48];
  if (!is_date || !(time >= kFirstSecond && time <= kLastSecond)) {
    std::snprintf(text, sizeof(text), "%.15g", time);
    return text;
  }
  const std::chrono::sys_seconds moment{
      std::chrono::seconds(static_cast<std::int64_t>(std::floor(time)))};
  const auto day = std::chrono::floor<std::chrono::days>(moment);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(moment - day);
  const int length = std::snprintf(
      text, sizeof(text), "%04d-%02u-%02u %02d:%02d", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()));
  if (clock.seconds().count() != 0) {
    std::snprintf(text + length, sizeof(text) - static_cast<std::size_t>(length), ":%02d",
                  static_cast<int>(clock.seconds().count()));
  }
  return text;
}

std::string seconds_text(double seconds) {
  if (seconds < 1)
    return print("%.2f s", seconds);
  if (seconds < 59.95)
    return print("%.1f s", seconds);
  const long long whole = std::llround(seconds);
  if (whole < 3600)
    return print("%lld:%02lld min", whole / 60, whole % 60);
  return print("%lld:%02lld:%02lld h", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string fine_seconds_text(double seconds) {
  return seconds > 0 && seconds < 0.00995 ? print("%.1f ms", seconds * 1e3) : seconds_text(seconds);
}

}  // namespace treadle
