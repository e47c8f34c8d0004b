#pragma once

#include <cstdint>

#include <treadle/base/config.h>
#include <treadle/core/training/training_workflow.h>

namespace treadle::trees {

/// Gradient boosting: in each epoch one or several rounds, each a tree for each margin, grown from
/// all training rows.
///
/// T. Chen & C. Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016. A model that has
/// trees already gets more of them. It makes no steps. Rows and columns of a round are drawn by a
/// seed of its own.
///
/// State: how many rounds were grown, which may be those of one more epoch than have ended.
class Boosting final : public TrainingWorkflow {
 public:
  explicit Boosting(const Config& config);

 private:
  LoopNeeds do_needs() const override;
  void do_train(TrainingSession& session) override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  const std::int64_t rounds_per_epoch_;
  std::int64_t rounds_grown_ = 0;
};

}  // namespace treadle::trees
