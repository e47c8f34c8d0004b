#include <algorithm>
#include <chrono>
#include <memory>

#include <treadle/engine/thread_budget.h>
#include <treadle/host/run/workflow_run.h>

#include "components/split_notes.h"
#include "components/tried_components.h"
#include "description/described_rows.h"
#include "document/document_slots.h"
#include "fit/baselines.h"
#include "fit/batch_size.h"
#include "fit/fit.h"
#include "fit/fit_record.h"
#include "fit/tried_training.h"
#include "resources/run_device.h"
#include "resources/run_precision.h"
#include "run/parameter_rules.h"
#include "runtime/run_record.h"
#include "search/settings/search_preview.h"
#include "search/settings/search_settings.h"

namespace treadle {
namespace {

/// After six every buffer of the batch pipeline is in use. After 24 the allocator keeps about as
/// much for the next step as in a long run: after six steps the estimate for two layers of 2048
/// varied between 114 and 131 MB, after these between 127 and 131.
constexpr internal::TriedSteps kLongDryRun{6, 24, std::chrono::seconds(10)};

nlohmann::json data_summary(const internal::DocumentComponents& components) {
  const DataSpec& spec = components.data_spec();
  nlohmann::json inputs = nlohmann::json::array();
  for (const PortSpec& port : spec.inputs) {
    nlohmann::json columns = nlohmann::json::array();
    for (const Column& column : port.columns)
      columns.push_back(column.name);
    inputs.push_back({{"name", port.name}, {"shape", port.shape}, {"columns", std::move(columns)}});
  }
  nlohmann::json targets = nlohmann::json::array();
  for (const TargetSpec& target : spec.targets) {
    targets.push_back({{"name", target.name},
                       {"kind", name_of(target.kind)},
                       {"shape", target.shape},
                       {"class_names", target.class_names}});
  }
  return {{"rows", components.rows().rows()},
          {"inputs", std::move(inputs)},
          {"targets", std::move(targets)},
          {"task", internal::task_of(components.data_spec().targets)},
          {"choices", components.choices()}};
}

nlohmann::json plan_summary(const ValidationPlan& plan) {
  nlohmann::json folds = nlohmann::json::array();
  for (const Fold& fold : plan.folds) {
    nlohmann::json one{{"name", fold.name},
                       {"training_rows", fold.training.size()},
                       {"validation_rows", fold.validation.size()}};
    if (!fold.test.empty())
      one["test_rows"] = fold.test.size();
    if (!fold.inner.empty())
      one["inner_folds"] = fold.inner.size();
    folds.push_back(std::move(one));
  }
  return {{"folds", std::move(folds)},
          {"refit", plan.refit.has_value()},
          {"test_rows", plan.refit               ? plan.refit->test.size()
                        : plan.folds.size() == 1 ? plan.folds.front().test.size()
                                                 : 0}};
}

}  // namespace

std::shared_ptr<Model> untrained_model(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  std::shared_ptr<Model> model;
  internal::budget_for(workflow).run([&] {
    const internal::Dataset dataset(runtime, workflow);
    internal::DocumentComponents components(runtime, workflow, dataset);
    components.make_plan();
    internal::find_batch_size(components);
    const Fold& fold = components.first_fold();
    internal::Fit fit(components, {{"final", 0, 1}, {fold.training, fold.validation, 0}});
    model = std::dynamic_pointer_cast<Model>(fit.model().shared_from_this());
    model->to(c10::kCPU);  // it is looked at, not used
  });
  return model;
}

namespace {

std::vector<std::string> notes_on_precision(const Runtime& runtime,
                                            const ResolvedWorkflow& workflow) {
  internal::RunDevice device;
  try {
    device = internal::find_device(runtime, workflow);
  } catch (const DocumentError&) {
    return {};
  }
  const Precision precision = internal::precision_of(workflow);
  internal::expect_possible(precision, device, workflow);
  const std::string why = internal::why_slow(precision, device);
  return why.empty() ? std::vector<std::string>() : std::vector{"precision: " + why};
}

}  // namespace

std::vector<std::string> check_document(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  internal::try_components(runtime, workflow);
  std::vector<std::string> notes = notes_on_precision(runtime, workflow);
  for (std::string& note : notes_on_search(runtime, workflow))
    notes.push_back(std::move(note));
  return notes;
}

void expect_search(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  internal::search_of(runtime, workflow);
}

DryRun dry_run(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const std::int64_t baseline = internal::resident_memory_bytes();
  internal::reset_peak_memory();
  runtime.expect_usable(workflow.resolved);
  const auto search = internal::search_of(runtime, workflow);
  engine::ThreadBudget budget = internal::budget_for(workflow);
  DryRun result;
  budget.run([&] {
    const internal::Dataset dataset(runtime, workflow);
    internal::DocumentComponents components(runtime, workflow, dataset);
    components.make_plan();
    internal::find_batch_size(components);
    const std::int64_t shared = internal::resident_memory_bytes() - baseline;
    const std::int64_t loading_peak = internal::peak_memory_bytes() - baseline;
    const Fold& fold = components.first_fold();
    std::unique_ptr<internal::Fit> own;
    const internal::RunDevice& device = components.device();
    const bool has_own_memory = !device.device().is_cpu();
    internal::reset_peak_memory();
    if (has_own_memory)
      device.backend->reset_peak(device.device());
    internal::within_memory_of(device, [&] {
      own = std::make_unique<internal::Fit>(
          components, internal::FitOrder{
                          {"final", 0, 1},
                          internal::rows_to_try(components, fold, kLongDryRun, budget.workers())});
      internal::try_training(*own, kLongDryRun);
    });
    internal::Fit& fit = *own;
    // Later trainings may fail where the first does not, and then it is too late for a repair.
    for (RowList& rows : internal::short_batches_to_try(components, fold)) {
      internal::within_memory_of(device, [&] {
        internal::Fit short_fit(components, {{"final", 0, 1}, {std::move(rows), {}, 1}});
        internal::try_training(short_fit, internal::TriedSteps{.fewest = 2, .most = 2});
      });
    }
    internal::expect_networks(runtime, workflow, internal::baselines_of(runtime, workflow), dataset,
                              components);
    const std::int64_t one_fit = internal::peak_memory_bytes() - baseline - shared;
    const auto at_once = std::min<std::int64_t>(
        budget.workers(), static_cast<std::int64_t>(components.plan().folds.size()));
    result.device = device.name;
    if (has_own_memory)
      result.estimated_device_bytes = at_once * device.backend->memory(device.device()).peak;
    result.estimated_bytes =
        std::max(loading_peak, shared + at_once * (std::max<std::int64_t>(one_fit, 0) +
                                                   internal::bytes_of_row_lists(fold)));
    result.data = data_summary(components);
    result.model = to_json(internal::model_info(components, fit));
    result.rules = internal::parameter_rules(fit);
    for (const std::string& note : internal::notes_on_data(components))
      result.data["choices"].push_back(note);
    for (const std::string& note : internal::notes_on_split(runtime, components))
      result.data["choices"].push_back(note);
    for (const std::string& note : internal::notes_on_samples(components))
      result.data["choices"].push_back(note);
    for (const std::string& note : fit.notes())
      result.data["choices"].push_back(note);
    result.suspicions = internal::notes_on_leaks(components);
    result.validation = plan_summary(components.plan());
    if (search) {
      own.reset();  // which the memory of trials does not contain
      result.search = internal::search_preview(runtime, *search, components, dataset,
                                               budget.workers(), baseline + shared);
    }
  });
  return result;
}

}  // namespace treadle
