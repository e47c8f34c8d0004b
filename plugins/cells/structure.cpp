#include "structure.h"

#include <algorithm>
#include <set>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "operations.h"

namespace treadle::cells {

using nlohmann::json;

Structure::Structure(const Config& config)
    : nodes_(config.get<std::int64_t>("nodes")),
      name_(config.get<std::string>("structure")),
      operations_(config.get_or("operations", std::vector<std::string>())) {
  const auto expect_distinct = [&](const char* key, const std::vector<std::string>& names) {
    if (std::set<std::string>(names.begin(), names.end()).size() != names.size())
      config.fail(key, "names an operation twice in " + json(names).dump());
  };
  expect_distinct("operations", operations_);
  if (!config.has("edges"))
    return;
  for (const json& edge : config.json().at("edges")) {
    edges_.push_back(edge.is_string() ? std::vector{edge.get<std::string>()}
                                      : edge.get<std::vector<std::string>>());
    expect_distinct("edges", edges_.back());
  }
  const auto wanted = static_cast<std::size_t>(nodes_ * (nodes_ - 1) / 2);
  if (edges_.size() != wanted) {
    config.fail("edges", "a cell of " + std::to_string(nodes_) + " nodes has " +
                             std::to_string(wanted) + " edges, 0-1, 0-2, 1-2, 0-3 and so on, got " +
                             std::to_string(edges_.size()));
  }
}

std::vector<Structure::Edge> Structure::edges(const TensorSpec& input) const {
  const std::vector<std::string> usual =
      operations_.empty() ? Operations::usual(input) : operations_;
  std::vector<Edge> edges;
  for (std::int64_t to = 1; to < nodes_; ++to) {
    for (std::int64_t from = 0; from < to; ++from)
      edges.push_back({from, to, edges_.empty() ? usual : edges_[edges.size()]});
  }
  return edges;
}

bool Structure::is_searched() const {
  return edges_.empty() ? operations_.size() != 1
                        : std::any_of(edges_.begin(), edges_.end(),
                                      [](const auto& edge) { return edge.size() > 1; });
}

std::vector<OperationChoice> Structure::choices(const std::vector<Edge>& edges) {
  std::vector<OperationChoice> choices;
  for (const Edge& edge : edges) {
    if (edge.is_mixed())
      choices.push_back({edge.name(), std::to_string(edge.to), edge.operations});
  }
  return choices;
}

json Structure::derived_edges(const StructureRecord& record) const {
  json derived = json::array();
  std::size_t next = 0;
  for (std::int64_t to = 1; to < nodes_; ++to) {
    for (std::int64_t from = 0; from < to; ++from) {
      const std::size_t edge = derived.size();
      if (!edges_.empty() && edges_[edge].size() == 1) {
        derived.push_back(edges_[edge].front());
        continue;
      }
      const std::string name = Edge{from, to, {}}.name();
      TREADLE_EXPECTS(next < record.choices.size() && record.choices[next].of.name == name,
                      "a record of this structure has its edges in order");
      const StructureRecord::Choice& choice = record.choices[next++];
      derived.push_back(choice.chosen ? choice.of.operations[*choice.chosen]
                                      : std::string(kZeroOperation));
    }
  }
  return derived;
}

}  // namespace treadle::cells
