#pragma once

#include <optional>

#include "monitor.h"
#include "patience.h"

namespace treadle::callbacks {

/// Stops the training when a number has not got better for a while, and has it end with the weights
/// of the best epoch.
class EarlyStopping final : public TrainingCallback {
 public:
  explicit EarlyStopping(const Config& config);

 private:
  void do_begin(TrainingControl& control) override;
  void do_after_epoch(const EpochSummary& epoch, TrainingControl& control) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  Monitor monitor_;
  Duration length_;
  Patience::Options options_;
  bool restores_;
  bool is_active_ = false;
  std::optional<Patience> patience_;  // once the direction is known
  StateDict saved_patience_;          // until then, after a resume
  std::int64_t last_epoch_ = 0;       // with a value
  BestValue best_;
};

}  // namespace treadle::callbacks
