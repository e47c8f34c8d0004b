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

namespace treadle {

/// What the threads of a run spend their time on.
enum class Phase : std::uint8_t {
  kLoading,   ///< the data is read, rows are split, transforms are fitted
  kData,      ///< batches are gathered and transformed
  kForward,   ///< model and loss, in training
  kBackward,  ///< gradients
  kUpdate,    ///< gradients added and clipped, weights changed and averaged
  kMetrics,   ///< validation rows: model, loss and metrics
  kSaving     ///< state copied for a checkpoint
};
inline constexpr std::size_t kPhases = 7;

/// "loading", "data", "forward", …
std::string_view name_of(Phase phase);

/// Where the time of a run goes: sums per phase, and on demand every span of it.
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

  /// Rows that a training step has seen.
  void count_rows(std::int64_t rows) { rows_.fetch_add(rows, std::memory_order_relaxed); }

  std::int64_t rows() const { return rows_.load(std::memory_order_relaxed); }
  /// Over all threads, which work at once: may exceed the time that has passed.
  double seconds(Phase phase) const;
  /// Since the timeline was made.
  double seconds_passed() const;

  /// In the order in which they ended; empty unless it keeps them.
  std::vector<Event> events() const;
  std::size_t events_left_out() const;

 private:
  void add(Phase phase, Clock::time_point start, Clock::time_point end);

  const bool keeps_events_;
  const Clock::time_point begun_ = Clock::now();
  std::array<std::atomic<std::int64_t>, kPhases> nanoseconds_{};
  std::atomic<std::int64_t> rows_{0};

  mutable std::mutex mutex_;  // for what follows; not taken when no events are kept
  std::vector<Event> events_;
  std::map<std::thread::id, std::uint32_t> lanes_;
  std::size_t left_out_ = 0;
};

}  // namespace treadle
