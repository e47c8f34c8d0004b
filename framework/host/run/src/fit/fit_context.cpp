#include "fit/fit_context.h"

#include <utility>

#include <treadle/core/components/module_state.h>
#include <treadle/core/model/weights.h>
#include <treadle/engine/device_traffic.h>

// A fit's services of the run. On the fit's thread, but for write_checkpoint(), which runs on the
// writer's, and stop(), which any thread may call.
//
// Checkpoint and history. A checkpoint contains the rows of history up to it. Before it is written,
// the events up to the save are delivered and history.csv is synced, so the file is never behind a
// checkpoint. It may be ahead: load_checkpoint() cuts it back. Where it was lost or edited, it is
// restored from the checkpoint.
//
// Stops. A stop of the run and of this fit request stop_. A verdict of the planner (pause or stop)
// shows as a requested stop, too, because the session has one way to end early: it saves, and
// throws Interrupted. FitRunner::train() distinguishes the cases.

namespace treadle::internal {

FitContext::FitContext(RunParts& run, const FitId& id, nlohmann::json identity, Report report)
    : run_(run),
      id_(id),
      identity_(std::move(identity)),
      report_(std::move(report)),
      run_stop_(run.stop(), [this] { stop_.request_stop(); }),
      store_(run.folder.checkpoints(id.path())),
      saver_(run.writer) {
  // Requested for good: do_stop_token() chooses between the two sources.
  plans_stop_.request_stop();
}

void FitContext::load_checkpoint() {
  loaded_ = store_.load_latest([&](const std::string& warning) { do_note(warning); });
  // Also without a checkpoint: the rows of a fit that starts again are repeated.
  run_.log.cut_back(id_.path(), loaded_ ? loaded_->position.epochs_done : 0);
  if (!loaded_)
    return;
  run_.conditions().recognize(loaded_->state, identity_, loaded_->folder, run_.folder);
  const auto rows = loaded_->state.part("run").value("history").get<std::string>();
  if (run_.divides_fits && !run_.options.is_first_rank())
    run_.log.take_over(id_.path(), rows);  // another process may have trained it so far
  else
    run_.log.restore(id_.path(), rows, loaded_->folder.string());
}

void FitContext::copy_checkpoint(const std::string& fit, int keep) {
  CheckpointStore source(run_.folder.checkpoints(fit));
  loaded_ = source.load_latest([&](const std::string& warning) { do_note(warning); });
  if (!loaded_) {
    throw TrainingError(id_.path() + " begins with the checkpoint of " + fit +
                        ", which has saved none");
  }
  // It may be longer, and ends for reasons of its own.
  loaded_->position.finished = false;
  loaded_->state.put("stop_reason", nlohmann::json(""));
  loaded_->state.put("run", run_.conditions().marks(run_.log.rows_of(id_.path(), 0), identity_));
  // Before its first step: from here on it does not matter what becomes of the other.
  loaded_->folder = store_.save(loaded_->state, loaded_->position, keep);
}

void FitContext::expect_weights_of(Model& model) const {
  // Which the training loads next, so nothing is lost by it.
  load_module_state(model, loaded_->state.part("model"));
}

const StateDict* FitContext::saved_preprocessing() const {
  return loaded_ ? &loaded_->state.part("preprocessing") : nullptr;
}

void FitContext::begin(engine::Settled settled) {
  settled_ = std::move(settled);
  events_.emplace(run_.log.dispatcher(), id_);
  events_->notify([id = id_](RunObserver& o) { o.fit_started(id); });
}

void FitContext::finish() {
  saver_.finish();
  run_.log.drain();
}

void FitContext::complete(const FitSummary& summary) {
  events_->notify([id = id_, summary](RunObserver& o) { o.fit_completed(id, summary); });
}

/// Whether a failure's text names this fit, as that of a training loop does.
bool FitContext::is_named_in(const std::string& text) const {
  return text.find("(" + id_.path() + ")") != std::string::npos;
}

/// "training fold-1, after step 16 (epoch 2)"
std::string FitContext::place() const {
  const std::string training = "training " + id_.path();
  if (last_step_.step == 0)
    return training + ", before its first step was done";
  return training + ", after step " + std::to_string(last_step_.step) + " (epoch " +
         std::to_string(last_step_.epoch) + ")";
}

void FitContext::do_step_completed(const StepProgress& progress) {
  run_.has_trained.store(true, std::memory_order_relaxed);
  last_step_ = progress;
  if (settled_ && ++steps_made_ == kStepsToSettle)
    settle();
  saver_.expect_no_failure();
  events_->step_completed(progress);
}

void FitContext::do_epoch_completed(const EpochSummary& summary) {
  settle();
  events_->notify([id = id_, summary](RunObserver& o) { o.epoch_completed(id, summary); });
  if (!summary.epochs || summary.epoch < *summary.epochs)
    verdict_ = report_(summary);
}

/// Where the plan wants a pause or an end, the session finds a stop requested, saves at the end of
/// the epoch and throws Interrupted.
std::stop_token FitContext::do_stop_token() const {
  return verdict_ == FitVerdict::kContinue ? stop_.get_token() : plans_stop_.get_token();
}

void FitContext::settle() {
  if (settled_)
    std::exchange(settled_, nullptr)();
}

void FitContext::do_note_once(const std::string& subject, const std::string& text) {
  if (run_.log.is_first_of(subject))
    do_note(text);
}

void FitContext::do_note(const std::string& text) {
  if (!events_)
    return run_.log.note(text);
  events_->notify([text](RunObserver& o) { o.noted(text); });
}

void FitContext::do_save_checkpoint(const StateDict& state,
                                    const engine::TrainingPosition& position, int keep) {
  // Of processes that share steps rank 0 saves for all; trials may be paused, and go on from what
  // each process has saved.
  if (run_.shared_steps() != nullptr && !run_.options.is_first_rank() &&
      !run_.workflow().resolved.contains("search"))
    return;
  const Timeline::Span span(&run_.timeline, Phase::kSaving);
  // One that has finished with this epoch is neither paused nor stopped after it.
  if (position.finished)
    verdict_ = FitVerdict::kContinue;
  // Fitted before the first step, and the same ever after.
  if (!preprocessing_)
    preprocessing_ = fit_->preprocessing();
  // Taken together with the state. When the writer gets to it, later events may be queued, and it
  // need not wait for those.
  const std::uint64_t told = run_.log.dispatcher().mark();
  engine::count_fetched(state, &run_.timeline);
  saver_.save(state, [this, position, keep, told](const StateDict& copy) {
    write_checkpoint(copy, position, keep, told);
  });
}

/// On the writer's thread. `told` marks what was told before the state was copied.
void FitContext::write_checkpoint(const StateDict& state, const engine::TrainingPosition& position,
                                  int keep, std::uint64_t told) {
  // The history must not be behind the checkpoint, or a resumed run would have a gap in it.
  run_.log.dispatcher().wait_for(told);
  const std::string history = run_.log.saved_rows_of(id_.path(), position.epochs_done);
  StateDict complete = state;
  complete.put("preprocessing", *preprocessing_);
  complete.put("run", run_.conditions().marks(history, identity_));
  const std::string path = store_.save(complete, position, keep).string();
  run_.log.notify([id = id_, path](RunObserver& o) { o.checkpoint_saved(id, path); });
}

std::optional<StateDict> FitContext::do_resume_state() {
  if (!loaded_)
    return std::nullopt;
  return loaded_->state;
}

std::string FitContext::do_last_checkpoint() const {
  saver_.wait();
  return store_.newest().string();
}

}  // namespace treadle::internal
