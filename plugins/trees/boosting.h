#pragma once

#include <treadle/base/config.h>
#include <treadle/core/training/training_workflow.h>

namespace treadle::trees {

/// Gradient boosting: in each epoch one round, a tree for each margin, grown from all training rows.
///
/// T. Chen & C. Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016. A model that has
/// trees already gets more of them. There are no steps. No state: trees are the model's, and what a
/// round draws is a function of its epoch.
class Boosting final : public TrainingWorkflow {
 public:
  explicit Boosting(const Config&) {}

 private:
  LoopNeeds do_needs() const override;
  void do_train(TrainingSession& session) override;
};

}  // namespace treadle::trees
