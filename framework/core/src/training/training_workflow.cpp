#include <treadle/core/training/training_workflow.h>

#include <set>

#include <treadle/core/components/plugin_call.h>

namespace treadle {

LoopNeeds TrainingWorkflow::needs() const {
  LoopNeeds needs = call_plugin(*this, "needs", [&] { return do_needs(); });
  double set_aside = 0;
  std::set<std::string> names{"", "training", "validation"};
  for (const LoopNeeds::Part& part : needs.parts) {
    set_aside += part.fraction;
    if (part.fraction <= 0 || set_aside >= 1)
      refuse_result(*this, "needs", "sets aside no training rows, or all of them");
    if (!names.insert(part.name).second)
      refuse_result(*this, "needs", "calls two kinds of rows \"" + part.name + "\"");
  }
  if (needs.rows_per_epoch && *needs.rows_per_epoch < 1)
    refuse_result(*this, "needs", "has epochs without rows");
  return needs;
}

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
