#include "context/run_parts.h"

#include <utility>

#include <treadle/base/atomic_file.h>
#include <treadle/host/catalog/plugin_lock.h>

#include "context/continuation.h"
#include "context/shared_run.h"
#include "document/document_slots.h"
#include "runtime/run_record.h"

// open_data() writes three files that everything later relies on. For a resumed run the comparison
// with its beginning comes first, so a refusal changes none of them. workflow.json is written last,
// with the choices that the data decided.

namespace treadle::internal {
namespace {

/// Calls the functions of the options.
class HookObserver final : public RunObserver {
 public:
  explicit HookObserver(RunHooks hooks) : hooks_(std::move(hooks)) {}

 private:
  void do_step_completed(const FitId& fit, const StepProgress& progress) override {
    if (hooks_.on_step)
      hooks_.on_step(fit, progress);
  }
  void do_epoch_completed(const FitId& fit, const EpochSummary& epoch) override {
    if (hooks_.on_epoch)
      hooks_.on_epoch(fit, epoch);
  }
  void do_fit_completed(const FitId& fit, const FitSummary& summary) override {
    if (hooks_.on_fit)
      hooks_.on_fit(fit, summary);
  }
  void do_trial_changed(const TrialSummary& trial, const SearchProgress& search) override {
    if (hooks_.on_trial)
      hooks_.on_trial(trial, search);
  }
  void do_noted(const std::string& text) override {
    if (hooks_.on_note)
      hooks_.on_note(text);
  }

  const RunHooks hooks_;
};

std::vector<std::unique_ptr<RunObserver>> observers_of(const Runtime& runtime,
                                                       const ResolvedWorkflow& workflow,
                                                       const RunOptions& options) {
  runtime.expect_usable(workflow.resolved);
  std::vector<std::unique_ptr<RunObserver>> observers;
  if (options.is_first_rank())
    observers = make_each<RunObserver>(runtime, workflow, "observers");
  observers.push_back(std::make_unique<HookObserver>(options.hooks));
  return observers;
}

}  // namespace

RunParts::RunParts(const Runtime& runtime, ResolvedWorkflow workflow, const RunOptions& options,
                   RunFolder folder, bool resumed)
    : runtime(runtime),
      options(options),
      folder(std::move(folder)),
      resumed(resumed),
      budget(budget_for(workflow, options.workers)),
      timeline(!options.trace.empty()),
      log(this->folder, options.observers, observers_of(runtime, workflow, options)),
      workflow_(std::move(workflow)) {}

const ResolvedWorkflow& RunParts::workflow() const {
  return components_ ? components_->workflow() : workflow_;
}

void RunParts::open_data(const std::function<void(DocumentComponents&)>& find_batch_size) {
  const Timeline::Span span(&timeline, Phase::kLoading);
  dataset_.emplace(runtime, workflow_);
  components_.emplace(runtime, workflow_, *dataset_);
  if (components_->has_open_batch_size()) {
    components_->make_plan();
    find_batch_size(*components_);
  }
  const nlohmann::json& resolved = workflow().resolved;
  const PluginLock plugins =
      PluginLock::of(used_plugins(runtime.catalog(), runtime.schemas(), resolved));
  conditions_ =
      RunConditions(environment_record(plugins, resolved,
                                       {dataset_->provider().content_hash(), dataset_->row_count(),
                                        source_hash_of(dataset_->provider())},
                                       components_->device().kind, budget.workers()),
                    document_identity(runtime.registry(), resolved), components_->choices());
  const auto note = [this](const std::string& text) { log.note(text); };
  if (resumed)
    conditions_.compare_with_beginning(folder, options.allow_differences, note);
  if (options.communicator != nullptr) {
    expect_same_conditions(*options.communicator, conditions_, options.allow_differences, note);
    if (options.communicator->world_size() > 1) {
      hosts = hosts_by_rank(*options.communicator);
      note(group_text(hosts));
    }
  }
  write_file_atomically(folder.environment(), conditions_.text());
  write_file_atomically(folder.plugin_lock(), plugins.text());
  // Now with what the document left open.
  write_file_atomically(folder.document(), write_workflow(resolved));
  if (conditions_.environment().contains(kContinued))
    note(continued_text(conditions_.environment().at(kContinued)));
  for (const std::string& choice : components_->choices())
    note(choice);
  if (conditions_.environment().at("blas") == "reference") {
    note(
        "warning: the reference BLAS is in use, which is 10 to 20 times slower than OpenBLAS; "
        "install libopenblas0-pthread");
  }
}

}  // namespace treadle::internal
