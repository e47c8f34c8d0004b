#include "scale_learning_rate.h"

#include "number_text.h"

namespace treadle::callbacks {

ScaleLearningRate::ScaleLearningRate(const Config& config)
    : when_(Condition::configured_by(config.child("when"))),
      factor_(config.get<double>("factor")),
      times_(config.find<std::int64_t>("times")) {
  // A condition that only waits holds ever after.
  if (when_.condition().names().empty() && !times_)
    times_ = 1;
}

void ScaleLearningRate::do_begin(TrainingControl& control) {
  when_.begin(control, "changing the learning rate");
}

void ScaleLearningRate::do_after_epoch(const EpochSummary& epoch, TrainingControl& control) {
  const bool holds = when_.holds(epoch, control);
  if (!holds || (times_ && done_ >= *times_))
    return;
  ++done_;
  control.multiply_rate(factor_);
  control.changed("learning rate times " + number_text(factor_) + ": " + when_.condition().text());
}

StateDict ScaleLearningRate::do_state() const {
  StateDict state;
  state.put("when", when_.state());
  state.put("done", nlohmann::json(done_));
  return state;
}

void ScaleLearningRate::do_load_state(const StateDict& state) {
  when_.load_state(state.part("when"));
  done_ = state.value("done").get<std::int64_t>();
}

}  // namespace treadle::callbacks
