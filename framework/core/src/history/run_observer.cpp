#include <treadle/core/history/run_observer.h>

#include <treadle/core/components/plugin_call.h>

namespace treadle {

void RunObserver::run_started(const std::string& name, const std::string& folder) {
  call_plugin(*this, "run_started", [&] { do_run_started(name, folder); });
}

void RunObserver::fit_started(const FitId& fit) {
  call_plugin(*this, "fit_started", [&] { do_fit_started(fit); });
}

void RunObserver::step_completed(const FitId& fit, const StepProgress& progress) {
  call_plugin(*this, "step_completed", [&] { do_step_completed(fit, progress); });
}

void RunObserver::epoch_completed(const FitId& fit, const EpochSummary& summary) {
  call_plugin(*this, "epoch_completed", [&] { do_epoch_completed(fit, summary); });
}

void RunObserver::checkpoint_saved(const FitId& fit, const std::string& path) {
  call_plugin(*this, "checkpoint_saved", [&] { do_checkpoint_saved(fit, path); });
}

void RunObserver::fit_completed(const FitId& fit, const FitSummary& summary) {
  call_plugin(*this, "fit_completed", [&] { do_fit_completed(fit, summary); });
}

void RunObserver::trial_changed(const TrialSummary& trial, const SearchProgress& search) {
  call_plugin(*this, "trial_changed", [&] { do_trial_changed(trial, search); });
}

void RunObserver::noted(const std::string& text) {
  call_plugin(*this, "noted", [&] { do_noted(text); });
}

void RunObserver::run_completed(const std::string& folder) {
  call_plugin(*this, "run_completed", [&] { do_run_completed(folder); });
}

void RunObserver::do_run_started(const std::string&, const std::string&) {}
void RunObserver::do_fit_started(const FitId&) {}
void RunObserver::do_step_completed(const FitId&, const StepProgress&) {}
void RunObserver::do_epoch_completed(const FitId&, const EpochSummary&) {}
void RunObserver::do_checkpoint_saved(const FitId&, const std::string&) {}
void RunObserver::do_fit_completed(const FitId&, const FitSummary&) {}
void RunObserver::do_trial_changed(const TrialSummary&, const SearchProgress&) {}
void RunObserver::do_noted(const std::string&) {}
void RunObserver::do_run_completed(const std::string&) {}

}  // namespace treadle
