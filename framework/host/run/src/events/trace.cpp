#include "events/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include <treadle/base/atomic_file.h>

namespace treadle::internal {
namespace {

/// Nanoseconds as microseconds, Chrome's unit.
std::string microseconds(std::int64_t nanoseconds) {
  std::array<char, 32> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(),
                    1e-3 * static_cast<double>(nanoseconds), std::chars_format::fixed, 3);
  return {digits.data(), end};
}

std::string text_of(const Timeline::Event& event) {
  std::string text = R"({"ph":"X","pid":1,"tid":)" + std::to_string(event.lane + 1);
  text += R"(,"name":")" + std::string(name_of(event.phase));
  text += R"(","ts":)" + microseconds(event.start);
  return text + R"(,"dur":)" + microseconds(event.duration) + "}";
}

}  // namespace

nlohmann::json time_record(const Timeline& timeline, int workers, std::size_t shards) {
  const double passed = timeline.seconds_passed();
  const double budget = passed * workers;
  nlohmann::json phases = nlohmann::json::object();
  double used = 0;
  for (std::size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    const double seconds = timeline.seconds(phase);
    phases[std::string(name_of(phase))] = seconds;
    used += seconds;
  }
  phases["idle"] = std::max(0.0, budget - used);
  return {{"seconds", passed},
          {"workers", workers},
          {"shards", shards},
          {"phases", std::move(phases)},
          {"budget_used", budget > 0 ? std::min(1.0, used / budget) : 0.0},
          {"training_rows_per_second",
           passed > 0 ? static_cast<double>(timeline.rows()) / passed : 0.0}};
}

void write_trace(const Timeline& timeline, const std::filesystem::path& path) {
  const std::vector<Timeline::Event> events = timeline.events();
  std::uint32_t lanes = 0;
  for (const Timeline::Event& event : events)
    lanes = std::max(lanes, event.lane + 1);
  write_file_atomically(path, [&](FileWriter& file) {
    std::string text = R"({"displayTimeUnit":"ms","otherData":{"events_left_out":)" +
                       std::to_string(timeline.events_left_out()) + "},\n\"traceEvents\":[\n";
    text += R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"treadle"}})";
    for (std::uint32_t lane = 1; lane <= lanes; ++lane) {
      text += R"(,
{"ph":"M","pid":1,"tid":)" +
              std::to_string(lane) + R"(,"name":"thread_name","args":{"name":"worker )" +
              std::to_string(lane) + R"("}})";
    }
    constexpr std::size_t kChunk = std::size_t{1} << 16;
    for (const Timeline::Event& event : events) {
      text += ",\n" + text_of(event);
      if (text.size() < kChunk)
        continue;
      file.write(text);
      text.clear();
    }
    file.write(text + "\n]}\n");
  });
}

}  // namespace treadle::internal
