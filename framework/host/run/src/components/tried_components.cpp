#include "components/tried_components.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/learning_rate_schedule.h>

#include "components/document_losses.h"
#include "document/training_plan.h"

namespace treadle::internal {
namespace {

constexpr std::array<std::string_view, 4> kReachOutside = {"device", "storage", "observer",
                                                           "communicator"};

/// A schedule that is stretched over the training needs its end. A loop that takes the data once
/// ends with the data, which only a run reads.
void expect_end_is_known(const LearningRateSchedule& schedule, const TrainingPlan& plan) {
  ScheduleSpan span;
  span.base_rate = 1;
  if (!plan.epochs && !plan.max_steps && !plan.rows_per_epoch)
    span.total_steps.reset();
  schedule.rate_at(0, span);
}

bool is_additive(const Runtime& runtime, const std::string& loss) {
  const FoundComponent found = runtime.schemas().find("loss", loss);
  return found.schema == nullptr || found.schema->value("x-treadle-additive", true);
}

void try_component(const Runtime& runtime, const ResolvedWorkflow& workflow,
                   const UsedComponent& used) {
  const Config config(used.parameters, used.pointer, workflow.document);
  const std::unique_ptr<Component> made = runtime.registry().make_component(
      runtime.catalog().interfaces().id(used.interface_word), used.name, config);
  if (const auto* strategy = dynamic_cast<const GradientStrategy*>(made.get())) {
    for (const UsedComponent& other : workflow.components) {
      if (other.interface_word == "loss" && !is_additive(runtime, other.name))
        expect_whole_batches(*strategy, config, other.name);
    }
  }
  const auto* const schedule = dynamic_cast<const LearningRateSchedule*>(made.get());
  if (schedule == nullptr || used.pointer != "/schedule")
    return;
  try {
    expect_end_is_known(*schedule, training_plan_of(runtime, workflow));
  } catch (const TrainingError& error) {
    config.fail("", error.what());
  }
}

}  // namespace

void try_components(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  std::vector<Problem> problems;
  for (const UsedComponent& used : workflow.components) {
    if (std::find(kReachOutside.begin(), kReachOutside.end(), used.interface_word) !=
        kReachOutside.end())
      continue;
    try {
      try_component(runtime, workflow, used);
    } catch (const DocumentError& error) {
      // One that is made of others finds what is wrong with them as well.
      for (const Problem& problem : error.problems()) {
        const bool is_known =
            std::any_of(problems.begin(), problems.end(), [&](const Problem& known) {
              const bool is_within = known.pointer == problem.pointer ||
                                     known.pointer.starts_with(problem.pointer + "/");
              return is_within && known.message == problem.message;
            });
        if (!is_known)
          problems.push_back(problem);
      }
    }
  }
  if (!problems.empty())
    throw DocumentError(std::move(problems));
}

}  // namespace treadle::internal
