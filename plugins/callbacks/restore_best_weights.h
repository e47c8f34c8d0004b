#pragma once

#include "monitor.h"

namespace treadle::callbacks {

/// Has the training end with the weights of the epoch that was best by a number.
class RestoreBestWeights final : public TrainingCallback {
 public:
  explicit RestoreBestWeights(const Config& config);

 private:
  void do_begin(TrainingControl& control) override;
  void do_after_epoch(const EpochSummary& epoch, TrainingControl& control) override;
  StateDict do_state() const override { return best_.state(); }
  void do_load_state(const StateDict& state) override { best_.load_state(state); }

  Monitor monitor_;
  bool is_active_ = false;
  BestValue best_;
};

}  // namespace treadle::callbacks
