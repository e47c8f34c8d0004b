#include <treadle/core/training/training_callback.h>

#include <algorithm>

#include <treadle/base/near_miss.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {

void TrainingControl::expect_logged(const std::string& name, const Config& config,
                                    std::string_view key) {
  const std::vector<std::string>& known = logged_names();
  const auto count = std::count(known.begin(), known.end(), name);
  if (count == 1)
    return follow(name);
  if (count > 1) {
    config.fail(key, "two numbers of the history are called \"" + name +
                         "\"; give the model's tag another name");
  }
  std::string list;
  for (const std::string& one : known)
    list += (list.empty() ? "" : ", ") + one;
  config.fail(key, "there is no \"" + name + "\" in the history of this training, which has " +
                       list + did_you_mean(name, known) +
                       "; name one of these, or add it to \"metrics\"");
}

std::vector<std::string> TrainingCallback::log_names() const {
  return call_plugin(*this, "log_names", [&] { return do_log_names(); });
}

void TrainingCallback::begin(TrainingControl& control) {
  call_plugin(*this, "begin", [&] { do_begin(control); });
}

bool TrainingCallback::wants_steps() const {
  return call_plugin(*this, "wants_steps", [&] { return do_wants_steps(); });
}

void TrainingCallback::after_step(const StepReport& step, TrainingControl& control) {
  call_plugin(*this, "after_step", [&] { do_after_step(step, control); });
}

void TrainingCallback::after_epoch(const EpochSummary& epoch, TrainingControl& control) {
  call_plugin(*this, "after_epoch", [&] { do_after_epoch(epoch, control); });
}

std::vector<std::string> TrainingCallback::do_log_names() const {
  return {};
}
void TrainingCallback::do_begin(TrainingControl&) {}
bool TrainingCallback::do_wants_steps() const {
  return false;
}
void TrainingCallback::do_after_step(const StepReport&, TrainingControl&) {}
void TrainingCallback::do_after_epoch(const EpochSummary&, TrainingControl&) {}
StateDict TrainingCallback::do_state() const {
  return {};
}
void TrainingCallback::do_load_state(const StateDict&) {}

}  // namespace treadle
