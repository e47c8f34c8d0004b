#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <treadle/base/component.h>
#include <treadle/search/tuner.h>

namespace treadle {

/// The study that a pruner decides about. All values of its trials are minimized.
struct StudyView {
  /// The trials whose results may be seen, and those that run beside them, in the order of their
  /// numbers. Of a trial that runs, `intermediate` has the values from before its current job.
  std::span<const Trial> trials;
  /// How many trials the document asks for.
  std::int64_t max_trials = 0;
  /// Whether another trial may be started: fewer have been started, and the tuner has more points.
  bool may_start = true;
  /// The document maximizes the objective, so values here are its values negated.
  bool maximizes = false;
  // For a pruner that makes points of its own, as populations do. The random streams are the
  // study's: use them with the number of the trial in the place.
  const SearchSpace* space = nullptr;
  const RandomStreams* random = nullptr;
};

enum class PrunerVerdict {
  kContinue,
  kPause,  ///< it saves a checkpoint and ends its job; another job may go on with it
  kPrune   ///< it ends here for good
};

/// What a study does next.
struct NextJob {
  enum class Kind {
    kStart,   ///< another trial
    kResume,  ///< `trial`, which is paused, goes on
    kPrune,   ///< `trial`, which is paused, is ended for good; its checkpoint is removed
    kWait     ///< nothing before one more result can be seen
  };
  Kind kind = Kind::kStart;
  /// Of kStart: -1, or a paused trial whose weights and optimizer the new one begins with, and
  /// whose epochs it has behind it.
  std::int64_t trial = -1;
  /// Of kStart: the values of the new trial, where the tuner is not to be asked.
  std::optional<Point> point = std::nullopt;
};

/// Spends less on trials that do not promise much: ends them early, or pauses them and goes on with
/// the best. Named in the document's search.
///
/// A study is a sequence of jobs. Each starts a trial, or goes on with a paused one, up to where it
/// completes, is pruned, or is paused (again). Job n is decided, and its trial judged, with the
/// results of the jobs <= n - search.parallel and of those that an earlier job has waited for,
/// whatever else has ended by then; a pruner that answers kWait is asked again with one more. So a
/// study is the same for any number of workers and after any resume, and a pruner has no state.
///
/// Steps are epochs, from 1. A trial completes at the last of its epochs, and is not judged there.
/// Trials have one objective.
///
/// Thread-safe: one object may be asked from several threads, and about several studies.
class Pruner : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.pruner/0";

  ~Pruner() override;

  /// The first step behind `after` at which this trial is judged; nothing: at none. `after` is 0 at
  /// first. Expects after >= 0.
  std::optional<std::int64_t> next_step(std::int64_t trial, std::int64_t after) const;

  /// Judges a running trial at a step that next_step() named: the last one of `trial.intermediate`,
  /// which has all values up to it. The value may be NaN. `study` has the trial, too, as others see
  /// it.
  PrunerVerdict judge(const Trial& trial, const StudyView& study) const;

  /// Why it changes nothing in a study of so many trials at most; empty: it may.
  std::string why_idle(std::int64_t max_trials) const;

  /// What the next job does. With nothing to wait for (no trial runs), kWait and kStart where
  /// `may_start` is false end the study. By default another trial is started.
  NextJob next_job(const StudyView& study) const;

 private:
  // A step that is not behind `after`, a trial that is not paused, and a point outside the space
  // become a PluginError.
  virtual std::optional<std::int64_t> do_next_step(std::int64_t trial,
                                                   std::int64_t after) const = 0;
  virtual PrunerVerdict do_judge(const Trial& trial, const StudyView& study) const = 0;
  virtual NextJob do_next_job(const StudyView& study) const;
  virtual std::string do_why_idle(std::int64_t max_trials) const {
    static_cast<void>(max_trials);
    return "";
  }
};

}  // namespace treadle
