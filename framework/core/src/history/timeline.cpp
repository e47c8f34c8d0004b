#include <treadle/core/history/timeline.h>

namespace treadle {
namespace {

constexpr std::array<std::string_view, kPhases> kNames = {
    "loading",  "data",   "forward", "backward", "update",
    "exchange", "replay", "waiting", "metrics",  "saving"};

std::int64_t in_nanoseconds(Timeline::Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

}  // namespace

std::string_view name_of(Phase phase) {
  return kNames[static_cast<std::size_t>(phase)];
}

Timeline::Timeline(bool keeps_events) : keeps_events_(keeps_events) {}

double Timeline::seconds(Phase phase) const {
  return 1e-9 * static_cast<double>(
                    nanoseconds_[static_cast<std::size_t>(phase)].load(std::memory_order_relaxed));
}

double Timeline::seconds_passed() const {
  return 1e-9 * static_cast<double>(in_nanoseconds(Clock::now() - begun_));
}

std::vector<Timeline::Event> Timeline::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

std::vector<Timeline::DeviceSpan> Timeline::device_spans() const {
  const std::lock_guard lock(mutex_);
  return device_spans_;
}

std::vector<Timeline::DeviceSample> Timeline::device_samples() const {
  const std::lock_guard lock(mutex_);
  return device_samples_;
}

void Timeline::add_device_span(Clock::time_point start, double seconds) {
  if (!keeps_events_)
    return;
  const std::lock_guard lock(mutex_);
  if (device_spans_.size() == kMostEvents) {
    ++left_out_;
    return;
  }
  device_spans_.push_back(
      {in_nanoseconds(start - begun_), static_cast<std::int64_t>(1e9 * seconds)});
}

void Timeline::sample_device(std::int64_t memory_in_use) {
  if (!keeps_events_)
    return;
  const DeviceUse::Totals now = device_use_.totals();
  const std::lock_guard lock(mutex_);
  device_samples_.push_back(
      {in_nanoseconds(Clock::now() - begun_), memory_in_use, now.bytes_to_device, now.waits});
}

std::size_t Timeline::events_left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

void Timeline::add(Phase phase, Clock::time_point start, Clock::time_point end) {
  const std::int64_t duration = in_nanoseconds(end - start);
  nanoseconds_[static_cast<std::size_t>(phase)].fetch_add(duration, std::memory_order_relaxed);
  if (!keeps_events_)
    return;
  const std::lock_guard lock(mutex_);
  if (events_.size() == kMostEvents) {
    ++left_out_;
    return;
  }
  const auto lane =
      lanes_.try_emplace(std::this_thread::get_id(), static_cast<std::uint32_t>(lanes_.size()))
          .first->second;
  events_.push_back({phase, lane, in_nanoseconds(start - begun_), duration});
}

}  // namespace treadle
