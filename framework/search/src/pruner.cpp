#include <treadle/search/pruner.h>

#include <algorithm>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {
namespace {

void expect_study(const StudyView& study) {
  std::int64_t last = -1;
  for (const Trial& trial : study.trials) {
    TREADLE_EXPECTS(trial.number > last, "the trials of a study have ascending numbers");
    last = trial.number;
  }
  TREADLE_EXPECTS(last < study.max_trials, "a study has no more trials than it was asked for");
}

}  // namespace

Pruner::~Pruner() = default;

NextJob Pruner::do_next_job(const StudyView&) const {
  return {};
}

std::optional<std::int64_t> Pruner::next_step(std::int64_t trial, std::int64_t after) const {
  TREADLE_EXPECTS(trial >= 0 && after >= 0, "trials and epochs are counted upwards");
  const std::optional<std::int64_t> step =
      call_plugin(*this, "next_step", [&] { return do_next_step(trial, after); });
  if (step && *step <= after) {
    refuse_result(*this, "next_step",
                  "returned step " + std::to_string(*step) + ", which is not behind step " +
                      std::to_string(after));
  }
  return step;
}

PrunerVerdict Pruner::judge(const Trial& trial, const StudyView& study) const {
  TREADLE_EXPECTS(!trial.intermediate.empty(), "a trial is judged by its intermediate values");
  expect_study(study);
  return call_plugin(*this, "judge", [&] { return do_judge(trial, study); });
}

std::string Pruner::why_idle(std::int64_t max_trials) const {
  return call_plugin(*this, "why_idle", [&] { return do_why_idle(max_trials); });
}

NextJob Pruner::next_job(const StudyView& study) const {
  expect_study(study);
  NextJob job = call_plugin(*this, "next_job", [&] { return do_next_job(study); });
  const auto refuse = [&](const std::string& what) {
    refuse_result(*this, "next_job", "returned " + what);
  };
  if (job.point && study.space != nullptr && !study.space->contains(*job.point))
    refuse("a point outside the space");
  const bool names_trial = job.kind == NextJob::Kind::kResume ||
                           job.kind == NextJob::Kind::kPrune ||
                           (job.kind == NextJob::Kind::kStart && job.trial >= 0);
  if (!names_trial)
    return job;
  const auto trial = std::find_if(study.trials.begin(), study.trials.end(),
                                  [&](const Trial& other) { return other.number == job.trial; });
  if (trial == study.trials.end())
    refuse("trial " + std::to_string(job.trial) + ", which is no trial of the study");
  if (trial->state != TrialState::kPaused)
    refuse("trial " + std::to_string(job.trial) + ", which is not paused");
  return job;
}

}  // namespace treadle
