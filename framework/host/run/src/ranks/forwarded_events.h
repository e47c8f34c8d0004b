#pragma once

#include <chrono>

#include <treadle/core/history/run_observer.h>

#include "ranks/rank_mail.h"

namespace treadle::internal {

/// In a process other than rank 0: sends what its fits do to rank 0, for the observers of the run,
/// and each checkpoint as soon as it is saved.
class ForwardedEvents final : public RunObserver {
 public:
  /// Borrows it.
  explicit ForwardedEvents(RankMail& mail) : mail_(mail) {}

 private:
  void do_fit_started(const FitId& fit) override;
  void do_step_completed(const FitId& fit, const StepProgress& progress) override;
  void do_epoch_completed(const FitId& fit, const EpochSummary& epoch) override;
  void do_checkpoint_saved(const FitId& fit, const std::string& path) override;
  void do_fit_completed(const FitId& fit, const FitSummary& summary) override;
  void do_noted(const std::string& text) override;

  void send(const FitId& fit, nlohmann::json event);

  using Clock = std::chrono::steady_clock;
  /// Of steps only the newest is sent, so often.
  static constexpr std::chrono::milliseconds kBetweenSteps{500};

  RankMail& mail_;
  Clock::time_point next_step_;
};

}  // namespace treadle::internal
