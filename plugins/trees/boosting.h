#pragma once

#include <cstdint>

#include <treadle/base/config.h>
#include <treadle/core/training/training_workflow.h>

namespace treadle::trees {

/// Gradient boosting: in each epoch one round, a tree for each margin, grown from all training
/// rows.
///
/// T. Chen & C. Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016. A model that has
/// trees already gets more of them. It makes no steps. Rows and columns of a round are drawn by a
/// seed of its epoch.
///
/// State: how many epochs have their trees, which may be one more than have ended.
class Boosting final : public TrainingWorkflow {
 public:
  explicit Boosting(const Config&) {}

 private:
  LoopNeeds do_needs() const override;
  void do_train(TrainingSession& session) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::int64_t rounds_grown_ = 0;
};

}  // namespace treadle::trees
