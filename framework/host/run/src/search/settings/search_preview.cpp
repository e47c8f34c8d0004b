#include "search/settings/search_preview.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/error.h>

#include "fit/batch_size.h"
#include "fit/fit.h"
#include "fit/tried_training.h"
#include "resources/run_device.h"
#include "runtime/run_record.h"
#include "search/study/objectives.h"

namespace treadle::internal {
namespace {

constexpr std::size_t kTriedTrials = 4;
/// Some seconds for all of them.
constexpr TriedSteps kSteps{3, 12, std::chrono::seconds(1)};

/// Of one training, of a fold.
struct Tried {
  std::int64_t bytes = 0;
  std::optional<double> seconds;
};

std::optional<double> seconds_of(const TrainingPlan& plan, std::size_t rows,
                                 std::optional<double> seconds_per_step) {
  if (!seconds_per_step || !plan.epochs)
    return std::nullopt;
  const std::int64_t steps = plan.steps_per_epoch.value_or(
      (static_cast<std::int64_t>(rows) + plan.batch_size - 1) / plan.batch_size);
  return *seconds_per_step * static_cast<double>(steps * *plan.epochs);
}

Tried try_trial(const Runtime& runtime, const ResolvedWorkflow& document, const Dataset& dataset,
                int workers, std::int64_t base_bytes) {
  DocumentComponents components(runtime, document, dataset);
  components.make_plan();
  find_batch_size(components);
  const Fold& fold = components.first_fold();
  Tried tried;
  reset_peak_memory();
  within_memory_of(components.device(), [&] {
    Fit fit(components, {{"final", 0, 1}, rows_to_try(components, fold, kSteps, workers)});
    tried.seconds =
        seconds_of(components.training_plan(), fold.training.size(), try_training(fit, kSteps));
  });
  tried.bytes =
      std::max<std::int64_t>(peak_memory_bytes() - base_bytes, 0) + bytes_of_row_lists(fold);
  return tried;
}

nlohmann::json space_of(const ResolvedWorkflow& workflow) {
  nlohmann::json lines = nlohmann::json::object();
  for (const auto& item : workflow.resolved.at("search").at("space").items())
    lines[item.key()] = item.value().dump();
  return lines;
}

}  // namespace

nlohmann::json search_preview(const Runtime& runtime, const SearchSettings& search,
                              const DocumentComponents& components, const Dataset& dataset,
                              int workers, std::int64_t base_bytes) {
  const Objectives objectives(search, components);
  const ResolvedWorkflow& workflow = components.workflow();
  const std::vector<Point> points = points_without_results(
      search.space, *search.tuner, search.initial, search.trials, streams_of_search(workflow));
  const auto trials = static_cast<std::int64_t>(points.size());
  nlohmann::json summary{
      {"trials", trials}, {"tuner", search.tuner_name}, {"space", space_of(workflow)}};
  if (search.pruner)
    summary["pruner"] = search.pruner_name;

  std::int64_t bytes = 1;
  double seconds = 0;
  std::int64_t timed = 0;
  nlohmann::json& first = summary["first_trials"] = nlohmann::json::object();
  for (std::size_t i = 0; i < std::min(points.size(), kTriedTrials); ++i) {
    std::string line = describe_point(search.space, points[i]);
    try {
      const ResolvedWorkflow document = trial_document(runtime, workflow, search.space, points[i]);
      const Tried tried = try_trial(runtime, document, dataset, workers, base_bytes);
      bytes = std::max(bytes, tried.bytes);
      if (tried.seconds) {
        seconds += *tried.seconds;
        ++timed;
      }
    } catch (const Error& error) {
      line += std::string(": fails: ") + error.what();
    }
    first["trial_" + std::to_string(i)] = std::move(line);
  }

  const auto folds = static_cast<std::int64_t>(components.plan().folds.size());
  std::int64_t at_once = std::min<std::int64_t>(workers, search.parallel * folds);
  summary["bytes_of_a_training"] = bytes;
  if (search.memory) {
    const std::int64_t room = (*search.memory - base_bytes) / bytes;
    summary["fits_into_memory"] = room >= 1;
    at_once = std::clamp<std::int64_t>(room, 1, at_once);
  }
  summary["trainings_at_once"] = at_once;
  if (timed == 0)
    return summary;
  const double of_trial = seconds / static_cast<double>(timed) * static_cast<double>(folds);
  summary["seconds_of_a_trial"] = of_trial;
  summary["seconds_without_pruning"] =
      of_trial * static_cast<double>(trials) / static_cast<double>(at_once);
  if (search.seconds) {
    // The last training has its share of the budget.
    const double left = std::max(*search.seconds - of_trial, 0.0);
    const double fit = left * static_cast<double>(at_once) / std::max(of_trial, 1e-9);
    summary["trials_in_time"] =
        static_cast<std::int64_t>(std::min(static_cast<double>(trials), fit));
  }
  return summary;
}

}  // namespace treadle::internal
