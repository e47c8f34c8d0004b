#include "rungs.h"

#include <algorithm>
#include <string>

#include "trial_values.h"

namespace treadle::pruners {
namespace {

/// More epochs than any training has, and far from the largest integer.
constexpr std::int64_t kLongest = 1'000'000'000'000;

/// Whether `a` has come further than `b`, or as far with a better value.
bool is_ahead(const Trial& a, const Trial& b) {
  if (a.intermediate.empty() || b.intermediate.empty())
    return !a.intermediate.empty();
  const IntermediateValue& at_a = a.intermediate.back();
  const IntermediateValue& at_b = b.intermediate.back();
  return at_a.step != at_b.step ? at_a.step > at_b.step : is_better(at_a.value, at_b.value);
}

}  // namespace

Rungs geometric_rungs(const Config& config) {
  const auto factor = config.get<std::int64_t>("reduction_factor");
  const auto left_out = config.get_or("min_early_stopping_rate", std::int64_t{0});
  Rungs rungs;
  for (auto rung = config.get<std::int64_t>("min_resource"); rung <= kLongest; rung *= factor)
    rungs.push_back(rung);
  if (left_out >= static_cast<std::int64_t>(rungs.size())) {
    config.fail("min_early_stopping_rate",
                "leaves no rung that a training reaches: of min_resource * reduction_factor^k the "
                "first " +
                    std::to_string(left_out) + " are left out");
  }
  rungs.erase(rungs.begin(), rungs.begin() + left_out);
  return rungs;
}

std::optional<std::int64_t> next_rung(const Rungs& rungs, std::int64_t after) {
  const auto next = std::upper_bound(rungs.begin(), rungs.end(), after);
  return next == rungs.end() ? std::nullopt : std::optional(*next);
}

NextJob wait_or_complete_one(const StudyView& study) {
  const Trial* ahead = nullptr;
  for (const Trial& trial : study.trials) {
    if (trial.state == TrialState::kRunning || trial.state == TrialState::kComplete)
      return {NextJob::Kind::kWait};
    if (trial.state == TrialState::kPaused && (ahead == nullptr || is_ahead(trial, *ahead)))
      ahead = &trial;
  }
  if (ahead == nullptr)
    return {NextJob::Kind::kWait};
  return {NextJob::Kind::kResume, ahead->number};
}

}  // namespace treadle::pruners
