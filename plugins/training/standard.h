#pragma once

#include <treadle/base/config.h>
#include <treadle/core/training/training_workflow.h>

namespace treadle {

/// The training loop most people want: every batch of every epoch, at the schedule's rate.
class StandardTraining final : public TrainingWorkflow {
 public:
  explicit StandardTraining(const Config&) {}

 private:
  void do_train(TrainingSession& session) override {
    while (session.next_epoch()) {
      while (session.step(session.scheduled_rate())) {
      }
      session.finish_epoch();
    }
  }
};

}  // namespace treadle
