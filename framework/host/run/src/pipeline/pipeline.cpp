#include <treadle/host/run/pipeline.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/fit_id.h>
#include <treadle/engine/stage_graph.h>
#include <treadle/host/catalog/workflow_document.h>

#include "pipeline/stage_reference.h"

namespace treadle {
namespace {

using nlohmann::json;

constexpr const char* kStages = "stages";

struct KindOfStage {
  const char* key;
  Pipeline::Kind kind;
  std::vector<std::string> required;
  std::vector<std::string> optional;
};

const std::array<KindOfStage, 3>& kinds() {
  static const std::array<KindOfStage, 3> kKinds{
      KindOfStage{"run", Pipeline::Kind::kRun, {}, {}},
      KindOfStage{"predict", Pipeline::Kind::kPredict, {"model", "data"}, {"keep"}},
      KindOfStage{"evaluate", Pipeline::Kind::kEvaluate, {"model", "data"}, {}}};
  return kKinds;
}

/// As a JSON merge patch, but for components: one that is named anew replaces the other as a whole.
void merge(json& base, const json& patch) {
  const bool replaces = !patch.is_object() || patch.contains("use") || !base.is_object();
  if (replaces) {
    base = patch;
    return;
  }
  for (const auto& [key, value] : patch.items()) {
    if (value.is_null()) {
      base.erase(key);
    } else {
      merge(base[key], value);
    }
  }
}

class Reader {
 public:
  explicit Reader(const Document& document) : document_(document) {}

  std::vector<Pipeline::Stage> stages() {
    const json& root = document_.value();
    if (!root.contains("treadle") || root.at("treadle") != kWorkflowFormat) {
      complain("/treadle", "expected " + std::to_string(kWorkflowFormat) +
                               ", the format that this version reads");
    }
    if (!root.contains("name") || !root.at("name").is_string() ||
        !FitId::is_part(root.at("name").get<std::string>()))
      complain("/name",
               std::string("expected the name of the pipeline; ") + FitId::kPartRule.data());
    const json& written = root.at(kStages);
    if (!written.is_object() || written.empty()) {
      complain("/stages", "expected an object of stages by name, with one stage at least");
    } else {
      for (const auto& [name, value] : written.items())
        read_stage(name, value);
      expect_known_references();
    }
    expect_no_problem();
    return in_order();
  }

 private:
  void complain(const std::string& pointer, const std::string& message) {
    problems_.push_back({document_.place_of(pointer), pointer, message});
  }
  void expect_no_problem() {
    if (!problems_.empty())
      throw DocumentError(std::move(problems_));
  }

  void read_stage(const std::string& name, const json& value) {
    const std::string pointer = child_pointer("/stages", name);
    if (!FitId::is_part(name))
      return complain(pointer, "expected the name of a stage; " + std::string(FitId::kPartRule));
    const auto kind = std::find_if(kinds().begin(), kinds().end(), [&](const KindOfStage& known) {
      return value.is_object() && value.contains(known.key);
    });
    if (kind == kinds().end() || value.size() != 1 || !value.at(kind->key).is_object()) {
      return complain(pointer,
                      "expected an object with one of \"run\", \"predict\" and \"evaluate\", which "
                      "is an object");
    }
    Pipeline::Stage stage{name, kind->kind, value.at(kind->key), {}};
    const std::string inside = child_pointer(pointer, kind->key);
    if (kind->kind == Pipeline::Kind::kRun) {
      json merged = document_.value();
      merged.erase(kStages);
      merge(merged, stage.content);
      merged["name"] = name;
      stage.content = std::move(merged);
    } else {
      expect_keys(*kind, stage.content, inside);
    }
    for (const std::string& other : internal::stages_in(stage.content))
      stage.after.push_back(other);
    stages_.push_back(std::move(stage));
  }

  void expect_keys(const KindOfStage& kind, const json& content, const std::string& pointer) {
    for (const std::string& key : kind.required) {
      if (!content.contains(key) || !content.at(key).is_string())
        complain(child_pointer(pointer, key), "expected a path, or a stage as \"stage:NAME\"");
    }
    for (const auto& [key, value] : content.items()) {
      const auto is_key = [&](const std::vector<std::string>& keys) {
        return std::find(keys.begin(), keys.end(), key) != keys.end();
      };
      if (!is_key(kind.required) && !is_key(kind.optional))
        complain(child_pointer(pointer, key), "there is no such key here; expected " +
                                                  quoted_list(kind.required, kind.optional));
    }
  }

  static std::string quoted_list(std::vector<std::string> keys,
                                 const std::vector<std::string>& more) {
    keys.insert(keys.end(), more.begin(), more.end());
    std::string text;
    for (const std::string& key : keys)
      text += (text.empty() ? "" : ", ") + quote_text(key);
    return text;
  }

  void expect_known_references() {
    std::set<std::string> names;
    std::string listed;
    for (const Pipeline::Stage& stage : stages_) {
      names.insert(stage.name);
      listed += (listed.empty() ? "" : ", ") + stage.name;
    }
    for (const Pipeline::Stage& stage : stages_) {
      for (const std::string& other : stage.after) {
        if (names.count(other) == 0) {
          complain(child_pointer("/stages", stage.name),
                   "takes a file of the stage " + quote_text(other) +
                       ", which does not exist; there are " + listed);
        }
      }
    }
  }

  std::vector<Pipeline::Stage> in_order() {
    engine::StageGraph graph;
    for (const Pipeline::Stage& stage : stages_)
      graph.add(stage.name, stage.after, nullptr);
    try {
      graph.check();
    } catch (const ContractViolation& violation) {
      complain("/stages", violation.what());
      expect_no_problem();
    }
    std::vector<Pipeline::Stage> ordered;
    for (const std::string& name : graph.order()) {
      ordered.push_back(*std::find_if(stages_.begin(), stages_.end(),
                                      [&](const auto& stage) { return stage.name == name; }));
    }
    return ordered;
  }

  const Document& document_;
  std::vector<Problem> problems_;
  std::vector<Pipeline::Stage> stages_;
};

std::string label_of(const Pipeline::Stage& stage) {
  if (stage.kind == Pipeline::Kind::kPredict)
    return stage.name + ": predict";
  if (stage.kind == Pipeline::Kind::kEvaluate)
    return stage.name + ": evaluate";
  return stage.name + (stage.content.contains("search") ? ": search" : ": train");
}

}  // namespace

bool Pipeline::is_pipeline(const json& document) {
  return document.is_object() && document.contains(kStages);
}

Pipeline Pipeline::read(std::shared_ptr<const Document> document) {
  Pipeline pipeline;
  pipeline.stages_ = Reader(*document).stages();
  pipeline.name_ = document->value().at("name").get<std::string>();
  pipeline.document_ = std::move(document);
  return pipeline;
}

std::string Pipeline::picture() const {
  engine::StageGraph graph;
  for (const Stage& stage : stages_)
    graph.add(stage.name, stage.after, nullptr, label_of(stage));
  return graph.dot(name_);
}

}  // namespace treadle
