#include <treadle/sdk.h>

#include <treadle/testing/graph/graph_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace {

using namespace treadle::testing;
using nlohmann::json;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

std::unique_ptr<treadle::GraphBuilder> make(json parameters = {}) {
  return plugin().make<treadle::GraphBuilder>("@name@", std::move(parameters));
}

/// The layers that the graph is made of, from the plugins that are installed.
std::reference_wrapper<const treadle::PluginRegistry> components() {
  return plugin().registry();
}

// What every builder keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(@Name@, GraphContract,
                         ::testing::Values(GraphCase{"Plain", [] { return make(); }, components},
                                           GraphCase{"OneLayer",
                                                     [] { return make({{"depth", 1}}); },
                                                     components}),
                         CaseName());

treadle::LayerSpec inputs_of(std::vector<std::int64_t> sizes) {
  treadle::LayerSpec spec;
  spec.dtype = at::kDouble;
  spec.inputs = {treadle::TensorSpec(std::move(sizes), at::kDouble)};
  return spec;
}

TEST(@Name@, HalvesTheWidth) {
  const json steps = make({{"width", 20}, {"depth", 3}, {"activation", "tanh"}})
                         ->build(inputs_of({treadle::TensorSpec::kVaries, 6}));

  EXPECT_EQ(steps, json::parse(R"([
    {"use": "dense", "out_features": 20}, {"use": "tanh"},
    {"use": "dense", "out_features": 10}, {"use": "tanh"},
    {"use": "dense", "out_features": 5}, {"use": "tanh"},
    {"use": "head"}
  ])"));
}

TEST(@Name@, SaysWhatItCannotTake) {
  try {
    make()->build(inputs_of({treadle::TensorSpec::kVaries, 3, 8, 8}));
    FAIL();
  } catch (const treadle::DataError& error) {
    EXPECT_STREQ(error.what(),
                 "takes one input of rows of numbers [B, width], got [B, 3, 8, 8]");
  }
}

TEST(@Name@, SaysWhatItCannotHalve) {
  try {
    make({{"width", 4}, {"depth", 4}});
    FAIL();
  } catch (const treadle::DocumentError& error) {
    EXPECT_STREQ(error.what(), "/depth: a width of 4 cannot be halved 3 times");
  }
}

}  // namespace
