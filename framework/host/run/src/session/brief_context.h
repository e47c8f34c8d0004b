#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <treadle/engine/run_context.h>

#include "session/fit.h"
#include "store/state_snapshot.h"

namespace treadle::internal {

/// When a training that is only tried ends.
struct TriedSteps {
  std::int64_t fewest = 1;
  std::int64_t most = 1;
  std::chrono::seconds patience{0};  ///< between the two
};

/// After `fewest` every buffer of the batch pipeline is in use. After `most` the allocator keeps
/// about as much for the next step as in a long run: after six steps the estimate for two layers of
/// 2048 varied between 114 and 131 MB, after these between 127 and 131.
inline constexpr TriedSteps kLongDryRun{6, 24, std::chrono::seconds(10)};

/// Enough rows for some steps or evaluation batches: the first of a fold's.
inline RowList first_of(const RowList& rows, std::int64_t count) {
  return rows.part(0, std::min(rows.size(), static_cast<std::size_t>(count)));
}

/// Lets a training make a few steps and then asks it to stop. Keeps nothing.
class BriefContext final : public engine::RunContext {
 public:
  BriefContext(const Fit& fit, const TriedSteps& steps) : fit_(fit), steps_(steps) {}

  /// Of a step behind the first, which warms caches up; nothing where there was only one.
  std::optional<double> seconds_per_step() const {
    if (steps_made_ < 2)
      return std::nullopt;
    return std::chrono::duration<double>(last_ - first_).count() /
           static_cast<double>(steps_made_ - 1);
  }

 private:
  const FitId& do_fit() const override { return fit_.id(); }
  const RandomStreams& do_random() const override { return fit_.random(); }
  std::stop_token do_stop_token() const override { return stop_.get_token(); }
  void do_step_completed(const StepProgress& progress) override {
    last_ = Clock::now();
    if (steps_made_++ == 0)
      first_ = last_;
    if (progress.step < steps_.fewest)
      return;
    if (progress.step >= steps_.most || Clock::now() - start_ > steps_.patience)
      stop_.request_stop();
  }
  void do_epoch_completed(const EpochSummary&) override {}
  void do_note(const std::string&) override {}
  // A real run writes a copy, and keeps the copy's memory.
  void do_save_checkpoint(const StateDict& state, const engine::TrainingPosition&, int) override {
    saved_.take(state);
  }
  std::optional<StateDict> do_resume_state() override { return std::nullopt; }
  std::string do_last_checkpoint() const override { return {}; }

  using Clock = std::chrono::steady_clock;

  const Fit& fit_;
  const TriedSteps steps_;
  const Clock::time_point start_ = Clock::now();
  std::int64_t steps_made_ = 0;
  Clock::time_point first_;
  Clock::time_point last_;
  std::stop_source stop_;
  StateSnapshot saved_;
};

}  // namespace treadle::internal
