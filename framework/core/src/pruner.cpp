#include <treadle/core/pruner.h>

#include <algorithm>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/plugin_call.h>

namespace treadle {

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
  return call_plugin(*this, "judge", [&] { return do_judge(trial, study); });
}

NextJob Pruner::next_job(const StudyView& study) const {
  const NextJob job = call_plugin(*this, "next_job", [&] { return do_next_job(study); });
  if (job.kind != NextJob::Kind::kResume)
    return job;
  const auto trial = std::find_if(study.trials.begin(), study.trials.end(),
                                  [&](const Trial& other) { return other.number == job.trial; });
  if (trial == study.trials.end() || trial->state != TrialState::kPaused) {
    refuse_result(*this, "next_job",
                  "returned trial " + std::to_string(job.trial) + " to resume, which is " +
                      (trial == study.trials.end() ? "no trial of the study" : "not paused"));
  }
  return job;
}

}  // namespace treadle
