#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/schema.h>
#include <treadle/host/catalog/workflow_editor_schema.h>

namespace treadle {

/// One component for each slot of a workflow, as plugins would declare them.
class FakeComponents final : public SchemaIndex {
 public:
  FakeComponents() {
    add("data", "csv", R"({"required": ["path", "target"], "properties": {
        "path": {"type": "string", "x-treadle-type": "path", "description": "the file to read"},
        "target": {"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 0}],
                   "description": "the column to predict"}}})");
    add("data", "moons", R"({"properties": {"rows": {"type": "integer", "minimum": 1,
        "default": 100}}})");
    add("transform", "standardize", R"({"type": "object"})");
    add("transform", "mixup", R"({"x-treadle-mixes-rows": true, "type": "object"})");
    add("model", "mlp", R"({"properties": {
        "hidden": {"type": "array", "items": {"type": "integer", "minimum": 1}, "default": [64]},
        "activation": {"enum": ["relu", "gelu"], "default": "relu"}}})");
    add("loss", "cross_entropy", R"({"properties": {"label_smoothing": {"type": "number",
        "minimum": 0, "exclusiveMaximum": 1, "default": 0.0}}})");
    add("loss", "correlation", R"({"x-treadle-additive": false, "type": "object"})");
    add("device", "cpu", R"({"properties": {}})");
    add("communicator", "gloo", R"({"properties": {}})");
    add("gradients", "accumulate", R"({"properties": {
        "micro_batches": {"type": "integer", "minimum": 1, "default": 4}}})");
    add("gradients", "truncated_bptt", R"({"properties": {
        "inner": {"x-treadle-component": "gradients"}}})");
    add("optimizer", "adamw", R"({"title": "AdamW",
        "description": "Adam with decoupled weight decay.", "properties": {
        "learning_rate": {"type": "number", "exclusiveMinimum": 0, "default": 0.001,
                          "description": "step size"},
        "betas": {"type": "array", "items": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
                  "minItems": 2, "maxItems": 2, "default": [0.9, 0.999]}}})");
    add("optimizer", "lookahead", R"({"required": ["inner"], "properties": {
        "inner": {"x-treadle-component": "optimizer", "description": "the optimizer to wrap"},
        "every": {"type": "integer", "minimum": 1, "default": 5}}})");
    add("schedule", "constant", R"({"type": "object"})");
    add("schedule", "cosine", R"({"properties": {"floor": {"x-treadle-type": "fraction"}}})");
    add("training", "standard", R"({"properties": {
        "limit": {"type": "string", "x-treadle-type": "duration"}}})");
    add("training", "one_pass", R"({
        "x-treadle-excludes": {"/optimizer": "makes no steps; leave \"optimizer\" out",
                               "/training/clip": "makes no steps; leave \"clip\" out"},
        "x-treadle-sets": {"/training/epochs": {"value": 1,
                                                "why": "takes the rows once; leave \"epochs\" out"}},
        "properties": {"window": {"type": "integer", "default": 64,
                                  "x-treadle-multiple-of": "/training/batch_size"}}})");
    add("callback", "early_stopping", R"({"required": ["patience"], "properties": {
        "patience": {"type": "string", "x-treadle-type": "duration"},
        "mode": {"enum": ["min", "max"], "default": "min"}}})");
    add("callback", "ema", R"({"x-treadle-averages-weights": true, "properties": {}})");
    add("callback", "swa", R"({"x-treadle-averages-weights": true, "properties": {}})");
    add("validation", "hold_out", R"({"properties": {"fraction": {"x-treadle-type": "fraction",
        "default": 0.2}}})");
    add("validation", "k_fold", R"({"properties": {"folds": {"type": "integer", "minimum": 2,
        "default": 5}, "stratify": {"type": "boolean", "default": false}}})");
    add("metric", "accuracy", R"({"type": "object"})");
    add("metric", "macro_f1", R"({"type": "object"})");
    add("tuner", "tpe", R"({"type": "object"})");
    add("observer", "log", R"({"required": ["to"], "properties": {"to": {"type": "string"}}})");
  }

  FoundComponent find(std::string_view interface_word, std::string_view name) const override {
    const auto found = schemas_.find({std::string(interface_word), std::string(name)});
    if (found == schemas_.end()) {
      return {nullptr, "",
              "there is no " + std::string(interface_word) + " \"" + std::string(name) + "\""};
    }
    return {std::make_shared<const nlohmann::json>(found->second), "fake/" + std::string(name), ""};
  }

  const nlohmann::json& schema(const std::string& word, const std::string& name) const {
    return schemas_.at({word, name});
  }

  std::vector<ListedComponent> listing() const {
    std::vector<ListedComponent> list;
    for (const auto& [key, schema] : schemas_)
      list.push_back({key.first, key.second, &schema});
    return list;
  }

 private:
  void add(const std::string& word, const std::string& name, const char* schema) {
    schemas_[{word, name}] = nlohmann::json::parse(schema);
  }

  std::map<std::pair<std::string, std::string>, nlohmann::json> schemas_;
};

/// The document of the README.
inline constexpr std::string_view kIrisDocument = R"({
  "treadle": 1, "name": "iris", "seed": 7,
  "data":       {"use": "csv", "path": "data/iris.csv", "target": "species"},
  "transforms": [{"use": "standardize"}],
  "model":      {"use": "mlp", "hidden": [16, 16], "activation": "relu"},
  "loss":       {"use": "cross_entropy"},
  "optimizer":  {"use": "adamw", "learning_rate": 0.01},
  "schedule":   {"use": "cosine", "warmup": "5%"},
  "training":   {"use": "standard", "epochs": 60, "batch_size": 16,
                 "early_stopping": {"patience": "10ep"}},
  "validation": {"use": "k_fold", "folds": 5, "stratify": true},
  "metrics":    ["accuracy", "macro_f1"]
})";

}  // namespace treadle
