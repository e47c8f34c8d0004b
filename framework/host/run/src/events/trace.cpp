#include "events/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

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

// A process of its own in the viewer, below that of the threads.
constexpr const char* kDeviceProcess = "2";

std::string text_of(const Timeline::DeviceSpan& step) {
  return R"({"ph":"X","pid":)" + std::string(kDeviceProcess) + R"(,"tid":1,"name":"step","ts":)" +
         microseconds(step.start) + R"(,"dur":)" + microseconds(step.duration) + "}";
}

std::string counter(const char* name, const char* unit, std::int64_t time, std::int64_t value) {
  return R"({"ph":"C","pid":)" + std::string(kDeviceProcess) + R"(,"name":")" + name +
         R"(","ts":)" + microseconds(time) + R"(,"args":{")" + unit +
         "\":" + std::to_string(value) + "}}";
}

/// The device's lines: empty for a run on a CPU.
std::vector<std::string> device_lines(const Timeline& timeline) {
  std::vector<std::string> lines;
  const std::vector<Timeline::DeviceSpan> steps = timeline.device_spans();
  const std::vector<Timeline::DeviceSample> samples = timeline.device_samples();
  if (steps.empty() && samples.empty())
    return lines;
  const std::string metadata = R"({"ph":"M","pid":)" + std::string(kDeviceProcess);
  lines.push_back(metadata + R"(,"name":"process_name","args":{"name":"device"}})");
  lines.push_back(metadata + R"(,"tid":1,"name":"thread_name","args":{"name":"steps"}})");
  for (const Timeline::DeviceSpan& step : steps)
    lines.push_back(text_of(step));
  for (const Timeline::DeviceSample& sample : samples) {
    lines.push_back(counter("memory in use", "bytes", sample.time, sample.memory_in_use));
    lines.push_back(counter("copied to device", "bytes", sample.time, sample.bytes_to_device));
    lines.push_back(counter("waits", "count", sample.time, sample.waits));
  }
  return lines;
}

/// Names of hosts may be any bytes.
std::string written(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// About the whole trace.
nlohmann::ordered_json facts_of(const Timeline& timeline, const std::vector<std::string>& hosts) {
  nlohmann::ordered_json facts{{"events_left_out", timeline.events_left_out()}};
  if (!hosts.empty()) {
    facts["rank"] = 0;
    facts["hosts"] = hosts;
  }
  return facts;
}

std::string text_of(const Timeline::Event& event) {
  std::string text = R"({"ph":"X","pid":1,"tid":)" + std::to_string(event.lane + 1);
  text += R"(,"name":")" + std::string(name_of(event.phase));
  text += R"(","ts":)" + microseconds(event.start);
  return text + R"(,"dur":)" + microseconds(event.duration) + "}";
}

}  // namespace

TimeResult time_result(const Timeline& timeline, int workers, std::size_t shards, bool has_device) {
  const double passed = timeline.seconds_passed();
  const double budget = passed * workers;
  std::map<std::string, double> phases;
  double used = 0;
  for (std::size_t i = 0; i < kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    if ((phase == Phase::kWaiting || phase == Phase::kReplay) && !has_device)
      continue;
    const double seconds = timeline.seconds(phase);
    if (phase == Phase::kExchange && seconds == 0)
      continue;
    phases[std::string(name_of(phase))] = seconds;
    used += seconds;
  }
  phases["idle"] = std::max(0.0, budget - used);
  return {passed,
          workers,
          static_cast<std::int64_t>(shards),
          std::move(phases),
          budget > 0 ? std::min(1.0, used / budget) : 0.0,
          passed > 0 ? static_cast<double>(timeline.rows()) / passed : 0.0,
          {}};
}

DeviceResult device_result(const Timeline& timeline, const std::string& device) {
  const DeviceUse::Totals use = timeline.device_use().totals();
  return {device,
          use.copies_to_device,
          use.bytes_to_device,
          use.copies_to_host,
          use.bytes_to_host,
          use.waits,
          timeline.seconds(Phase::kWaiting),
          use.memory_peak,
          use.memory_reserved,
          use.busy_seconds,
          use.idle_seconds,
          use.idle_fraction()};
}

void write_trace(const Timeline& timeline, const std::filesystem::path& path,
                 const std::vector<std::string>& hosts) {
  const std::vector<Timeline::Event> events = timeline.events();
  std::uint32_t lanes = 0;
  for (const Timeline::Event& event : events)
    lanes = std::max(lanes, event.lane + 1);
  write_file_atomically(path, [&](FileWriter& file) {
    std::string text = R"({"displayTimeUnit":"ms","otherData":)" +
                       written(facts_of(timeline, hosts)) + ",\n\"traceEvents\":[\n";
    text += R"({"ph":"M","pid":1,"name":"process_name","args":{"name":)" +
            written(hosts.empty() ? "treadle" : "treadle, rank 0 on " + hosts.front()) + "}}";
    for (std::uint32_t lane = 1; lane <= lanes; ++lane) {
      text += R"(,
{"ph":"M","pid":1,"tid":)" +
              std::to_string(lane) + R"(,"name":"thread_name","args":{"name":"worker )" +
              std::to_string(lane) + R"("}})";
    }
    const auto add = [&](const std::string& line) {
      constexpr std::size_t kChunk = std::size_t{1} << 16;
      text += ",\n" + line;
      if (text.size() < kChunk)
        return;
      file.write(text);
      text.clear();
    };
    for (const Timeline::Event& event : events)
      add(text_of(event));
    for (const std::string& line : device_lines(timeline))
      add(line);
    file.write(text + "\n]}\n");
  });
}

}  // namespace treadle::internal
