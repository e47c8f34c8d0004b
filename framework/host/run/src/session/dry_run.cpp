#include <algorithm>
#include <chrono>

#include <treadle/engine/evaluation.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/host/run/workflow_run.h>

#include "report/result_json.h"
#include "session/fit.h"
#include "session/run_record.h"
#include "store/state_snapshot.h"

namespace treadle {
namespace {

/// Until every buffer of the batch pipeline is in use.
constexpr std::int64_t kFewestSteps = 6;
/// Until the allocator keeps about as much for the next step as it does in a long run: after six
/// steps the estimate for two layers of 2048 varied between 114 and 131 MB, after these between 127
/// and 131.
constexpr std::int64_t kSteps = 24;
/// A large model stops between the two.
constexpr std::chrono::seconds kPatience{10};

/// Lets a training make a few steps and then asks it to stop. Keeps nothing.
class BriefContext final : public engine::RunContext {
 public:
  explicit BriefContext(const internal::Fit& fit) : fit_(fit) {}

 private:
  const FitId& do_fit() const override { return fit_.id(); }
  const RandomStreams& do_random() const override { return fit_.random(); }
  std::stop_token do_stop_token() const override { return stop_.get_token(); }
  void do_step_completed(const StepProgress& progress) override {
    if (progress.step < kFewestSteps)
      return;
    if (progress.step >= kSteps || Clock::now() - start_ > kPatience)
      stop_.request_stop();
  }
  void do_epoch_completed(const EpochSummary&) override {}
  void do_note(const std::string&) override {}
  // A real run writes a copy, and keeps the copy's memory.
  void do_save_checkpoint(const StateDict& state, const engine::TrainingPosition&, int) override {
    saved_.take(state);
  }
  std::optional<StateDict> do_resume_state() override { return std::nullopt; }
  std::string do_last_checkpoint() const override { return {}; }

  using Clock = std::chrono::steady_clock;

  const internal::Fit& fit_;
  const Clock::time_point start_ = Clock::now();
  std::stop_source stop_;
  internal::StateSnapshot saved_;
};

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
          {"task", components.task()},
          {"choices", components.choices()}};
}

nlohmann::json plan_summary(const ValidationPlan& plan) {
  nlohmann::json folds = nlohmann::json::array();
  for (const Fold& fold : plan.folds) {
    folds.push_back({{"name", fold.name},
                     {"training_rows", fold.training.size()},
                     {"validation_rows", fold.validation.size()}});
  }
  return {{"folds", std::move(folds)}, {"refit", plan.refit}, {"test_rows", plan.test.size()}};
}

/// Enough rows for the steps and the evaluation batches; the first of the fold.
std::vector<std::int64_t> first_of(const std::vector<std::int64_t>& rows, std::int64_t count) {
  const auto size = std::min(rows.size(), static_cast<std::size_t>(count));
  return {rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(size)};
}

}  // namespace

std::shared_ptr<Model> untrained_model(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  std::shared_ptr<Model> model;
  internal::budget_for(workflow).run([&] {
    const internal::Dataset dataset(runtime, workflow);
    internal::DocumentComponents components(runtime, workflow, dataset);
    components.make_plan();
    const Fold& fold = components.plan().folds.front();
    internal::Fit fit(components, {"final", 0, 1}, {fold.training, fold.validation, 0});
    fit.prepare(nullptr);
    model = std::dynamic_pointer_cast<Model>(fit.model().shared_from_this());
    model->to(c10::kCPU);  // it is looked at, not used
  });
  return model;
}

DryRun dry_run(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const std::int64_t baseline = internal::resident_memory_bytes();
  internal::reset_peak_memory();
  runtime.expect_usable(workflow.resolved);
  engine::ThreadBudget budget = internal::budget_for(workflow);
  DryRun result;
  budget.run([&] {
    const internal::Dataset dataset(runtime, workflow);
    internal::DocumentComponents components(runtime, workflow, dataset);
    components.make_plan();
    const std::int64_t shared = internal::resident_memory_bytes() - baseline;
    const std::int64_t loading_peak = internal::peak_memory_bytes() - baseline;
    const Fold& fold = components.plan().folds.front();
    const internal::TrainingPlan batches = components.training_plan();
    const std::int64_t few = std::max<std::int64_t>(8192, (kSteps + 1) * batches.batch_size);
    // The first is evaluated alone, then as many at once as there are workers.
    const std::int64_t evaluated =
        1 + std::min<std::int64_t>(budget.workers(), engine::kMostBatchesAtOnce);
    internal::Fit fit(components, {"final", 0, 1},
                      {first_of(fold.training, few),
                       first_of(fold.validation, evaluated * batches.evaluation_batch_size), 0});
    const internal::RunDevice& device = components.device();
    const bool has_own_memory = !device.device().is_cpu();
    internal::reset_peak_memory();
    if (has_own_memory)
      device.backend->reset_peak(device.device());
    internal::within_memory_of(device, [&] {
      fit.prepare(nullptr);
      BriefContext training(fit);
      try {
        fit.train(training);
      } catch (const Interrupted&) {
        // As asked.
      }
      fit.validate(std::stop_token());
    });
    const std::int64_t one_fit = internal::peak_memory_bytes() - baseline - shared;
    const auto at_once = std::min<std::int64_t>(
        budget.workers(), static_cast<std::int64_t>(components.plan().folds.size()));
    result.device = device.name;
    if (has_own_memory)
      result.estimated_device_bytes = at_once * device.backend->memory(device.device()).peak;
    // The order of the rows in this and the next epoch, and the rows of the fold.
    const std::int64_t row_lists =
        3 * static_cast<std::int64_t>(sizeof(std::int64_t) * fold.training.size());
    result.estimated_bytes =
        std::max(loading_peak, shared + at_once * (std::max<std::int64_t>(one_fit, 0) + row_lists));
    result.data = data_summary(components);
    result.model = internal::model_info(components, fit);
    for (const std::string& note : fit.notes())
      result.data["choices"].push_back(note);
    result.validation = plan_summary(components.plan());
  });
  return result;
}

}  // namespace treadle
