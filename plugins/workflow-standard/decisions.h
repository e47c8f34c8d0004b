#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/run_observer.h>
#include <treadle/core/state_dict.h>

#include "condition.h"

namespace treadle {

/// What a training changes by itself when its numbers go a certain way: "rate", "unfreeze" and
/// "stop" of its configuration.
struct DecisionPlan {
  struct Rate {
    Condition when;
    double factor = 1;
    std::optional<std::int64_t> times;  ///< at most; nothing: as often as it holds
  };
  struct Unfreezing {
    Condition when;
    std::vector<std::string> parameters;  ///< as written
    std::size_t entry = 0;                ///< which of "unfreeze" it is
  };
  std::vector<Rate> rates;
  std::vector<Unfreezing> unfreezings;
  std::optional<Condition> stop;

  static DecisionPlan configured_by(const Config& config);

  bool empty() const { return rates.empty() && unfreezings.empty() && !stop; }
  std::vector<const Condition*> conditions() const;
  /// The plan for a refit, of which only these numbers will be known and which stops when it is
  /// told to; the sentences say what was left out.
  DecisionPlan for_refit(const std::vector<std::string>& known,
                         std::vector<std::string>& left_out) const;
};

/// Follows one training, epoch by epoch, and decides. A function of the history alone: it may be
/// resumed from state().
///
/// Of the rates, and of the unfreezings, at most the first that holds is decided after an epoch;
/// the training stops only where neither is. Whatever is changed, the windows begin anew: what was
/// before it says nothing of how the training goes now.
class Decisions final : public Stateful {
 public:
  Decisions(DecisionPlan plan, std::int64_t steps_per_epoch, std::int64_t total_steps);

  struct Made {
    std::vector<std::string> texts;       ///< what, and why: for the history
    std::optional<std::size_t> unfrozen;  ///< the entry of "unfreeze"
    std::string stop_reason;              ///< empty: it goes on
  };
  /// Throws a TrainingError when a number is gone that was there before.
  Made after(const EpochSummary& row);

  /// What the schedule's rate is to be multiplied by.
  double rate_factor() const { return rate_factor_; }
  /// The entries of "unfreeze" that were decided so far.
  std::vector<std::size_t> unfrozen() const;
  const DecisionPlan& plan() const { return plan_; }

 private:
  struct Followed {
    std::vector<double> values;  // since the windows began
    Direction direction = Direction::kNone;
  };

  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void follow(const EpochSummary& row);
  bool holds(const Condition& condition) const;

  DecisionPlan plan_;
  std::int64_t steps_per_epoch_;
  std::int64_t total_steps_;
  std::int64_t epochs_ = 0;
  std::map<std::string, Followed, std::less<>> followed_;
  double rate_factor_ = 1;
  std::vector<std::int64_t> rates_made_;
  std::vector<bool> unfrozen_;
};

}  // namespace treadle
