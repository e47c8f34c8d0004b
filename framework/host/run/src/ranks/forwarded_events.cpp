#include "ranks/forwarded_events.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/error.h>

#include "ranks/fit_files.h"
#include "ranks/fit_messages.h"

namespace treadle::internal {

void ForwardedEvents::send(const FitId& fit, nlohmann::json event) {
  event["id"] = to_json(fit);
  mail_.send(0, message(FitMessage::kEvent, std::move(event)));
}

void ForwardedEvents::do_fit_started(const FitId& fit) {
  send(fit, nlohmann::json::object());
}

void ForwardedEvents::do_step_completed(const FitId& fit, const StepProgress& progress) {
  if (Clock::now() < next_step_)
    return;
  next_step_ = Clock::now() + kBetweenSteps;
  send(fit, {{"step",
              {progress.epoch, progress.epochs.value_or(-1), progress.step,
               progress.total_steps.value_or(-1)}}});
}

void ForwardedEvents::do_epoch_completed(const FitId& fit, const EpochSummary& epoch) {
  send(fit, {{"epoch", to_json(epoch)}});
}

void ForwardedEvents::do_fit_completed(const FitId& fit, const FitSummary& summary) {
  send(fit, {{"summary", to_json(summary)}});
}

void ForwardedEvents::do_noted(const std::string& text) {
  mail_.send(0, message(FitMessage::kEvent, {{"note", text}}));
}

void ForwardedEvents::do_checkpoint_saved(const FitId& fit, const std::string& path) {
  const std::filesystem::path saved = path;
  try {
    nlohmann::json content = packed(saved);
    std::vector<std::string> kept;
    for (const auto& entry : std::filesystem::directory_iterator(saved.parent_path()))
      kept.push_back(entry.path().filename().string());
    mail_.send(0, message(FitMessage::kFiles, {{"files", static_cast<int>(FitFiles::kCheckpoint)},
                                               {"fit", fit.path()},
                                               {"name", saved.filename().string()},
                                               {"content", std::move(content)},
                                               {"kept", std::move(kept)}}));
  } catch (const StorageError&) {
    // A later one has taken its place meanwhile.
  } catch (const std::filesystem::filesystem_error&) {
  }
}

}  // namespace treadle::internal
