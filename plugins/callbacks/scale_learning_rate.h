#pragma once

#include <cstdint>
#include <optional>

#include "followed_condition.h"

namespace treadle::callbacks {

/// Multiplies the learning rate when a condition holds.
class ScaleLearningRate final : public TrainingCallback {
 public:
  explicit ScaleLearningRate(const Config& config);

 private:
  void do_begin(TrainingControl& control) override;
  void do_after_epoch(const EpochSummary& epoch, TrainingControl& control) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  FollowedCondition when_;
  double factor_;
  std::optional<std::int64_t> times_;  // at most; nothing: as often as it holds
  std::int64_t done_ = 0;
};

}  // namespace treadle::callbacks
