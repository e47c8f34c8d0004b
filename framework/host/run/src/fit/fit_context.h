#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/engine/fits.h>
#include <treadle/engine/run_context.h>
#include <treadle/host/run/checkpoint_store.h>

#include "context/run_parts.h"
#include "fit/fit_planner.h"
#include "store/state_saver.h"

namespace treadle::internal {

/// A fit's way to the run: files, observers, its own stop, the plan it belongs to. It may be
/// stopped alone; a stop of the run stops it, too.
class FitContext final : public engine::RunContext {
 public:
  using Report = std::function<FitVerdict(const EpochSummary&)>;

  /// `identity` is of the fit's own document; null: it has the run's. `report` hears of each epoch.
  FitContext(RunParts& run, const FitId& id, nlohmann::json identity, Report report);

  /// Reads the newest checkpoint, if there is one, and cuts the history back to it.
  void load_checkpoint();
  /// Takes over the newest checkpoint of another fit as this one's first. Expects none of its own.
  void copy_checkpoint(const std::string& fit, int keep);
  bool has_checkpoint() const { return loaded_.has_value(); }
  /// Where the checkpoint stands. Expects one.
  const engine::TrainingPosition& position() const { return loaded_->position; }
  /// Throws a StorageError, with every difference, where the weights of the checkpoint are not
  /// those of such a model. Expects a checkpoint.
  void expect_weights_of(Model& model) const;
  /// Null without a checkpoint.
  const StateDict* saved_preprocessing() const;

  /// Before training: the fit, and whom to tell when it has taken its memory: after the first
  /// steps, or the first epoch.
  void begin(engine::Settled settled);
  /// The fit to train, once it is prepared.
  void use(Fit& fit) { fit_ = &fit; }
  /// Waits until what was saved and told is where it should be; throws what went wrong on the way.
  void finish();
  void complete(const FitSummary& summary);

  /// Ends this fit alone, after the step it is at. Any thread.
  void stop() { stop_.request_stop(); }
  bool is_stopped() const { return stop_.stop_requested(); }
  /// What the plan wanted after the last epoch.
  FitVerdict verdict() const { return verdict_; }

  /// Adds to what a component's failure says the fit and the step it happened in: a model, a loss
  /// or a gradient strategy knows neither.
  template <typename Work>
  auto saying_where(Work&& work) const {
    try {
      return std::forward<Work>(work)();
    } catch (const PluginError& error) {
      throw PluginError(std::string(error.what()) + "; in " + place());
    } catch (const TrainingError& error) {
      if (is_named_in(error.what()))
        throw;
      throw TrainingError(std::string(error.what()) + "; in " + place());
    }
  }

 private:
  const FitId& do_fit() const override { return id_; }
  const RandomStreams& do_random() const override { return fit_->random(); }
  std::stop_token do_stop_token() const override;
  void do_step_completed(const StepProgress& progress) override;
  void do_epoch_completed(const EpochSummary& summary) override;
  void do_note(const std::string& text) override;
  void do_note_once(const std::string& subject, const std::string& text) override;
  void do_save_checkpoint(const StateDict& state, const engine::TrainingPosition& position,
                          int keep) override;
  std::optional<StateDict> do_resume_state() override;
  std::string do_last_checkpoint() const override;

  bool is_named_in(const std::string& text) const;
  std::string place() const;
  void settle();
  void write_checkpoint(const StateDict& state, const engine::TrainingPosition& position, int keep,
                        std::uint64_t told);

  /// Then every buffer of the batch pipeline is in use, and the allocator has seen some steps.
  static constexpr int kStepsToSettle = 12;

  RunParts& run_;
  const FitId id_;
  const nlohmann::json identity_;
  const Report report_;
  Fit* fit_ = nullptr;
  engine::Settled settled_;
  int steps_made_ = 0;
  FitVerdict verdict_ = FitVerdict::kContinue;
  std::stop_source stop_;        // this fit's, or the run's
  std::stop_source plans_stop_;  // requested from the beginning; see do_stop_token()
  std::stop_callback<std::function<void()>> run_stop_;
  CheckpointStore store_;
  std::optional<CheckpointStore::Loaded> loaded_;
  std::optional<StateDict> preprocessing_;
  StepProgress last_step_;
  std::optional<EventDispatcher::Training> events_;
  mutable StateSaver saver_;  // last: what it writes needs the others
};

}  // namespace treadle::internal
