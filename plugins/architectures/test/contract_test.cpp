// The builder keeps what GraphContract asks.
#include <treadle/testing/graph/graph_contract.h>

#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

/// Smooth, so that slopes can be measured.
GraphCase hive(std::string name, Json parameters,
               std::vector<std::vector<std::int64_t>> inputs = {{5}},
               std::vector<Role> roles = {}) {
  parameters.emplace("width", 4);
  parameters.emplace("num_heads", 2);
  parameters.emplace("activation", "tanh");
  GraphCase one;
  one.name = std::move(name);
  one.is_whole = parameters.value("head", true);
  const std::string cells = parameters.at("cells").dump();
  one.is_recurrent =
      cells.find("lstm") != std::string::npos || cells.find("rnn") != std::string::npos;
  one.make = [parameters = std::move(parameters)] {
    return plugin().make<GraphBuilder>("hive", parameters);
  };
  one.components = [] { return std::cref(components()); };
  one.inputs = std::move(inputs);
  one.roles = std::move(roles);
  return one;
}

Json with(Json parameters, const char* key, const Json& value) {
  parameters[key] = value;
  return parameters;
}

GraphCase with_positions(GraphCase one, std::vector<std::int64_t> positions) {
  one.output_positions = std::move(positions);
  return one;
}

const Json kSix{"attention", "lstm", "gru", "rnn", "dense", "norm_dense"};
const std::vector<Role> kLengths{Role::kFeatures, Role::kLengths};

INSTANTIATE_TEST_SUITE_P(
    Hive, GraphContract,
    ::testing::Values(
        hive("OneCell", grid(1, 1, "gated_feed_forward", "gate")),
        hive("MeanOfEveryKind", grid(2, 3, kSix, "mean")),
        hive("SumOfDenseCells", grid(2, 2, "dense", "add")),
        hive("Concatenated", grid(1, 3, Json{"norm_dense", "attention", "dense"}, "cat")),
        hive("ByGridPosition", grid(3, 2, kSix, "grid_cat")),
        hive("Gated", grid(2, 1, Json{"gated_feed_forward", "lstm"}, "gate")),
        hive("WithoutHead", with(grid(2, 1, "norm_dense", "mean"), "head", false)),
        hive("OfSequences", grid(2, 3, kSix, "cat"), {{6, 5}}),
        hive("OfSequencesWithLengths", grid(2, 3, kSix, "mean"), {{6, 5}, {}}, kLengths),
        with_positions(hive("ForEachPosition",
                            with(grid(2, 3, kSix, "mean"), "return_sequences", true), {{6, 5}}),
                       {6})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
