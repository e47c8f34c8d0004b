#pragma once

#include <treadle/core/history/run_observer.h>
#include <treadle/host/run/run_folder.h>

#include "ranks/rank_mail.h"

namespace treadle::internal {

/// In a process other than rank 0: sends what its fits do to rank 0, for the observers of the run,
/// and each checkpoint as soon as it is saved.
class ForwardedEvents final : public RunObserver {
 public:
  /// Borrows both.
  ForwardedEvents(const RunFolder& folder, RankMail& mail) : folder_(folder), mail_(mail) {}

 private:
  void do_fit_started(const FitId& fit) override;
  void do_step_completed(const FitId& fit, const StepProgress& progress) override;
  void do_epoch_completed(const FitId& fit, const EpochSummary& epoch) override;
  void do_checkpoint_saved(const FitId& fit, const std::string& path) override;
  void do_fit_completed(const FitId& fit, const FitSummary& summary) override;
  void do_noted(const std::string& text) override;

  void send(const FitId& fit, nlohmann::json event);

  const RunFolder& folder_;
  RankMail& mail_;
};

}  // namespace treadle::internal
