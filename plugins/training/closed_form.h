#pragma once

#include <treadle/base/config.h>
#include <treadle/core/training/training_workflow.h>

#include "ridge.h"

namespace treadle {

/// Computes the last layer of the model by ridge regression over all rows of an epoch (RidgeSums);
/// all other layers stay as they are. A batch counts as a step, and there are no updates.
///
/// State: the sums over the rows that were read.
class ClosedFormTraining final : public TrainingWorkflow {
 public:
  explicit ClosedFormTraining(const Config& config) : sums_(config.get<double>("alpha")) {}

 private:
  LoopNeeds do_needs() const override;
  void do_train(TrainingSession& session) override;
  StateDict do_state() const override { return sums_.state(); }
  void do_load_state(const StateDict& state) override { sums_.load_state(state); }

  static void set_last_layer(TrainingSession& session, const RidgeSums::Solution& solution);

  RidgeSums sums_;
};

}  // namespace treadle
