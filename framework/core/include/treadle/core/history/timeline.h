#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <treadle/core/devices/device_use.h>

namespace treadle {

/// The phases on which the threads of a run spend their time.
enum class Phase : std::uint8_t {
  kLoading,   ///< the data is read, rows are split, transforms are fitted
  kData,      ///< batches are gathered and transformed
  kForward,   ///< model and loss, in training
  kBackward,  ///< gradients
  kUpdate,    ///< gradients added and clipped, weights changed and averaged
  kExchange,  ///< with other processes, waiting for them included
  kReplay,    ///< for a device: a captured step is enqueued
  kWaiting,   ///< for a device: its numbers are read, predictions come back
  kMetrics,   ///< validation rows: model, loss and metrics
  kSaving     ///< state copied for a checkpoint
};
inline constexpr std::size_t kPhases = 10;

/// "loading", "data", "forward", …
std::string_view name_of(Phase phase);

/// Where the time of a run goes: sums per phase, and on demand every span of it; what it did with
/// its device.
///
/// A span costs two readings of the clock and an addition. One per run; any thread may add to it.
/// Phases do not nest: whatever adds to one works, and does not wait for others.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  /// One piece of work. `lane` numbers the threads in the order in which they came.
  struct Event {
    Phase phase;
    std::uint32_t lane;
    std::int64_t start;     ///< nanoseconds after the timeline's beginning
    std::int64_t duration;  ///< nanoseconds
  };

  /// One step of a training, on the device's clock.
  struct DeviceSpan {
    std::int64_t start;     ///< nanoseconds after the timeline's beginning
    std::int64_t duration;  ///< nanoseconds
  };

  /// The counters of the device at some time: sums since the run began.
  struct DeviceSample {
    std::int64_t time;  ///< nanoseconds after the timeline's beginning
    std::int64_t memory_in_use;
    std::int64_t bytes_to_device;
    std::int64_t waits;
  };

  /// Further spans are counted but not kept: viewers cannot open longer traces.
  static constexpr std::size_t kMostEvents = 2'000'000;

  explicit Timeline(bool keeps_events = false);
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Adds the time from its making to its end. A null timeline is for work that is not timed.
  class Span {
   public:
    Span(Timeline* timeline, Phase phase)
        : timeline_(timeline),
          phase_(phase),
          start_(timeline != nullptr ? Clock::now() : Clock::time_point()) {}
    ~Span() {
      if (timeline_ != nullptr)
        timeline_->add(phase_, start_, Clock::now());
    }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Timeline* const timeline_;
    const Phase phase_;
    const Clock::time_point start_;
  };

  DeviceUse& device_use() { return device_use_; }
  const DeviceUse& device_use() const { return device_use_; }
  /// Whether spans and samples are kept: others need not be made.
  bool keeps_events() const { return keeps_events_; }
  /// Nothing unless events are kept.
  void add_device_span(Clock::time_point start, double seconds);
  /// With DeviceUse's sums. Nothing unless events are kept.
  void sample_device(std::int64_t memory_in_use);

  /// Rows that a training step has seen.
  void count_rows(std::int64_t rows) { rows_.fetch_add(rows, std::memory_order_relaxed); }

  std::int64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  /// Over all threads, which work at once: may exceed the time that has passed.
  double seconds(Phase phase) const;
  /// Since the timeline was made.
  double seconds_passed() const;

  /// In the order in which they ended; empty unless it keeps them.
  std::vector<Event> events() const;
  /// In the order in which they were added.
  std::vector<DeviceSpan> device_spans() const;
  std::vector<DeviceSample> device_samples() const;
  std::size_t events_left_out() const;

 private:
  void add(Phase phase, Clock::time_point start, Clock::time_point end);

  const bool keeps_events_;
  const Clock::time_point begun_ = Clock::now();
  std::array<std::atomic<std::int64_t>, kPhases> nanoseconds_{};
  std::atomic<std::int64_t> rows_{0};
  DeviceUse device_use_;

  mutable std::mutex mutex_;  // for what follows; not taken when no events are kept
  std::vector<Event> events_;
  std::vector<DeviceSpan> device_spans_;
  std::vector<DeviceSample> device_samples_;
  std::map<std::thread::id, std::uint32_t> lanes_;
  std::size_t left_out_ = 0;
};

}  // namespace treadle
