#include <treadle/host/run/pipeline.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/components/fit_id.h>
#include <treadle/engine/stage_graph.h>
#include <treadle/host/catalog/workflow_document.h>

#include "pipeline/stage_document.h"
#include "pipeline/stage_reference.h"

namespace treadle {
namespace {

using nlohmann::json;

struct KindOfStage {
  const char* key;
  Pipeline::Kind kind;
  std::vector<std::string> required;
  std::vector<std::string> optional;
  std::vector<std::string> files;  ///< that it leaves; empty: those of a run
};

const std::array<KindOfStage, 3>& kinds() {
  static const std::array<KindOfStage, 3> kKinds{
      KindOfStage{internal::kRunKey, Pipeline::Kind::kRun, {}, {}, {}},
      KindOfStage{"predict",
                  Pipeline::Kind::kPredict,
                  {"model", "data"},
                  {"keep"},
                  {"predictions.csv", "distribution.csv"}},
      KindOfStage{
          "evaluate", Pipeline::Kind::kEvaluate, {"model", "data"}, {}, {"evaluation.json"}}};
  return kKinds;
}

std::vector<std::string> names_of_kinds() {
  std::vector<std::string> names;
  for (const KindOfStage& kind : kinds())
    names.emplace_back(kind.key);
  return names;
}

class Reader {
 public:
  explicit Reader(const Document& document) : document_(document) {}

  /// With a `runtime`, the documents of the stages are checked as well.
  std::vector<Pipeline::Stage> stages(const Runtime* runtime) {
    const json& root = document_.value();
    if (!root.contains("treadle") || root.at("treadle") != kWorkflowFormat) {
      complain("/treadle", "expected " + std::to_string(kWorkflowFormat) +
                               ", the format that this version reads");
    }
    if (!root.contains("name") || !root.at("name").is_string() ||
        !FitId::is_part(root.at("name").get<std::string>()))
      complain("/name",
               std::string("expected the name of the pipeline; ") + FitId::kPartRule.data());
    const json& written = root.at(internal::kStagesKey);
    if (!written.is_object() || written.empty()) {
      complain("/stages", "expected an object of stages by name, with one stage at least");
    } else {
      for (const auto& [name, value] : written.items())
        read_stage(name, value);
      expect_known_references();
    }
    if (runtime != nullptr) {
      check_documents(*runtime);
      expect_files();
    }
    expect_no_problem();
    return in_order();
  }

 private:
  void complain(const std::string& pointer, const std::string& message) {
    problems_.push_back({document_.place_of(pointer), pointer, message});
  }
  void expect_no_problem() {
    if (problems_.empty())
      return;
    std::stable_sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) {
      return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
    });
    throw DocumentError(std::move(problems_));
  }
  /// What else is wrong with a stage is of no interest before its document is right.
  void check_documents(const Runtime& runtime) {
    try {
      internal::expect_run_documents(runtime, document_, stages_);
    } catch (const DocumentError& error) {
      problems_.insert(problems_.end(), error.problems().begin(), error.problems().end());
    } catch (const Error&) {
      if (problems_.empty())
        throw;
    }
  }

  void read_stage(const std::string& name, const json& value) {
    const std::string pointer = child_pointer("/stages", name);
    if (!FitId::is_part(name))
      return complain(pointer, "expected the name of a stage; " + std::string(FitId::kPartRule));
    const std::vector<std::string> known = names_of_kinds();
    if (!value.is_object() || value.size() != 1) {
      std::string got = describe_value(value);
      if (value.is_object() && !value.empty())
        got += " with " + name_list(keys_of(value));
      return complain(pointer, "expected an object with one key, which is what the stage does (" +
                                   quoted_list(known) + "), such as {\"run\": {}}; got " + got);
    }
    const std::string& key = value.begin().key();
    const auto kind = std::find_if(kinds().begin(), kinds().end(),
                                   [&](const KindOfStage& one) { return one.key == key; });
    if (kind == kinds().end()) {
      return complain(child_pointer(pointer, key), "a stage cannot " + quote_text(key) +
                                                       "; expected one of " + quoted_list(known) +
                                                       did_you_mean(key, known));
    }
    if (!value.begin()->is_object()) {
      return complain(child_pointer(pointer, key),
                      "expected an object, got " + describe_value(*value.begin()));
    }
    Pipeline::Stage stage{name, kind->kind, value.at(kind->key), {}};
    const std::string inside = child_pointer(pointer, kind->key);
    if (kind->kind == Pipeline::Kind::kRun) {
      stage.content = internal::run_document(document_.value(), name);
    } else {
      expect_keys(*kind, stage.content, inside);
    }
    for (const std::string& other : internal::stages_in(stage.content))
      stage.after.push_back(other);
    stages_.push_back(std::move(stage));
  }

  static std::vector<std::string> keys_of(const json& value) {
    std::vector<std::string> keys;
    for (const auto& [key, unused] : value.items())
      keys.push_back(key);
    return keys;
  }

  void expect_keys(const KindOfStage& kind, const json& content, const std::string& pointer) {
    for (const std::string& key : kind.required) {
      if (!content.contains(key) || !content.at(key).is_string())
        complain(child_pointer(pointer, key), "expected a path, or a stage as \"stage:NAME\"");
    }
    std::vector<std::string> known = kind.required;
    known.insert(known.end(), kind.optional.begin(), kind.optional.end());
    for (const auto& [key, value] : content.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        complain(child_pointer(pointer, key), "unknown key; expected " + quoted_list(known));
    }
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

  /// What is used is there, or made by a stage. Of a "run" the data says so itself, and its files
  /// are its own affair.
  void expect_files() {
    for (const Pipeline::Stage& stage : stages_) {
      for (const std::string& reference : internal::references_in(stage.content))
        expect_made(stage, reference);
      if (stage.kind == Pipeline::Kind::kRun)
        continue;
      for (const char* key : {"model", "data"}) {
        const json& path = stage.content.value(key, json());
        if (!path.is_string() || !internal::stages_in(path).empty() ||
            path.get_ref<const std::string&>().empty())
          continue;
        const std::filesystem::path file = document_.folder() / path.get<std::string>();
        if (!std::filesystem::exists(file))
          complain(pointer_of(stage, key), file.string() + ": no such file");
      }
    }
  }

  void expect_made(const Pipeline::Stage& stage, const std::string& reference) {
    const std::pair<std::string, std::string> parts = internal::parts_of_reference(reference);
    const std::string& name = parts.first;
    const std::string& file = parts.second;
    const auto other = std::find_if(stages_.begin(), stages_.end(),
                                    [&](const auto& one) { return one.name == name; });
    if (other == stages_.end())
      return;  // a problem already
    const KindOfStage& kind = kind_of(*other);
    const bool is_made = kind.files.empty() ||
                         std::find(kind.files.begin(), kind.files.end(), file) != kind.files.end();
    if (!is_made) {
      complain(child_pointer("/stages", stage.name), "takes " + quote_text(reference) +
                                                         ", but the stage " + quote_text(name) +
                                                         " leaves " + name_list(kind.files));
    }
  }

  static const KindOfStage& kind_of(const Pipeline::Stage& stage) {
    return *std::find_if(kinds().begin(), kinds().end(),
                         [&](const KindOfStage& one) { return one.kind == stage.kind; });
  }

  static std::string pointer_of(const Pipeline::Stage& stage, const char* key) {
    return child_pointer(child_pointer(child_pointer("/stages", stage.name), kind_of(stage).key),
                         key);
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
  return document.is_object() && document.contains(internal::kStagesKey);
}

Pipeline Pipeline::read(std::shared_ptr<const Document> document) {
  return read(std::move(document), nullptr);
}

Pipeline Pipeline::read(std::shared_ptr<const Document> document, const Runtime& runtime) {
  return read(std::move(document), &runtime);
}

Pipeline Pipeline::read(std::shared_ptr<const Document> document, const Runtime* runtime) {
  Pipeline pipeline;
  pipeline.stages_ = Reader(*document).stages(runtime);
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
