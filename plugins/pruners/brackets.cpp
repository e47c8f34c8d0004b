#include "brackets.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "trial_values.h"

namespace treadle::pruners {

std::optional<std::int64_t> Brackets::do_next_step(std::int64_t trial, std::int64_t after) const {
  return next_rung(rungs_of(trial), after);
}

PrunerVerdict Brackets::do_judge(const Trial& trial, const StudyView& study) const {
  const Bracket bracket = bracket_of(trial.number, study.max_trials);
  const std::int64_t epoch = trial.intermediate.back().step;
  std::int64_t rivals = std::min(bracket.size, study.max_trials - bracket.first);
  for (const std::int64_t rung : rungs_of(trial.number))
    rivals /= rung < epoch ? reduction_factor_ : 1;
  return rivals > 1 ? PrunerVerdict::kPause : PrunerVerdict::kContinue;
}

std::optional<std::int64_t> Brackets::due(const Bracket& bracket, const StudyView& study) const {
  const auto from = [&](std::int64_t number) {
    return std::lower_bound(
        study.trials.begin(), study.trials.end(), number,
        [](const Trial& trial, std::int64_t least) { return trial.number < least; });
  };
  const std::span<const Trial> trials(from(bracket.first), from(bracket.first + bracket.size));
  auto left = static_cast<std::int64_t>(trials.size());
  if (left < bracket.size && study.may_start)
    return std::nullopt;  // it is not full yet
  std::vector<const Trial*> rivals = pointers_to(trials);
  for (const std::int64_t rung : rungs_of(bracket.first)) {
    const bool is_awaited = std::any_of(rivals.begin(), rivals.end(), [&](const Trial* trial) {
      return trial->state == TrialState::kRunning && !value_at(*trial, rung);
    });
    if (is_awaited)
      return std::nullopt;
    rivals = ranked_at(std::move(rivals), rung);
    left = std::max<std::int64_t>(left / reduction_factor_, 1);
    rivals.resize(std::min(rivals.size(), static_cast<std::size_t>(left)));
    for (const Trial* trial : rivals) {
      if (is_paused_at(*trial, rung))
        return trial->number;
    }
  }
  return std::nullopt;
}

NextJob Brackets::do_next_job(const StudyView& study) const {
  const std::int64_t started = study.trials.empty() ? 0 : study.trials.back().number + 1;
  for (std::int64_t first = 0; first < started;) {
    const Bracket bracket = bracket_of(first, study.max_trials);
    if (const std::optional<std::int64_t> trial = due(bracket, study))
      return {NextJob::Kind::kResume, *trial};
    first = bracket.first + bracket.size;
  }
  return study.may_start ? NextJob{} : wait_or_complete_one(study);
}

}  // namespace treadle::pruners
