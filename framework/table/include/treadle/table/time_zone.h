#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::table {

/// The rule by which a zone's clocks change each year: POSIX TZ, "CET-1CEST,M3.5.0,M10.5.0/3".
struct YearlyRule {
  /// A day of each year and the time of the clock before the change.
  struct Change {
    enum class Day : std::uint8_t {
      kWeekday,         ///< Mm.w.d
      kDayWithoutLeap,  ///< Jn: February 29 is not counted
      kDayOfYear        ///< n
    };
    Day day = Day::kDayOfYear;
    int month = 0;    ///< 1 to 12
    int week = 0;     ///< 1 to 5, which is the last
    int weekday = 0;  ///< 0 is Sunday
    int number = 0;   ///< of the day; from 1 for kDayWithoutLeap, else from 0
    std::int64_t seconds = 7200;
  };

  std::int64_t standard = 0;           ///< seconds ahead of UTC
  std::optional<std::int64_t> summer;  ///< absent: no change
  Change begin;                        ///< of summer
  Change end;

  std::int64_t offset_at(std::int64_t utc) const;
};

/// Null where the text is none.
std::optional<YearlyRule> read_yearly_rule(std::string_view text);

/// How far the clocks of a place are ahead of UTC, at any time. Immutable, thread-safe.
///
/// Read from the system's tz database, the files of RFC 8536 (TZif) in $TZDIR or
/// /usr/share/zoneinfo; or a fixed offset.
class TimeZone {
 public:
  /// The offsets that a clock's time may have: none when clocks are set forward over it, two when
  /// it comes twice, the earlier instant first.
  struct Offsets {
    int count = 0;
    std::array<std::int64_t, 2> seconds{};
  };

  /// `name`: "Europe/Berlin", "UTC", or an offset, "+01:00". Throws UsageError for another one, and
  /// DataError for one whose file is missing or damaged.
  static TimeZone load(const std::string& name);
  /// From the contents of a TZif file; absent where these are damaged.
  static std::optional<TimeZone> parse(std::string_view bytes, std::string name);

  const std::string& name() const { return name_; }
  /// At seconds since 1970-01-01T00:00:00Z: seconds ahead of UTC.
  std::int64_t offset_at(std::int64_t utc) const;
  /// Of what a clock shows: `local` counts its seconds since its 1970-01-01 00:00.
  Offsets offsets_of(std::int64_t local) const;

 private:
  struct Transition {
    std::int64_t utc = 0;
    std::int64_t offset = 0;  // from then on
  };

  std::string name_;
  std::int64_t first_ = 0;  // the offset before all transitions
  std::vector<Transition> transitions_;
  std::optional<YearlyRule> rule_;  // after them
};

}  // namespace treadle::table
