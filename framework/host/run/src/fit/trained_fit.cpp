#include "fit/trained_fit.h"

#include <optional>
#include <stop_token>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>
#include <treadle/engine/run_context.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/host/run/checkpoint_store.h>
#include <treadle/host/run/run_folder.h>

#include "fit/fit.h"
#include "resources/run_device.h"

// A checkpoint has the weights of the last step, those kept on the way and an average. Which of
// them a training ends with is the session's business: so it is resumed from its last checkpoint,
// where no step is left.

namespace treadle::internal {
namespace {

/// Of a training that has ended: gives the state that it ended with, and keeps nothing.
class EndedContext final : public engine::RunContext {
 public:
  EndedContext(const Fit& fit, const StateDict& state) : fit_(fit), state_(state) {}

 private:
  const FitId& do_fit() const override { return fit_.id(); }
  const RandomStreams& do_random() const override { return fit_.random(); }
  std::stop_token do_stop_token() const override { return {}; }
  void do_step_completed(const StepProgress&) override {}
  void do_epoch_completed(const EpochSummary&) override {}
  void do_note(const std::string&) override {}
  void do_save_checkpoint(const StateDict&, const engine::TrainingPosition&, int) override {}
  std::optional<StateDict> do_resume_state() override { return state_; }
  std::string do_last_checkpoint() const override { return {}; }

  const Fit& fit_;
  const StateDict& state_;
};

CheckpointStore::Loaded last_checkpoint(const std::filesystem::path& run, const std::string& fit) {
  const std::filesystem::path folder = RunFolder::checkpoints_of(run, fit);
  const CheckpointStore store(folder);
  std::optional<CheckpointStore::Loaded> loaded = store.load_latest([](const std::string&) {});
  if (!loaded) {
    throw StorageError(folder.string() + ": has no checkpoint, and the model of " + fit +
                       " is nowhere else; restore the folder from a copy, or train the run again");
  }
  if (!loaded->position.finished) {
    throw StorageError(loaded->folder.string() + ": is no checkpoint of the end of " + fit +
                       ", whose last one is gone or damaged; restore the folder from a copy, or "
                       "train the run again");
  }
  return *std::move(loaded);
}

}  // namespace

SavedModel model_of_fit(const DocumentComponents& components, const PlannedFit& planned,
                        const std::filesystem::path& folder) {
  const CheckpointStore::Loaded loaded = last_checkpoint(folder, planned.id.path());
  FitOrder order{planned.id, *planned.rows};
  if (planned.epochs)  // as many as it was trained
    order.rows.fixed_epochs = loaded.position.epochs_done;
  order.preprocessing = &loaded.state.part("preprocessing");
  SavedModel model;
  engine::ThreadBudget budget;
  within_memory_of(components.device(), [&] {
    budget.run([&] {
      Fit fit(components, std::move(order));
      EndedContext context(fit, loaded.state);
      fit.train(context);
      model = {components.workflow(), fit.preprocessing(),
               module_state(fit.model()).snapshot().tensors()};
    });
  });
  return model;
}

}  // namespace treadle::internal
