#include "asha.h"

#include <cstddef>
#include <vector>

#include "trial_values.h"

namespace treadle::pruners {

Asha::Asha(const Config& config)
    : reduction_factor_(config.get<std::int64_t>("reduction_factor")),
      rungs_(geometric_rungs(config)) {}

std::optional<std::int64_t> Asha::do_next_step(std::int64_t, std::int64_t after) const {
  return next_rung(rungs_, after);
}

PrunerVerdict Asha::do_judge(const Trial&, const StudyView&) const {
  return PrunerVerdict::kPause;
}

NextJob Asha::do_next_job(const StudyView& study) const {
  for (auto rung = rungs_.rbegin(); rung != rungs_.rend(); ++rung) {
    const std::vector<const Trial*> ranked = ranked_at(pointers_to(study.trials), *rung);
    const std::size_t promoted = ranked.size() / static_cast<std::size_t>(reduction_factor_);
    for (std::size_t i = 0; i < promoted; ++i) {
      if (is_paused_at(*ranked[i], *rung))
        return {NextJob::Kind::kResume, ranked[i]->number};
    }
  }
  return study.may_start ? NextJob{} : wait_or_complete_one(study);
}

}  // namespace treadle::pruners
