// What layers say when they cannot take what they are given.
#include <gmock/gmock.h>

#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/core/layer.h>
#include <treadle/core/task_random.h>
#include <treadle/testing/plan_trial.h>
#include <treadle/testing/plugin_under_test.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

std::shared_ptr<Layer> layer(const std::string& name, const Json& parameters,
                             std::vector<std::int64_t> row) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  const TaskRandom random(1);
  row.insert(row.begin(), TensorSpec::kVaries);
  LayerSpec spec;
  spec.inputs = {{std::move(row), at::kFloat}};
  return plugin.make<LayerFactory>(name, parameters)->create(spec);
}

TEST(LayerMessages, AnEmbeddingNamesTheCategoryThatItLacks) {
  const auto embedding = layer("embedding", {{"categories", 4}, {"width", 3}}, {2});
  const auto message = [&](const at::Tensor& numbers, bool planned) -> std::string {
    try {
      if (planned) {
        PlanTrial trial;
        const std::vector<PlanValue> given{trial.give(numbers, /*needs_gradient=*/false)};
        dynamic_cast<const Planned&>(*embedding).plan(trial, given);
      } else {
        StateDict memory;
        LayerContext context{{}, memory};
        embedding->forward({&numbers, 1}, context);
      }
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  for (const bool planned : {false, true}) {
    EXPECT_EQ(message(at::tensor({0., 3.}).view({1, 2}), planned), "");
    EXPECT_EQ(message(at::tensor({1., 7.}).view({1, 2}), planned),
              "is given the category 7, but has 4 categories, which count from 0; say "
              "\"categories\": 8 or more where these are numbers of categories at all");
    EXPECT_EQ(
        message(at::tensor({-2., 1.}).view({1, 2}), planned),
        "is given the category -2, but has 4 categories, which count from 0; these seem to be "
        "no numbers of categories");
  }
}

TEST(LayerMessages, AnUnflattenSaysHowManyElementsThereAre) {
  try {
    layer("unflatten", {{"sizes", {2, 4}}}, {6});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "a row of 6 elements cannot be [2,4]");
  }
}

}  // namespace
}  // namespace treadle::testing
