#include "context/run_conditions.h"

#include <algorithm>
#include <array>
#include <fstream>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/base/json_words.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/host/run/state_folder.h>

#include "context/continuation.h"
#include "runtime/run_record.h"

// Refuses to mix runs. What a run's bits depend on is in environment.json (plugins, libtorch, data,
// document), with a copy in every checkpoint and record ("marks"). A resumed run compares all of it
// before it begins. The document is compared again whenever a checkpoint or a record is read,
// because folders can be copied from run to run.
//
// The document is compared in full, but for values on which no bit depends. Files are compared by
// the hash of their content, so they may have moved.

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What may change between a run's beginning and its end, as the bits do not depend on it. The
/// content of weights and data is compared by its hash: they may lie elsewhere. The kind of device
/// is part of the environment: which one of its kind is no difference.
constexpr std::array kMayChange{"/name",
                                "/observers",
                                "/extensions",
                                "/resources/workers",
                                "/resources/device",
                                "/resources/execution",
                                "/resources/communicator",
                                "/resources/divide",
                                "/search/trials",
                                "/search/budget",
                                "/search/keep",
                                "/search/storage",
                                "/search/study",
                                "/search/lease",
                                "/model/weights/path"};
constexpr const char* kGivenWeights = "/model/weights";
constexpr std::size_t kMostShown = 6;

void erase(json& document, const json::json_pointer& pointer) {
  if (!document.contains(pointer))
    return;
  json& parent = document.at(pointer.parent_pointer());
  if (parent.is_object())
    parent.erase(pointer.back());
}

bool is_path(const json& schema) {
  if (schema.is_object() && schema.value("x-treadle-type", json()) == "path")
    return true;
  return schema.is_structured() && std::any_of(schema.begin(), schema.end(), is_path);
}

/// Removes what keeps a component of the data from being equal only because its files were moved.
void erase_paths(json& data, const json& schema) {
  const json properties = schema.value("properties", json::object());
  for (const auto& [key, property] : properties.items()) {
    if (is_path(property))
      data.erase(key);
  }
}

std::string before_and_now(const json& change, const json& before) {
  const auto pointer = change.at("path").get<std::string>();
  const std::string what = plain_text(pointer.empty() ? "the document" : pointer);
  if (change.at("op") == "add")
    return what + " is new (" + quote_value(change.at("value")) + ")";
  const std::string old = quote_value(before.at(json::json_pointer(pointer)));
  if (change.at("op") == "remove")
    return what + " was " + old + " and is gone";
  return what + " was " + old + " and is now " + quote_value(change.at("value"));
}

json read_object(const fs::path& path) {
  std::ifstream file(path);
  const json value = parse_json(file);
  return value.is_object() ? value : json();
}

/// The folders of states below `folder`, at any depth.
std::vector<fs::path> state_folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->is_directory(error) || !fs::exists(entry->path() / "state.json", error))
      continue;
    found.push_back(entry->path());
    entry.disable_recursion_pending();
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Null when the folder cannot be read: whoever needs its state says so.
json conditions_in(const fs::path& folder, std::string_view part) {
  try {
    StateDict state = read_state_folder(folder);
    if (!part.empty())
      state = StateDict(state.part(part));
    return state.part("run").value("conditions");
  } catch (const StorageError&) {
    return {};
  }
}

/// Adds the parameters that a component lacks, at their defaults.
void add_defaults(const PluginRegistry& registry, const std::string& word, json& component) {
  if (!component.is_object() || !component.contains("use"))
    return;
  const FoundComponent found =
      registry.schemas().find(word, component.at("use").get<std::string>());
  if (found.schema == nullptr)
    return;
  const json properties = found.schema->value("properties", json::object());
  for (const auto& [key, property] : properties.items()) {
    if (property.contains("default") && !component.contains(key)) {
      component[key] = property.at("default");
    } else if (property.contains("x-treadle-component") && component.contains(key)) {
      add_defaults(registry, property.at("x-treadle-component"), component.at(key));
    }
  }
}

}  // namespace

json with_new_parameters(const PluginRegistry& registry, json document) {
  const json slots = workflow_schema().at("properties");
  for (const auto& [key, slot] : slots.items()) {
    const std::string word = slot.value("x-treadle-component", "");
    if (!word.empty() && document.contains(key))
      add_defaults(registry, word, document.at(key));
  }
  return document;
}

json document_identity(const PluginRegistry& registry, const json& resolved) {
  json identity = with_new_parameters(registry, resolved);
  for (const char* pointer : kMayChange)
    erase(identity, json::json_pointer(pointer));
  if (const json::json_pointer weights(kGivenWeights); identity.contains(weights)) {
    // One file was erased above; of several, each has a path of its own.
    for (json& file : identity.at(weights)) {
      if (file.is_object())
        file.erase("path");
    }
  }
  json& data = identity.at("data");
  erase_paths(data, registry.describe<DataProvider>(data.at("use").get<std::string>()).schema);
  return identity;
}

std::vector<DocumentChange> document_changes(const json& before, const json& now) {
  std::vector<DocumentChange> found;
  for (const json& change : json::diff(before, now))
    found.push_back({change.at("path").get<std::string>(), before_and_now(change, before)});
  return found;
}

void expect_same_document(const fs::path& place, const json& before, const json& now,
                          const RunFolder& folder) {
  const std::vector<DocumentChange> changes = document_changes(before, now);
  if (changes.empty())
    return;
  std::string text;
  for (std::size_t i = 0; i < std::min(changes.size(), kMostShown); ++i)
    text += (i == 0 ? "" : "; ") + changes[i].text;
  if (changes.size() > kMostShown)
    text += "; and " + std::to_string(changes.size() - kMostShown) + " more";
  throw StorageError(place.string() + ": was made with another document than " +
                     folder.document().string() + " is now: " + text +
                     ". Put the old values back to resume this run, or start a new one: "
                     "workflow-runner run " +
                     folder.document().string());
}

std::optional<json> beginning_of(const RunFolder& folder,
                                 const std::function<void(const std::string&)>& note) {
  if (json kept = read_object(folder.environment()); kept.contains("document"))
    return kept;
  std::vector<std::pair<fs::path, std::string_view>> sources;
  for (const fs::path& fit : state_folders_in(folder.fit_results()))
    sources.emplace_back(fit, "");
  for (const fs::path& checkpoint : state_folders_in(folder.checkpoints()))
    sources.emplace_back(checkpoint, "workflow");
  for (const auto& [source, part] : sources) {
    json conditions = conditions_in(source, part);
    if (!conditions.is_object())
      continue;
    note(folder.environment().string() +
         " is missing or damaged; what the run began with was read from " + source.string());
    return conditions;
  }
  return std::nullopt;
}

nlohmann::json RunConditions::json() const {
  nlohmann::json conditions = environment_;
  conditions["document"] = document_;
  conditions["choices"] = choices_;
  return conditions;
}

/// A run that goes on from another one trains on the data of that one.
void RunConditions::expect_data_of(const nlohmann::json& before, const std::string& differences,
                                   const RunFolder& folder) const {
  if (!environment_.contains(kContinued) ||
      environment_.at("data_hash") == before.value("data_hash", nlohmann::json()))
    return;
  throw StorageError(
      environment_.at(kContinued).at("run").get<std::string>() +
      ": was trained on other data, so it cannot be trained further: " + differences +
      ". Restore the data, or start a new run: workflow-runner run " + folder.document().string());
}

void RunConditions::compare_with_beginning(const RunFolder& folder, bool allow_differences,
                                           const std::function<void(const std::string&)>& note) {
  const std::optional<nlohmann::json> before = beginning_of(folder, note);
  if (!before)
    return;  // nothing was trained, so there is nothing to mix
  expect_same_document(folder.path(), before->at("document"), document_, folder);
  choices_ = before->value("choices", choices_);
  if (before->contains(kContinued))
    environment_[kContinued] = before->at(kContinued);
  const std::vector<std::string> found = differences(*before, environment_);
  if (found.empty())
    return;
  constexpr std::size_t kMostNamed = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(found.size(), kMostNamed); ++i)
    text += (text.empty() ? "" : "; ") + found[i];
  if (found.size() > kMostNamed)
    text += "; and " + std::to_string(found.size() - kMostNamed) + " more";
  const std::int64_t rows = environment_.at("data_rows").get<std::int64_t>();
  const std::int64_t rows_before = before->value("data_rows", rows);
  if (rows != rows_before)
    text += "; rows of data were " + std::to_string(rows_before) + " and are now " +
            std::to_string(rows);
  expect_data_of(*before, text, folder);
  if (!allow_differences) {
    throw StorageError(folder.path().string() + ": this run began under other conditions: " + text +
                       "; its result would differ from an uninterrupted run's. Restore them, or "
                       "pass --allow-differences");
  }
  if (rows != rows_before) {
    throw StorageError(folder.path().string() + ": the run began with " +
                       std::to_string(rows_before) + " rows of data, and now there are " +
                       std::to_string(rows) +
                       ": it cannot go on with other rows. Restore the data, or start a new run: "
                       "workflow-runner run " +
                       folder.document().string());
  }
  note("resumed under other conditions: " + text);
}

StateDict RunConditions::marks(const std::string& history,
                               const nlohmann::json& fit_document) const {
  StateDict marks;
  marks.put("conditions", json());
  marks.put("history", nlohmann::json(history));
  if (!fit_document.is_null())
    marks.put("fit_document", fit_document);
  return marks;
}

void RunConditions::recognize(const StateDict& state, const nlohmann::json& fit_document,
                              const fs::path& place, const RunFolder& folder) const {
  const StateDict& marks = state.part("run");
  expect_same_document(place, marks.value("conditions").at("document"), document_, folder);
  if (!fit_document.is_null())
    expect_same_document(place, marks.value("fit_document"), fit_document, folder);
}

}  // namespace treadle::internal
