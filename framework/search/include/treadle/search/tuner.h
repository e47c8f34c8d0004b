#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/base/random.h>
#include <treadle/search/search_space.h>

namespace treadle {

enum class TrialState {
  kRunning,   ///< suggested, and without result as far as the tuner may see
  kPaused,    ///< trained in part; has intermediate values, and may go on
  kComplete,  ///< has its objective values
  kPruned,    ///< ended early; has intermediate values
  kFailed     ///< ended without a result
};

/// An objective value that a trial reported on its way.
struct IntermediateValue {
  std::int64_t step = 0;
  double value = 0;
};

/// One trial of a study, as a tuner sees it. Made by the framework.
struct Trial {
  std::int64_t number = 0;  ///< from 0, in the order of suggestions
  TrialState state = TrialState::kRunning;
  Point point;
  /// By the tuner; otherwise its point is the document's, or a pruner's.
  bool is_suggested = true;
  /// Of a complete trial: one per objective, the same number in every trial. All are minimized: the
  /// framework negates what a document maximizes. May be NaN or infinite.
  std::vector<double> values;
  /// Each is satisfied at or below 0; empty where the study has none or the trial has not come that
  /// far.
  std::vector<double> constraints;
  std::vector<IntermediateValue> intermediate;  ///< steps ascend
  /// Of a trial that began with the weights of another one: its number.
  std::optional<std::int64_t> copied_from = std::nullopt;
};

/// How many trials before `number` the tuner suggested.
std::int64_t suggestion_number(std::span<const Trial> visible, std::int64_t number);

/// Suggests the points of a hyperparameter search: at random, on a grid, or by a model of the
/// trials so far. Named in the document's search.
///
/// A suggestion is a function of its arguments: the space, the visible trials, the number of the
/// trial and the random streams of the study. The framework decides which results are visible when
/// (suggestion k sees those of trials <= k - lag, later ones as running), so a study has the same
/// trials for any number of workers and after any resume. A tuner therefore has no state. It may
/// keep what it computed for earlier calls, and must check that it still fits: the results may not
/// depend on it.
///
/// Thread-safe: one object may be asked from several threads, and about several studies.
class Tuner : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.tuner/0";

  ~Tuner() override;

  /// The point of trial `number`; nothing when the tuner has no more points, as a grid whose points
  /// have all been tried. `visible` has trials with numbers below `number`, in ascending order;
  /// suggested ones may be missing. A sequence of points goes by suggestion_number(). `random` are
  /// the streams of the study: use them with `number` in the place, `random.bits("candidates",
  /// {number})`.
  std::optional<Point> suggest(const SearchSpace& space, std::span<const Trial> visible,
                               std::int64_t number, const RandomStreams& random) const;

  /// Whether it minimizes several objectives at once. One that does not is never given trials with
  /// several values.
  bool takes_several_objectives() const;

 private:
  // A point outside the space becomes a PluginError.
  virtual std::optional<Point> do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                          std::int64_t number,
                                          const RandomStreams& random) const = 0;
  virtual bool do_takes_several_objectives() const { return false; }
};

}  // namespace treadle
