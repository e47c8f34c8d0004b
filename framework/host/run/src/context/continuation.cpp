#include "context/continuation.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/host/record/history_file.h>
#include <treadle/host/run/checkpoint_store.h>

#include "components/document_components.h"
#include "context/run_conditions.h"
#include "document/document_slots.h"

// `run --from`: a new run that begins with the newest checkpoints of an ended one.
//
// The new folder is filled in an order that a kill cannot turn into a wrong run: history,
// checkpoints, environment.json, and by the caller workflow.json last. A folder without
// workflow.json is no run.
//
// Two documents are the same training if they differ only in values that a training does not depend
// on in its past. The optimizer is compared by the state it keeps: its parameters may change, but
// not so that saved state has no place or is missing.

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Values that a training's past does not depend on, and everything within them.
constexpr std::array kChangeable{
    "/schedule",           "/training/epochs",         "/training/max_steps",
    "/training/clip",      "/training/evaluate_every", "/training/evaluation_batch_size",
    "/training/checkpoint"};
constexpr const char* kOptimizer = "/optimizer";
constexpr const char* kCallbacks = "/training/callbacks";
constexpr const char* kWhatMayChange =
    "training.epochs, training.max_steps, training.evaluate_every, "
    "training.evaluation_batch_size, training.clip, training.checkpoint, the schedule, parameters "
    "of the optimizer and of callbacks";

bool is_within(std::string_view pointer, std::string_view whole) {
  return pointer == whole || (pointer.starts_with(whole) && pointer[whole.size()] == '/');
}

/// "patience" of "/training/early_stopping/patience", below "/training/early_stopping"; empty where
/// `pointer` does not lie below.
std::string_view key_below(std::string_view pointer, std::string_view whole) {
  if (pointer == whole || !is_within(pointer, whole))
    return {};
  pointer.remove_prefix(whole.size() + 1);
  return pointer.substr(0, pointer.find('/'));
}

/// Where the document has its callbacks.
std::vector<std::string> callback_pointers(const json& document) {
  std::vector<std::string> pointers;
  const json& training = document.at("training");
  const json schema = workflow_schema().at("properties").at("training").at("properties");
  for (const auto& [key, value] : training.items()) {
    const json property = schema.value(key, json::object());
    if (property.value("x-treadle-component", "") == "callback")
      pointers.push_back("/training/" + key);
  }
  for (std::size_t i = 0; i < training.value("callbacks", json::array()).size(); ++i)
    pointers.push_back(std::string(kCallbacks) + "/" + std::to_string(i));
  return pointers;
}

bool may_change(const std::string& pointer, const std::vector<std::string>& callbacks) {
  if (std::any_of(kChangeable.begin(), kChangeable.end(),
                  [&](const char* whole) { return is_within(pointer, whole); }))
    return true;
  const auto is_parameter = [](std::string_view key) { return !key.empty() && key != "use"; };
  const std::string_view of_optimizer = key_below(pointer, kOptimizer);
  if (is_parameter(of_optimizer) && of_optimizer != "groups")
    return true;
  return std::any_of(callbacks.begin(), callbacks.end(), [&](const std::string& callback) {
    return is_parameter(key_below(pointer, callback));
  });
}

[[noreturn]] void refuse_changes(const RunFolder& before, const std::string& changes) {
  throw UsageError(
      before.path().string() + " cannot be trained further as another training: " + changes +
      ". You may change " + kWhatMayChange +
      "; for anything else start a new run: workflow-runner run " + before.document().string());
}

std::string optimizer_state(const PluginRegistry& registry, const json& document) {
  if (!document.contains("optimizer"))
    return "";
  const Config slot(document.at("optimizer"), kOptimizer);
  std::string names;
  for (const SlotSpec& spec :
       registry.make<Optimizer>(slot.get<std::string>("use"), component_config(slot, "optimizer"))
           ->slots())
    names += (names.empty() ? "" : ", ") + spec.name;
  return names;
}

void expect_same_training(const RunFolder& before, const PluginRegistry& registry,
                          const json& document_before, const json& document) {
  const std::vector<std::string> callbacks = callback_pointers(document_before);
  std::string changes;
  std::string of_optimizer;
  for (const DocumentChange& change :
       document_changes(with_new_parameters(registry, document_before), document)) {
    if (!may_change(change.pointer, callbacks)) {
      changes += (changes.empty() ? "" : "; ") + change.text;
    } else if (is_within(change.pointer, kOptimizer)) {
      of_optimizer += (of_optimizer.empty() ? "" : "; ") + change.text;
    }
  }
  if (!changes.empty())
    refuse_changes(before, changes);
  const std::string state_before = optimizer_state(registry, document_before);
  const std::string state = optimizer_state(registry, document);
  if (state != state_before) {
    refuse_changes(before, of_optimizer + ", with which the optimizer's state is another one (" +
                               (state_before.empty() ? "none" : state_before) + "; now " +
                               (state.empty() ? "none" : state) + ")");
  }
}

/// The trainings that have checkpoints, by the path of theirs below `checkpoints`.
std::set<std::string> trainings_in(const fs::path& checkpoints) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(checkpoints, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory() && entry->path().filename().native().starts_with("step-")) {
      names.insert(entry->path().parent_path().lexically_relative(checkpoints).generic_string());
      entry.disable_recursion_pending();
    }
  }
  return names;
}

struct Saved {
  std::string name;
  CheckpointStore::Loaded checkpoint;
};

std::vector<Saved> newest_checkpoints(const RunFolder& before) {
  std::vector<Saved> saved;
  for (const std::string& name : trainings_in(before.checkpoints())) {
    const CheckpointStore store(before.checkpoints(name));
    if (auto loaded = store.load_latest([](const std::string&) {}))
      saved.push_back({name, std::move(*loaded)});
  }
  if (saved.empty()) {
    throw StorageError(before.path().string() +
                       ": has no checkpoint to train on from; start a new run: workflow-runner "
                       "run " +
                       before.document().string());
  }
  return saved;
}

/// Expects something to train, and nothing to take back.
void expect_more_to_train(const RunFolder& before, const json& document,
                          const std::vector<Saved>& trainings) {
  std::int64_t epochs = 0;
  std::int64_t steps = 0;
  bool was_ended = !fs::exists(before.result());  // or stopped, before its end was reached
  for (const Saved& training : trainings) {
    epochs = std::max(epochs, training.checkpoint.position.epochs_done);
    steps = std::max(steps, training.checkpoint.position.steps_done);
    was_ended = was_ended || training.checkpoint.state.value("stop_reason") != "";
  }
  const auto expect_more = [&](const std::string& key, const std::string& noun, std::int64_t done) {
    const json limit = document.at("training").value(key, json());
    if (!limit.is_number_integer())
      return;
    const auto wanted = limit.get<std::int64_t>();
    if (wanted > done || (wanted == done && was_ended))
      return;
    throw UsageError(before.path().string() + " has been trained for " + std::to_string(done) +
                     " " + noun + (done == 1 ? "" : "s") + ", and training." + key + " is " +
                     std::to_string(wanted) + "; set it higher: --set training." + key + "=" +
                     std::to_string(2 * done));
  };
  expect_more("epochs", "epoch", epochs);
  expect_more("max_steps", "step", steps);
}

}  // namespace

std::string continued_text(const json& from) {
  std::string text;
  for (const auto& [name, epochs] : from.at("epochs").items())
    text += (text.empty() ? ": " : ", ") + name + " after epoch " + epochs.dump();
  return "goes on from " + from.at("run").get<std::string>() + text;
}

void begin_from(const RunFolder& before, const Runtime& runtime, const ResolvedWorkflow& workflow,
                const RunFolder& folder) {
  if (workflow.resolved.contains("search")) {
    throw UsageError(before.path().string() +
                     " searched, so its trainings have several documents; a training of the best "
                     "one can be trained further: workflow-runner run " +
                     RunFolder::best_document_of(before.path()).string());
  }
  if (!workflow.resolved.contains("optimizer")) {
    throw UsageError(before.path().string() +
                     " was trained in one pass, without steps, so there is nothing to train "
                     "further; start a new run: workflow-runner run " +
                     before.document().string());
  }
  const std::vector<Saved> trainings = newest_checkpoints(before);
  const json document = document_identity(runtime.registry(), workflow.resolved);
  // Each checkpoint records what it was made with, whatever was done to the files beside it.
  json conditions = trainings.front().checkpoint.state.part("run").value("conditions");
  expect_same_training(before, runtime.registry(), conditions.at("document"), document);
  expect_more_to_train(before, workflow.resolved, trainings);
  // A baseline has a document of its own, which has the same values where a training may change.
  const json changes = json::diff(conditions.at("document"), document);
  conditions["document"] = document;
  json from{{"run", fs::absolute(before.path()).lexically_normal().string()},
            {"epochs", json::object()}};
  for (const Saved& training : trainings)
    from["epochs"][training.name] = training.checkpoint.position.epochs_done;
  conditions[kContinued] = from;

  const int keep = workflow.slot("training").child("checkpoint").get<int>("keep");
  HistoryFile history(folder.history());
  for (const Saved& training : trainings) {
    StateDict state = training.checkpoint.state;
    StateDict marks = state.part("run");
    history.restore(training.name, marks.value("history").get<std::string>());
    marks.put("conditions", conditions);
    if (marks.has_value("fit_document"))
      marks.put("fit_document", marks.value("fit_document").patch(changes));
    state.put("run", std::move(marks));
    // It goes on with its last weights, whichever it ended with.
    state.put("stop_reason", json(""));
    engine::TrainingPosition position = training.checkpoint.position;
    position.finished = false;
    CheckpointStore(folder.checkpoints(training.name)).save(state, position, keep);
  }
  history.sync();
  write_file_atomically(folder.environment(), conditions.dump(2) + "\n");
}

}  // namespace treadle::internal
