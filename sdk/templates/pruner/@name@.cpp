#include <treadle/sdk.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace {

/// Prunes trials that are far behind: at every `every` epochs one whose value is more than
/// `tolerance` worse than the worst that a complete trial had there. Nothing is pruned before
/// `n_startup_trials` trials are complete.
///
/// A function of its arguments, without state: the worst value is looked for in every call.
class @Name@ final : public treadle::Pruner {
 public:
  explicit @Name@(const treadle::Config& config)
      : n_startup_trials_(config.get<std::int64_t>("n_startup_trials")),
        every_(config.get<std::int64_t>("every")),
        tolerance_(config.get<double>("tolerance")) {}

 private:
  std::optional<std::int64_t> do_next_step(std::int64_t, std::int64_t after) const override {
    return after + every_ - after % every_;
  }

  treadle::PrunerVerdict do_judge(const treadle::Trial& trial,
                                  const treadle::StudyView& study) const override {
    const treadle::IntermediateValue& now = trial.intermediate.back();
    std::int64_t complete = 0;
    std::optional<double> worst;
    for (const treadle::Trial& other : study.trials) {
      if (other.state != treadle::TrialState::kComplete)
        continue;
      ++complete;
      for (const treadle::IntermediateValue& value : other.intermediate) {
        // A value that is not a number is no bound for others.
        if (value.step == now.step && !std::isnan(value.value))
          worst = std::max(worst.value_or(value.value), value.value);
      }
    }
    if (complete < n_startup_trials_ || !worst)
      return treadle::PrunerVerdict::kContinue;
    // The other way round, a value that is not a number would go on.
    return now.value <= *worst + tolerance_ ? treadle::PrunerVerdict::kContinue
                                            : treadle::PrunerVerdict::kPrune;
  }

  std::int64_t n_startup_trials_;
  std::int64_t every_;
  double tolerance_;
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
