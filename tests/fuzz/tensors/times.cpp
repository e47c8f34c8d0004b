#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/table/date_format.h>
#include <treadle/table/time_zone.h>

#include "targets.h"

namespace treadle::fuzz {
namespace {

std::string_view cut_part(std::string_view& bytes) {
  const std::size_t end = bytes.rfind(kSeparator);
  const std::string_view part = end == std::string_view::npos ? bytes : bytes.substr(end + 1);
  bytes = end == std::string_view::npos ? std::string_view() : bytes.substr(0, end);
  return part;
}

void check_zone(const table::TimeZone& zone) {
  constexpr std::int64_t kMost = 26 * 3600;
  for (std::int64_t local = -70'000'000'000; local < 260'000'000'000; local += 7'777'777'777) {
    promise(std::abs(zone.offset_at(local)) < kMost, "an offset is less than 26 hours");
    const table::TimeZone::Offsets offsets = zone.offsets_of(local);
    for (int i = 0; i < offsets.count; ++i) {
      const std::int64_t offset = offsets.seconds[static_cast<std::size_t>(i)];
      promise(zone.offset_at(local - offset) == offset, "the instant of an offset has that offset");
    }
    promise(offsets.count < 2 || offsets.seconds[0] > offsets.seconds[1],
            "the earlier of two instants comes first");
  }
}

}  // namespace

void times(std::string_view bytes) {
  const std::string text(cut_part(bytes));
  const std::string format(cut_part(bytes));
  std::optional<table::TimeZone> zone = table::TimeZone::parse(bytes, "x");
  if (zone)
    check_zone(*zone);
  std::optional<table::DateFormat> dates;
  try {
    dates.emplace(format, std::move(zone), table::Ambiguous::kEarliest);
  } catch (const UsageError& error) {
    promise_readable(error.what(), 2000 + 4 * format.size());
    return;
  }
  table::DateFormat::Time time;
  std::string problem;
  if (dates->read(text, time, &problem)) {
    promise(std::isfinite(time.seconds) && std::abs(time.ahead) < 26 * 3600.0,
            "a time is a number of seconds, and its clock near UTC");
  } else if (!problem.empty()) {
    promise_readable(problem, 1000);
  }
}

}  // namespace treadle::fuzz
