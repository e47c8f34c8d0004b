#include "population_based.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <treadle/base/random.h>
#include <treadle/search/search_space.h>

#include "rungs.h"
#include "trial_values.h"

// The history of a population is computed anew from its trials, generation by generation: who was
// compared, who was ended and which trial took the place. The number of a new trial says where it
// belongs, as trials are started in this order alone. Where the history meets what has not happened
// yet, that is the next job.

namespace treadle::pruners {
namespace {

bool has_ended(const Trial& trial) {
  return trial.state == TrialState::kComplete || trial.state == TrialState::kPruned ||
         trial.state == TrialState::kFailed;
}

/// A value multiplied by `factor`, or the neighbour of a choice; one of the dimension's values.
double perturbed(const Dimension& dimension, double value, double factor) {
  const auto neighbour = [&] {
    const std::int64_t index = dimension.index(value) + (factor < 1 ? -1 : 1);
    return dimension.value(std::clamp<std::int64_t>(index, 0, dimension.count() - 1));
  };
  if (dimension.kind == Dimension::Kind::kChoice)
    return neighbour();
  const double moved = dimension.nearest(std::clamp(value * factor, dimension.low, dimension.high));
  // Of few values the nearest to the product may be the old one.
  return moved == value && dimension.count() > 0 ? neighbour() : moved;
}

}  // namespace

PopulationBased::PopulationBased(const Config& config)
    : population_(config.get<std::int64_t>("population")),
      interval_(config.get<std::int64_t>("interval")),
      quantile_fraction_(config.get<double>("quantile_fraction")),
      resample_probability_(config.get<double>("resample_probability")),
      perturbation_factors_(config.get<std::vector<double>>("perturbation_factors")) {}

std::optional<std::int64_t> PopulationBased::do_next_step(std::int64_t, std::int64_t after) const {
  return (after / interval_ + 1) * interval_;
}

std::string PopulationBased::do_why_idle(std::int64_t max_trials) const {
  if (max_trials > population_)
    return "";
  return "who takes a place in a population of " + std::to_string(population_) +
         " is a trial more, and the search makes " + std::to_string(max_trials) + " at most";
}

PrunerVerdict PopulationBased::do_judge(const Trial&, const StudyView&) const {
  return PrunerVerdict::kPause;
}

NextJob PopulationBased::do_next_job(const StudyView& study) const {
  const auto started = static_cast<std::int64_t>(study.trials.size());
  if (started < population_ && study.may_start)
    return {};
  std::vector<const Trial*> members =
      pointers_to(study.trials.first(static_cast<std::size_t>(std::min(started, population_))));
  auto next_number = static_cast<std::int64_t>(members.size());
  for (std::int64_t epoch = interval_;; epoch += interval_) {
    std::erase_if(members, [&](const Trial* member) {
      return has_ended(*member) && !value_at(*member, epoch);
    });
    const std::vector<const Trial*> ranked = ranked_at(members, epoch);
    if (members.empty() || ranked.size() < members.size())
      return wait_or_complete_one(study);  // some are on their way
    const auto replaced = static_cast<std::size_t>(
        std::min(std::floor(quantile_fraction_ * static_cast<double>(ranked.size())),
                 static_cast<double>(ranked.size() / 2)));
    for (std::size_t i = 0; i < replaced; ++i) {
      const Trial* loser = ranked[ranked.size() - 1 - i];
      const bool was_replaced =
          loser->state == TrialState::kPruned && loser->intermediate.back().step == epoch;
      // One that has ended by itself with this epoch, or was left when no trial could start.
      if (!was_replaced && !is_paused_at(*loser, epoch))
        continue;
      if (next_number == started) {
        if (!study.may_start || !is_paused_at(*ranked[i], epoch))
          break;
        return {NextJob::Kind::kStart, ranked[i]->number, explore(*ranked[i], next_number, study)};
      }
      if (loser->state == TrialState::kPaused)
        return {NextJob::Kind::kPrune, loser->number};
      *std::find(members.begin(), members.end(), loser) =
          &study.trials[static_cast<std::size_t>(next_number++)];
    }
    for (const Trial* member : members) {
      if (is_paused_at(*member, epoch))
        return {NextJob::Kind::kResume, member->number};
    }
  }
}

Point PopulationBased::explore(const Trial& trial, std::int64_t number,
                               const StudyView& study) const {
  const SearchSpace& space = *study.space;
  RandomBits bits = study.random->bits("explore", {static_cast<std::uint64_t>(number)});
  Point point(space.size());
  for (const std::size_t dimension : space.order()) {
    // As many numbers for each dimension, so that none depends on the others.
    const bool resamples = bits.uniform() < resample_probability_;
    const std::size_t factor = bits.uniform() < 0.5 ? 0 : 1;
    const double drawn = space[dimension].from_unit(bits.uniform());
    if (!space.is_enabled(dimension, point))
      continue;
    double value = drawn;
    // A dimension that was not active before has no value to begin with. At the end of a range one
    // factor leads nowhere, and at 0 both.
    if (!resamples && trial.point.is_active(dimension)) {
      const double old = trial.point[dimension];
      value = perturbed(space[dimension], old, perturbation_factors_[factor]);
      if (value == old)
        value = perturbed(space[dimension], old, perturbation_factors_[1 - factor]);
      if (value == old)
        value = drawn;
    }
    point.set(dimension, value);
  }
  return point;
}

}  // namespace treadle::pruners
