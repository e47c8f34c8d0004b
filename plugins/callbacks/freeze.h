#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "followed_condition.h"

namespace treadle::callbacks {

/// Freezes parameters, for the whole training or until a condition holds. A frozen
/// parameter has no gradient; its optimizer state stays as it is, too.
class Freeze final : public TrainingCallback {
 public:
  explicit Freeze(const Config& config);

 private:
  void do_begin(TrainingControl& control) override;
  void do_after_epoch(const EpochSummary& epoch, TrainingControl& control) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;
  void unfreeze();

  Config config_;
  std::optional<FollowedCondition> until_;
  std::vector<at::Tensor> parameters_;
  bool is_frozen_ = true;
};

}  // namespace treadle::callbacks
