#include <treadle/core/run_observer.h>

#include <treadle/core/plugin_call.h>

namespace treadle {

void RunObserver::run_started(const std::string& name, const std::string& folder) {
  call_plugin(*this, "run_started", [&] { do_run_started(name, folder); });
}

void RunObserver::trial_started(const TrialId& trial) {
  call_plugin(*this, "trial_started", [&] { do_trial_started(trial); });
}

void RunObserver::step_completed(const TrialId& trial, const StepProgress& progress) {
  call_plugin(*this, "step_completed", [&] { do_step_completed(trial, progress); });
}

void RunObserver::epoch_completed(const TrialId& trial, const EpochSummary& summary) {
  call_plugin(*this, "epoch_completed", [&] { do_epoch_completed(trial, summary); });
}

void RunObserver::checkpoint_saved(const TrialId& trial, const std::string& path) {
  call_plugin(*this, "checkpoint_saved", [&] { do_checkpoint_saved(trial, path); });
}

void RunObserver::trial_completed(const TrialId& trial, const TrialSummary& summary) {
  call_plugin(*this, "trial_completed", [&] { do_trial_completed(trial, summary); });
}

void RunObserver::noted(const std::string& text) {
  call_plugin(*this, "noted", [&] { do_noted(text); });
}

void RunObserver::run_completed(const std::string& folder) {
  call_plugin(*this, "run_completed", [&] { do_run_completed(folder); });
}

void RunObserver::do_run_started(const std::string&, const std::string&) {}
void RunObserver::do_trial_started(const TrialId&) {}
void RunObserver::do_step_completed(const TrialId&, const StepProgress&) {}
void RunObserver::do_epoch_completed(const TrialId&, const EpochSummary&) {}
void RunObserver::do_checkpoint_saved(const TrialId&, const std::string&) {}
void RunObserver::do_trial_completed(const TrialId&, const TrialSummary&) {}
void RunObserver::do_noted(const std::string&) {}
void RunObserver::do_run_completed(const std::string&) {}

}  // namespace treadle
