#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/model/graph_builder.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every GraphBuilder, and the networks it builds, must keep. The test program links
/// treadle::graph. Include in one source file of it:
///
///     INSTANTIATE_TEST_SUITE_P(Graphs, GraphContract, ::testing::Values(
///         GraphCase{"ResidualMlp", [] { return plugin().make<GraphBuilder>("residual_mlp"); },
///                   [] { return std::cref(runtime().registry()); }}), CaseName());
namespace treadle::testing {

struct GraphCase {
  std::string name;
  std::function<std::unique_ptr<GraphBuilder>()> make;
  /// Knows the layers and verbs that the builder names, such as the registry of a treadle::Runtime;
  /// outlives the tests.
  std::function<std::reference_wrapper<const PluginRegistry>()> components;
  /// Sizes of each input behind the batch.
  std::vector<std::vector<std::int64_t>> inputs = {{6}};
  /// What each input holds; inputs beyond them hold features. Lengths are at least 1, and at most
  /// the first size of the first input.
  std::vector<Role> roles = {};
  std::int64_t vocabulary = 3;    ///< how many indices, categories and segments there are
  std::int64_t output_width = 3;  ///< what the loss requires
  std::vector<std::int64_t> output_positions = {};  ///< in front of it
  /// Ends with what the loss requires; false for a piece of a network.
  bool is_whole = true;
  /// There is something to learn.
  bool has_parameters = true;
  /// It has recurrent layers, whose backward pass on a CPU is a formula of its own and rounds
  /// otherwise.
  bool is_recurrent = false;
};

TREADLE_CONTRACT_SUITE(GraphContract, GraphCase);

}  // namespace treadle::testing
