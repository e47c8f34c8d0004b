#include "random_document.h"

#include <fstream>
#include <functional>
#include <map>
#include <set>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/host/run/workflow_run.h>
#include <treadle/tensor/task_random.h>

#include "document_keys.h"
#include "flow_drawer.h"
#include "hints.h"

namespace treadle::testing {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kMostAttempts = 60;
constexpr int kMostRepairs = 10;
constexpr int kValuesPerKey = 4;

/// How often a key of the top level is there that need not be.
const std::map<std::string, int>& top_level_chances() {
  static const std::map<std::string, int> chances{
      {"$schema", 3},     {"name", 20},      {"seed", 70},      {"precision", 30},
      {"transforms", 55}, {"optimizer", 80}, {"schedule", 55},  {"training", 100},
      {"validation", 65}, {"observers", 8},  {"resources", 60}, {"extensions", 5},
      {"sequence", 4},    {"baselines", 0},  {"search", 0},     {"outputs", 0},
      {"explain", 8}};
  return chances;
}

const json& slot_in(const json& schema) {
  if (schema.contains("x-treadle-component"))
    return schema;
  if (schema.contains("items"))
    return slot_in(schema["items"]);
  return slot_in(schema["anyOf"][0]);
}

class Drawer {
 public:
  /// `kept`: the keys of the top level that are settled.
  Drawer(const Runtime& runtime, Dice dice, const fs::path& folder, json kept)
      : schema_(workflow_schema()),
        drawing_{runtime, std::move(dice), folder},
        document_(std::move(kept)) {}

  Drawing& drawing() { return drawing_; }

  json document() {
    document_["treadle"] = 1;
    if (drawing_.dice.chance(40))
      document_["precision"] = drawing_.dice.one_of(
          std::vector<std::string>{"float64", "float64", "bf16-mixed", "bf16", "fp8-tensorwise",
                                   "fp8-rowwise", "fp8-delayed"});
    if (!document_.contains("data"))
      document_["data"] = component("data");
    open_data();
    draw_losses();
    draw_metrics();
    draw_model();
    for (const auto& [key, property] : schema_["properties"].items()) {
      const auto chance = top_level_chances().find(key);
      const int percent = chance == top_level_chances().end() ? 30 : chance->second;
      if (settled_.contains(key) || document_.contains(key) || !drawing_.dice.chance(percent))
        continue;
      document_[key] = draw_value(drawing_, property, {"", key});
    }
    // A network of real size would take the time of all others.
    if (drawing_.dice.chance(8))
      document_["baselines"] = {{{"use", "mlp"}, {"hidden", {drawing_.dice.whole(2, 5)}}}};
    if (drawing_.dice.chance(6))
      draw_search();
    if (drawing_.dice.chance(20))
      draw_outputs();
    for (const std::string& name : needed_transforms(drawing_.data)) {
      if (document_.value("transforms", json::array()).dump().find(name) == std::string::npos &&
          drawing_.dice.chance(90))
        document_["transforms"].push_back(name);
    }
    if (document_["data"].value("rows", json()) == "endless" ||
        !document_["data"].value("in_memory", true))
      make_it_a_stream();
    return document_;
  }

 private:
  /// Of few trials: each takes as long as a run.
  void draw_search() {
    Dice& dice = drawing_.dice;
    const std::vector<std::string> tuners{"random", "sobol", "tpe"};
    document_["search"] = {{"tuner", {{"use", dice.one_of(tuners)}}},
                           {"trials", dice.whole(2, 4)},
                           {"parallel", dice.whole(1, 3)},
                           {"space", {{"training.batch_size", {{"int", {4, 9}}}}}}};
    // Folds that begin with the weights of the one before are not evaluated together.
    const bool is_chained = document_.contains("validation") &&
                            document_["validation"].is_object() &&
                            document_["validation"].value("warm_start", false);
    const std::vector<std::string> pruners{"asha", "median", "successive_halving"};
    if (!is_chained && dice.chance(50))
      document_["search"]["pruner"] = {{"use", dice.one_of(pruners)}};
  }

  /// Those that learn from any rows: of so few, a class may be missing.
  void draw_outputs() {
    Dice& dice = drawing_.dice;
    const TargetSpec& target = dice.one_of(drawing_.data.targets);
    const bool is_classes = target.kind == TargetKind::kClasses;
    const bool is_labels = target.kind == TargetKind::kLabels;
    json outputs = json::object();
    if ((is_classes || is_labels) && dice.chance(60))
      outputs["calibration"] = {{"use", "temperature"}, {"per_class", dice.chance(40)}};
    if ((is_classes || target.kind == TargetKind::kNumbers) && dice.chance(60))
      outputs["conformal"] = {{"coverage", dice.short_number(dice.between(0.2, 0.5))}};
    const bool are_pairs = std::all_of(
        drawing_.data.targets.begin(), drawing_.data.targets.end(), [](const TargetSpec& one) {
          return one.kind != TargetKind::kClasses || one.class_count() == 2;
        });
    if ((is_classes || is_labels) && are_pairs && dice.chance(60))
      outputs["decision"] = {{"threshold", dice.short_number(dice.between(0.2, 0.8))}};
    if (outputs.empty())
      return;
    if (dice.chance(50))
      outputs["fraction"] = dice.short_number(dice.between(0.1, 0.5));
    document_["outputs"] = std::move(outputs);
  }

  /// Nothing but its first rows can validate, and an epoch needs a length.
  void make_it_a_stream() {
    Dice& dice = drawing_.dice;
    document_.erase("sequence");
    document_["validation"] = {{"use", "hold_out"}, {"rows", dice.whole(4, 12)}};
    json& training = document_["training"];
    if (!training.is_object())
      training = json::object();
    training["steps_per_epoch"] = dice.whole(1, 6);
    if (training.value("use", "standard") == "prequential")
      training["max_steps"] = dice.whole(2, 20);
    if (dice.chance(80))
      training["shuffle_buffer"] = dice.whole(4, 30);
  }

  json component(const std::string& key) {
    return draw_value(drawing_, schema_["properties"][key], {"", key});
  }

  void open_data() {
    const json& slot = schema_["properties"]["data"];
    auto provider = drawing_.runtime.registry().make<DataProvider>(
        document_["data"]["use"].get<std::string>(),
        Config(component_parameters(document_["data"], slot), "/data"));
    provider->open({});
    drawing_.data = provider->spec();
    for (const PortSpec& input : drawing_.data.inputs) {
      if (!input.is_auxiliary())
        drawing_.inputs.push_back(input.name);
      for (const Column& column : input.columns)
        drawing_.columns.push_back(column.name);
    }
    for (const TargetSpec& target : drawing_.data.targets)
      drawing_.targets.push_back(target.name);
  }

  /// A loss for each target, now and then two.
  void draw_losses() {
    const auto& targets = drawing_.data.targets;
    const bool is_one = targets.size() == 1;
    if (document_.contains("loss") || drawing_.dice.chance(is_one ? 30 : 20))
      return;
    const json& slot = slot_in(schema_["properties"]["loss"]);
    if (is_one && !drawing_.has_positions() && !document_.contains("model") &&
        drawing_.dice.chance(15)) {
      draw_ensemble(targets[0]);
      return;
    }
    json losses = json::array();
    for (const TargetSpec& target : targets) {
      for (int count = drawing_.dice.chance(20) ? 2 : 1; count-- > 0;) {
        json loss = draw_for("loss", slot, target);
        if (!is_one || drawing_.dice.chance(10))
          loss["target"] = target.name;
        losses.push_back(std::move(loss));
      }
    }
    document_["loss"] = losses.size() == 1 && drawing_.dice.chance(70) ? losses[0] : losses;
  }

  /// Its model ends with the outputs of all members: see draw_flow().
  void draw_ensemble(const TargetSpec& target) {
    const bool is_of_numbers = target.kind == TargetKind::kNumbers;
    const bool is_of_labels = target.kind == TargetKind::kLabels;
    document_["loss"] = {{"use", "ensemble"},
                         {"members", drawing_.dice.whole(2, 4)},
                         {"loss", is_of_numbers  ? "smooth_l1"
                                  : is_of_labels ? "bce_with_logits"
                                                 : "cross_entropy"}};
  }

  bool is_ensemble() const {
    return document_.contains("loss") && document_["loss"].is_object() &&
           document_["loss"].value("use", "") == "ensemble";
  }

  void draw_metrics() {
    const auto& targets = drawing_.data.targets;
    if (document_.contains("metrics")) {
      for (const json& metric : document_["metrics"])
        drawing_.metrics.push_back(name_of_metric(metric));
      return;
    }
    if (drawing_.dice.chance(30))
      return;
    const json& slot = slot_in(schema_["properties"]["metrics"]);
    document_["metrics"] = json::array();
    std::set<std::string> names;
    for (int count = static_cast<int>(drawing_.dice.whole(0, 3)); count-- > 0;) {
      const TargetSpec& target = drawing_.dice.one_of(targets);
      json metric = draw_for("metric", slot, target);
      if (targets.size() > 1)
        metric["target"] = target.name;
      const std::string called = name_of_metric(metric);
      if (!names.insert(called).second)
        continue;
      document_["metrics"].push_back(std::move(metric));
      drawing_.metrics.push_back(called);
    }
  }

  /// As the history calls it.
  std::string name_of_metric(const json& metric) const {
    std::string name = metric["use"];
    if (metric.contains("class"))
      name += "." + metric["class"].get<std::string>();
    return drawing_.data.targets.size() == 1 ? name : metric.value("target", "") + "/" + name;
  }

  json draw_for(const std::string& word, const json& slot, const TargetSpec& target) {
    const auto names = components_for(drawing_.runtime, word, target.kind);
    json drawn = draw_component(drawing_, slot, drawing_.dice.one_of(names), {"", word, nullptr});
    drawn.erase("target");
    return drawn;
  }

  void draw_model() {
    if (document_.contains("model")) {
      drawing_.flow = document_["model"].value("flow", json::array());
      note_tags(drawing_.flow);
    } else {
      const bool is_float64 = document_.value("precision", "") == "float64";
      drawing_.flow = draw_flow(drawing_, is_float64 ? at::kDouble : at::kFloat, is_ensemble());
      note_tags(drawing_.flow);
      document_["model"] =
          is_ensemble() ? json{{"use", "flow"}, {"flow", drawing_.flow}} : component("model");
    }
  }

  void note_tags(const json& steps) {
    for (const json& step : steps) {
      if (!step.is_object() || !step.contains("tag"))
        continue;
      const json tags = step["tag"].is_string() ? json{{"output", step["tag"]}} : step["tag"];
      for (const auto& [output, tag] : tags.items())
        drawing_.tags.push_back(tag);
    }
  }

  const json schema_;
  const std::set<std::string> settled_{"treadle", "precision", "loss", "metrics"};
  Drawing drawing_;
  json document_;
};

/// Takes away what a problem points at; false where that is needed.
bool erase_at(json& document, const std::string& text) {
  json::json_pointer pointer;
  try {
    pointer = json::json_pointer(text);
  } catch (const json::exception&) {
    return false;
  }
  while (!pointer.empty() && !document.contains(pointer))
    pointer.pop_back();
  while (!pointer.empty()) {
    const std::string key = pointer.back();
    pointer.pop_back();
    json& parent = document[pointer];
    if (pointer.empty() && (key == "data" || key == "model" || key == "treadle"))
      return false;
    if (parent.is_object() && key != "use") {
      parent.erase(key);
      return true;
    }
    if (parent.is_array() && parent.size() > 1) {
      parent.erase(std::stoul(key));
      return true;
    }
  }
  return false;
}

/// Weights for the model to start from: those of the document without any.
void write_weights(const Runtime& runtime, json document, const fs::path& folder) {
  const json::json_pointer place("/model/weights");
  if (!document.contains(place) || !document[place].contains("path"))
    return;
  const fs::path path = document[place]["path"].get<std::string>();
  document["model"].erase("weights");
  // Folds alone leave no single model.
  // One of the repetitions has a model wherever it refits or is a single fold.
  const json::json_pointer repeated("/validation/splitter");
  if (document.contains(repeated))
    document["validation"] = json(document[repeated]);
  for (const char* place_of_split : {"/validation", "/validation/outer"}) {
    const json::json_pointer split(place_of_split);
    if (document.contains(split) && document[split].is_object())
      document[split].erase("refit");
  }
  document["seed"] = document.value("seed", 0) + 1;
  RunOptions options;
  options.output = folder / "first";
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), options);
  if (fs::exists(outcome.folder / "model.safetensors"))
    fs::copy_file(outcome.folder / "model.safetensors", path, fs::copy_options::overwrite_existing);
}

class Attempts {
 public:
  Attempts(const Runtime& runtime, const fs::path& folder, RandomDocument& result)
      : runtime_(runtime), folder_(folder), result_(result) {}

  /// Whether it, or what is left of it, is accepted.
  bool accepts(json& document) {
    for (int repair = 0; repair <= kMostRepairs; ++repair) {
      std::ofstream(folder_ / "attempt.json") << document.dump(1);
      try {
        write_weights(runtime_, document, folder_);
        static_cast<void>(dry_run(runtime_, runtime_.resolve(document)));
        return true;
      } catch (const DocumentError& error) {
        refuse(error);
        bool is_less = false;
        for (const Problem& problem : error.problems())
          is_less = erase_at(document, problem.pointer) || is_less;
        keep_short(document);
        if (!is_less)
          return false;
      } catch (const Error& error) {
        refuse(error);
        return false;
      }
    }
    return false;
  }

  /// A repair may take the number of epochs away, and the default is for real data.
  static void keep_short(json& document) {
    constexpr int kEpochs = 3;
    json& training = document["training"];
    if (training.is_null())
      training = json::object();
    if (training.is_string())
      training = {{"use", training}};
    if (!training.is_object())
      return;  // refused anyway
    const bool has_epochs = training.value("use", "standard") == "standard";
    if (has_epochs && !training.contains("epochs") && !training.contains("max_steps"))
      training["epochs"] = kEpochs;
  }

  void refuse(const std::exception& error) {
    if (!is_refusal(error))
      throw;
    result_.refusals.emplace_back(error.what());
  }

 private:
  const Runtime& runtime_;
  const fs::path& folder_;
  RandomDocument& result_;
};

/// The document with other values for one key, each of them legal.
class KeyChanges {
 public:
  KeyChanges(const Runtime& runtime, Drawing& drawing, const fs::path& folder,
             RandomDocument& result)
      : runtime_(runtime),
        drawing_(drawing),
        folder_(folder),
        result_(result),
        resolved_(runtime.resolve(result.document).resolved),
        keys_(keys_of(runtime, resolved_)) {}

  /// Of keys drawn at random.
  void add(int changes) {
    for (int attempt = 0;
         attempt < changes * 5 && result_.changes.size() < static_cast<std::size_t>(changes);
         ++attempt) {
      const DocumentKey& key = drawing_.dice.one_of(keys_);
      if (!key.schema.contains("const"))
        add(key);
    }
  }
  void add(const std::string& pointer) {
    for (const DocumentKey& key : keys_) {
      if (key.pointer == pointer)
        add(key);
    }
  }

 private:
  void add(const DocumentKey& key) {
    json values = json::array();
    std::set<json> tried;
    for (int draw = 0; draw < kValuesPerKey * 3 && values.size() < kValuesPerKey; ++draw) {
      drawing_.folder = folder_ / ("changed-" + std::to_string(files_++));
      fs::create_directory(drawing_.folder);
      json changed = with_another_value(drawing_, resolved_, key);
      if (changed == resolved_ || !tried.insert(changed).second)
        continue;
      try {
        const auto labels = changed_labels(runtime_, resolved_, runtime_.resolve(changed).resolved);
        if (!labels.empty())
          values.push_back({{"document", std::move(changed)}, {"labels", labels}});
      } catch (const DocumentError&) {
        ++result_.refused_changes;
      }
    }
    if (!values.empty())
      result_.changes.push_back(
          {{"label", key.label}, {"pointer", key.pointer}, {"values", std::move(values)}});
  }

  const Runtime& runtime_;
  Drawing& drawing_;
  const fs::path& folder_;
  RandomDocument& result_;
  const json resolved_;
  const std::vector<DocumentKey> keys_;
  std::size_t files_ = 0;
};

/// The first document that is accepted, and that `finish` takes.
RandomDocument first_accepted(const Runtime& runtime, std::uint64_t seed, const fs::path& folder,
                              const std::function<json(int attempt)>& kept,
                              const std::function<bool(RandomDocument&, Drawing&)>& finish) {
  RandomDocument result;
  Attempts attempts(runtime, folder, result);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const fs::path files = folder / ("files-" + std::to_string(attempt));
    fs::create_directories(files);
    Drawer drawer(runtime,
                  Dice(RandomStreams(seed).seed("document", {static_cast<std::uint64_t>(attempt)})),
                  files, kept(attempt));
    try {
      result.document = drawer.document();
    } catch (const Error& error) {
      attempts.refuse(error);
      continue;
    }
    if (attempts.accepts(result.document) && finish(result, drawer.drawing()))
      return result;
  }
  throw UsageError("no document was accepted; the last refusal: " +
                   (result.refusals.empty() ? "none" : result.refusals.back()));
}

/// Other numbers beside the key, where they are given. A kind of document is a choice of names and
/// of omissions; numbers may be such that the key cannot show: a training that ends within the
/// first pass.
json with_other_numbers(Drawing& drawing, const json& resolved, const std::string& part,
                        const std::string& pointer) {
  json other = resolved;
  for (const DocumentKey& key : keys_of(drawing.runtime, resolved)) {
    const bool is_beside = key.pointer.starts_with(part + "/") && key.pointer != pointer;
    const json::json_pointer place(key.pointer);
    const bool is_given_number = other.contains(place) && other[place].is_number() &&
                                 other[place] != key.schema.value("default", json());
    if (is_beside && is_given_number && drawing.dice.chance(50))
      other = with_drawn_value(drawing, other, key);
  }
  return other;
}

/// The part of a resolved document that a relative keeps for the sake of a key.
json kept_for(Drawing& drawing, const std::string& pointer, json resolved, int attempt) {
  const json::json_pointer place(pointer);
  const std::string top = pointer.substr(1, pointer.find('/', 1) - 1);
  if (place.parent_pointer().empty())  // nothing stands beside the key
    return json::object();
  std::set<std::string> keys{top};
  const std::set<std::string> about_data{"data", "loss", "metrics", "transforms", "model"};
  if (about_data.contains(top) || top == "sequence")
    keys.insert("data");
  // It may name what other data or another model does not have.
  if (attempt % 2 == 1)
    keys.insert(about_data.begin(), about_data.end());
  resolved = with_other_numbers(drawing, resolved, "/" + top, pointer);
  json kept = json::object();
  for (const std::string& key : keys) {
    if (resolved.contains(key) && !resolved[key].is_null())
      kept[key] = resolved[key];
  }
  if (kept.contains("model"))
    kept["model"].erase("weights");  // a file of the other document
  return kept;
}

}  // namespace

bool is_refusal(const std::exception& error) {
  const auto* const known = dynamic_cast<const Error*>(&error);
  if (known == nullptr)
    return false;
  switch (known->kind()) {
    case ErrorKind::kUsage:
    case ErrorKind::kDocument:
    case ErrorKind::kData:
    case ErrorKind::kTraining:
      return true;
    default:
      return false;
  }
}

RandomDocument draw_document(const Runtime& runtime, std::uint64_t seed, const fs::path& folder,
                             int changes) {
  const auto none = [](int) { return json::object(); };
  return first_accepted(runtime, seed, folder, none, [&](RandomDocument& result, Drawing& drawing) {
    if (changes > 0) {
      const fs::path files = drawing.folder;
      KeyChanges(runtime, drawing, files, result).add(changes);
    }
    return true;
  });
}

RandomDocument draw_relative(const Runtime& runtime, std::uint64_t seed, const fs::path& folder,
                             const json& document, const std::string& pointer) {
  const json resolved = runtime.resolve(document).resolved;
  Drawing numbers{runtime, Dice(RandomStreams(seed).seed("numbers", {})), folder};
  json wanted;
  const auto kept = [&](int attempt) {
    wanted = kept_for(numbers, pointer, resolved, attempt);
    return wanted;
  };
  return first_accepted(runtime, seed, folder, kept, [&](RandomDocument& result, Drawing& drawing) {
    for (const auto& [key, value] : wanted.items()) {
      if (result.document.value(key, json()) != value)  // a part was refused
        return false;
    }
    const fs::path files = drawing.folder;
    KeyChanges(runtime, drawing, files, result).add(pointer);
    return !result.changes.empty();
  });
}

}  // namespace treadle::testing
