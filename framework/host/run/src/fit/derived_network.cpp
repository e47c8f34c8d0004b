#include "fit/derived_network.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/model/graph_builder.h>

namespace treadle::internal {
namespace {

using nlohmann::json;

/// Puts what was chosen in place of builders, wherever they stand, and counts what was put.
class Deriving {
 public:
  Deriving(const Runtime& runtime, std::span<const StructureRecord> structures)
      : runtime_(runtime) {
    for (const StructureRecord& one : structures)
      open_.emplace(one.structure, &one);
  }

  void walk(json& value) {
    if (value.is_object() && value.contains("builder"))
      derive(value.at("builder"));
    if (!value.is_structured())
      return;
    for (json& part : value)
      walk(part);
  }

  /// Those that no builder had.
  const std::map<std::string, const StructureRecord*>& open() const { return open_; }

 private:
  void derive(json& builder) {
    if (builder.is_string())
      builder = json{{"use", builder}};
    if (!builder.is_object() || !builder.contains("use"))
      return;
    const auto name = builder.at("use").get<std::string>();
    json parameters = builder;
    parameters.erase("use");
    const std::unique_ptr<GraphBuilder> made =
        runtime_.registry().make<GraphBuilder>(name, Config(std::move(parameters)));
    const auto* const derives = made->ask<DerivesNetwork>();
    if (derives == nullptr)
      return;
    const auto chosen = open_.find(derives->structure());
    if (chosen == open_.end())
      return;
    builder = derives->derived(*chosen->second);
    builder["use"] = name;
    open_.erase(chosen);
  }

  const Runtime& runtime_;
  std::map<std::string, const StructureRecord*> open_;
};

/// Whether a pattern of names of parameters is of alphas and nothing else.
bool names_alphas(const json& pattern) {
  return pattern.get<std::string>().ends_with(WeighsOperations::kParameter);
}

}  // namespace

json derived_document(const Runtime& runtime, const ResolvedWorkflow& workflow,
                      std::span<const StructureRecord> structures) {
  json document = workflow.resolved;
  Deriving deriving(runtime, structures);
  deriving.walk(document["model"]);
  if (!deriving.open().empty()) {
    throw TrainingError("no graph builder of the document has the structure " +
                        quote_text(deriving.open().begin()->first) +
                        ", so there is no network to derive; write it as a builder, such as "
                        "\"cell_network\"");
  }
  json& training = document["training"];
  const FoundComponent loop =
      runtime.schemas().find("training", training.at("use").get<std::string>());
  TREADLE_EXPECTS(loop.schema != nullptr, "the document was resolved with this loop");
  const json of_loop = loop.schema->value("properties", json::object());
  for (const auto& [key, property] : of_loop.items())
    training.erase(key);
  training["use"] = "standard";
  json& optimizer = document["optimizer"];
  if (optimizer.contains("groups")) {
    json left = json::array();
    for (const json& group : optimizer.at("groups")) {
      const json& patterns = group.at("parameters");
      if (!std::all_of(patterns.begin(), patterns.end(), names_alphas))
        left.push_back(group);
    }
    optimizer["groups"] = std::move(left);
    if (optimizer.at("groups").empty())
      optimizer.erase("groups");
  }
  return document;
}

}  // namespace treadle::internal
