#include "library_trees.h"

#include <cstddef>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::trees {
namespace {

using nlohmann::json;

/// The nodes by levels, so that children are next to each other and behind their parent. Nodes that
/// XGBoost has deleted are left out.
Tree tree_in(const json& saved) {
  const json& lefts = saved.at("left_children");
  const json& rights = saved.at("right_children");
  const json& columns = saved.at("split_indices");
  const json& values = saved.at("split_conditions");  // of leaves their values
  const json& missing = saved.at("default_left");
  std::vector<std::size_t> order{0};  // as XGBoost numbers them
  Tree tree;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t from = order[i];
    Node& node = tree.emplace_back();
    node.value = values.at(from).get<float>();
    const auto left = lefts.at(from).get<std::int64_t>();
    if (left < 0)
      continue;
    node.column = columns.at(from).get<std::uint32_t>();
    if (missing.at(from).get<int>() != 0)
      node.column |= Node::kMissingGoesLeft;
    node.left = static_cast<std::uint32_t>(order.size());
    order.push_back(static_cast<std::size_t>(left));
    order.push_back(rights.at(from).get<std::size_t>());
  }
  return tree;
}

}  // namespace

std::vector<Tree> trees_in(std::string_view model, std::int64_t margins) {
  try {
    const json saved = json::from_ubjson(model);
    const json& its = saved.at("learner").at("gradient_booster").at("model");
    const json& trees = its.at("trees");
    std::vector<Tree> round(static_cast<std::size_t>(margins));
    if (trees.size() != round.size())
      throw TrainingError("XGBoost grew " + std::to_string(trees.size()) + " trees in a round of " +
                          std::to_string(margins) + "; please report it");
    for (std::size_t i = 0; i < trees.size(); ++i)
      round.at(its.at("tree_info").at(i).get<std::size_t>()) = tree_in(trees[i]);
    return round;
  } catch (const json::exception& error) {
    throw TrainingError(std::string("XGBoost wrote a tree that cannot be read: ") + error.what() +
                        "; Treadle was tested with version 1.7.4");
  }
}

}  // namespace treadle::trees
