#include <treadle/core/training/training_workflow.h>

#include <treadle/core/components/plugin_call.h>

namespace treadle {

void TrainingWorkflow::train(TrainingSession& session) {
  call_plugin(*this, "train", [&] { do_train(session); });
  if (!session.is_finished()) {
    refuse_result(
        *this, "train",
        "returned before the training was finished; a loop goes on until next_epoch() is false");
  }
}

StateDict TrainingWorkflow::do_state() const {
  return {};
}

void TrainingWorkflow::do_load_state(const StateDict&) {}

}  // namespace treadle
