#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/table/time_zone.h>

namespace treadle::table {

/// The meaning of a clock time that comes twice, when clocks are set back.
enum class Ambiguous : std::uint8_t { kError, kEarliest, kLatest };

/// How dates and times are written, and the zone of those without an offset: the parameters
/// `date_format`, `timezone` and `ambiguous`. Immutable, thread-safe.
///
/// A format is "iso8601", "unix", "unix_ms" (numbers: seconds and milliseconds since 1970, UTC), or
/// a format of strptime, in English under any locale. Numbers may lack leading zeros unless a
/// number follows directly:
///
///     %Y year of four digits   %y of two: 69 to 99 are 19xx (POSIX)    %m month   %d day   %j of
///     the year %b %B month's name, short or long   %a %A weekday, which must fit the date %H hour
///     %I of 12, with %p (AM, PM)   %M minute   %S second   %f fraction, 1 to 9 digits %z "+02:00",
///     "+0200", "+02" or "Z"   %s seconds since 1970   %% the sign %F %Y-%m-%d   %T %H:%M:%S   %R
///     %H:%M   %D %m/%d/%y;   a space: one or more
class DateFormat {
 public:
  DateFormat() = default;  ///< "iso8601" in UTC
  /// Without a zone: UTC. Throws UsageError for a format that is none, or gives no date.
  explicit DateFormat(const std::string& format, std::optional<TimeZone> zone = std::nullopt,
                      Ambiguous ambiguous = Ambiguous::kError);

  struct Time {
    double seconds = 0;      ///< since 1970-01-01T00:00:00Z
    std::int64_t finer = 0;  ///< the first nine digits behind those of the microseconds
    double ahead = 0;        ///< seconds that the clock is ahead of UTC
  };
  /// False for a text that is no time. For a time that no clock has shown, or has shown twice,
  /// `problem` is the reason.
  bool read(std::string_view text, Time& time, std::string* problem = nullptr) const;

  bool is_iso() const { return kind_ == Kind::kIso; }
  /// Numbers stand for times: "unix", "unix_ms".
  bool is_number() const { return kind_ == Kind::kSeconds || kind_ == Kind::kMilliseconds; }
  /// For messages: "an ISO 8601 date or date and time", "a time as \"%d.%m.%Y\"".
  std::string expected() const;

 private:
  enum class Kind : std::uint8_t { kIso, kSeconds, kMilliseconds, kPattern };
  enum class Part : std::uint8_t {
    kLiteral,
    kSpaces,
    kYear,
    kShortYear,
    kMonth,
    kMonthName,
    kDay,
    kDayOfYear,
    kWeekday,
    kHour,
    kHourOf12,
    kHalf,
    kMinute,
    kSecond,
    kFraction,
    kOffset,
    kUnix
  };
  struct Step {
    Part part = Part::kLiteral;
    char literal = '\0';
    bool is_fixed = false;  ///< a number follows: all digits are there
  };
  struct Fields;

  void add_steps(std::string_view format);
  void check_steps() const;
  bool has(Part part) const;
  bool take(const Step& step, std::string_view text, std::size_t& at, Fields& fields) const;
  bool finish(const Fields& fields, Time& time, std::string* problem) const;
  bool read_pattern(std::string_view text, Time& time, std::string* problem) const;
  bool read_number(std::string_view text, Time& time) const;
  bool set_zone(double local, Time& time, std::string* problem) const;

  Kind kind_ = Kind::kIso;
  std::string format_ = "iso8601";
  std::vector<Step> steps_;
  std::optional<TimeZone> zone_;  // absent: UTC
  Ambiguous ambiguous_ = Ambiguous::kError;
};

/// The format that a text in another one than ISO 8601 is likely to have: "%d.%m.%Y"; empty for a
/// text that is no date.
std::string likely_date_format(std::string_view text);
/// The formats that likely_date_format() tries.
std::span<const char* const> common_date_formats();

}  // namespace treadle::table
