#pragma once

#include "followed_condition.h"

namespace treadle::callbacks {

/// Ends the training when a condition holds.
class Stop final : public TrainingCallback {
 public:
  explicit Stop(const Config& config) : when_(Condition::configured_by(config.child("when"))) {}

 private:
  void do_begin(TrainingControl& control) override {
    is_active_ = !control.is_refit();
    if (is_active_) {
      when_.begin(control, "stopping");
    } else {
      control.note(control.name() + " trains as long as its folds did; left out: stopping when " +
                   when_.condition().text());
    }
  }
  void do_after_epoch(const EpochSummary& epoch, TrainingControl& control) override {
    if (is_active_ && when_.holds(epoch, control))
      control.stop(when_.condition().text());
  }
  StateDict do_state() const override {
    StateDict state;
    state.put("when", when_.state());
    return state;
  }
  void do_load_state(const StateDict& state) override { when_.load_state(state.part("when")); }

  FollowedCondition when_;
  bool is_active_ = true;
};

}  // namespace treadle::callbacks
