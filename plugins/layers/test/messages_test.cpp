// What layers say when they cannot take what they are given.
#include <gmock/gmock.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>
#include <treadle/core/model/layer.h>
#include <treadle/plan/lowerable.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/graph/plan_interpreter.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorSpec rows_of(std::vector<std::int64_t> row, at::ScalarType dtype) {
  row.insert(row.begin(), TensorSpec::kVaries);
  return {std::move(row), dtype};
}
TensorSpec numbers(std::vector<std::int64_t> row) {
  return rows_of(std::move(row), at::kFloat);
}
TensorSpec indices(std::vector<std::int64_t> row) {
  return rows_of(std::move(row), at::kLong);
}

std::shared_ptr<Layer> layer_of(const std::string& name, const Json& parameters, TensorSpec input,
                                std::vector<OutputSpec> outputs = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  const TaskRandom random(1);
  LayerSpec spec;
  spec.inputs = {std::move(input)};
  spec.outputs = std::move(outputs);
  return plugin.make<LayerFactory>(name, parameters.is_null() ? Json::object() : parameters)
      ->create(spec);
}

std::string refusal(const std::string& name, const Json& parameters, TensorSpec input,
                    std::vector<OutputSpec> outputs = {}) {
  try {
    layer_of(name, parameters, std::move(input), std::move(outputs));
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(LayerMessages, AnEmbeddingNamesTheIndexThatItLacks) {
  const auto embedding =
      layer_of("embedding", {{"num_embeddings", 4}, {"embedding_dim", 3}}, indices({2}));
  const auto message = [&](const at::Tensor& numbers, bool planned) -> std::string {
    try {
      if (planned) {
        PlanInterpreter plan;
        const std::vector<PlanValue> given{plan.give(numbers, /*needs_gradient=*/false)};
        dynamic_cast<const Lowerable&>(*embedding).lower(plan, given);
      } else {
        LayerContext context;
        embedding->forward({&numbers, 1}, context);
      }
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  for (const bool planned : {false, true}) {
    EXPECT_EQ(message(at::tensor({0, 3}, at::kLong).view({1, 2}), planned), "");
    EXPECT_THAT(message(at::tensor({1, 7}, at::kLong).view({1, 2}), planned),
                AllOf(HasSubstr("index 7"), HasSubstr("4 embeddings"), HasSubstr("must be 8")));
    EXPECT_THAT(message(at::tensor({-1, 1}, at::kLong).view({1, 2}), planned),
                AllOf(HasSubstr("index -1"), HasSubstr("impute")));
  }
}

TEST(LayerMessages, AnEmbeddingOfColumnsNamesTheColumn) {
  const auto embedding =
      layer_of("embedding", {{"num_embeddings", {4, 2}}, {"embedding_dim", 3}}, indices({2}));
  const at::Tensor wrong = at::tensor({3, 2}, at::kLong).view({1, 2});
  LayerContext context;
  try {
    embedding->forward({&wrong, 1}, context);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("column 1"), HasSubstr("index 2")));
  }
}

TEST(LayerMessages, AnEmbeddingHasTheSizeOfTheVocabularyUnlessItIsSaid) {
  TensorSpec tokens = indices({7});
  tokens.vocabulary = {65};
  TensorSpec columns = indices({2});
  columns.vocabulary = {4, 3};
  const Json dim{{"embedding_dim", 5}};
  const auto sizes_of = [](Layer& made) {
    std::vector<std::vector<std::int64_t>> sizes;
    for (const auto& parameter : made.named_parameters())
      sizes.push_back(parameter.value().sizes().vec());
    return sizes;
  };
  EXPECT_THAT(sizes_of(*layer_of("embedding", dim, tokens)),
              ElementsAre(std::vector<std::int64_t>{65, 5}));
  EXPECT_THAT(sizes_of(*layer_of("embedding", dim, columns)),
              ElementsAre(std::vector<std::int64_t>{4, 5}, std::vector<std::int64_t>{3, 5}));
  Json one_table = dim;
  one_table["num_embeddings"] = 9;
  const auto shared = layer_of("embedding", one_table, columns);
  EXPECT_THAT(sizes_of(*shared), ElementsAre(std::vector<std::int64_t>{9, 5}));
  EXPECT_EQ(shared->result(std::vector{columns}).text(), "[B, 2, 5]");
  EXPECT_THAT(refusal("embedding", dim, indices({7})), HasSubstr("\"num_embeddings\" is missing"));
  EXPECT_THAT(refusal("embedding", one_table, numbers({7})), HasSubstr("int64"));
  EXPECT_THAT(refusal("embedding", {{"num_embeddings", {4, 3, 2}}, {"embedding_dim", 5}}, columns),
              AllOf(HasSubstr("3 columns"), HasSubstr("[B, 2] int64")));
}

TEST(LayerMessages, AHeadNamesBothShapes) {
  const std::vector<OutputSpec> pixels{{"mask", {6, 5, 10}}};
  EXPECT_THAT(refusal("head", {}, numbers({4, 6, 7}), pixels),
              AllOf(HasSubstr("[B, 6, 5, 10]"), HasSubstr("[B, 4, 6, 7]")));
  EXPECT_THAT(refusal("head", {{"channels", "last"}}, numbers({4, 6, 5}), pixels),
              HasSubstr("channels last"));
  EXPECT_THAT(refusal("head", {}, numbers({4, 3}), {{"y", {2}}}), HasSubstr("[B, 4, 3]"));
  const std::vector<OutputSpec> two{{"species", {3}}, {"mask", {6, 5, 10}}};
  EXPECT_THAT(refusal("head", {}, numbers({4}), two),
              AllOf(HasSubstr("\"species\" [B, 3]"), HasSubstr("\"mask\" [B, 6, 5, 10]"),
                    HasSubstr("\"output\"")));
  EXPECT_THAT(refusal("head", {{"output", "specie"}}, numbers({4}), two),
              AllOf(HasSubstr("\"specie\""), HasSubstr("did you mean \"species\"")));
}

// [B, c, H, W] and [B, H, W, c] of the same numbers give the same: torch.nn.Linear on the last
// dimension is torch.nn.Conv2d with a kernel of 1.
TEST(Head, PutsChannelsLast) {
  const std::vector<OutputSpec> pixels{{"mask", {3, 2, 5}}};
  const auto first = layer_of("head", {}, numbers({4, 3, 2}), pixels);
  const auto last = layer_of("head", {}, numbers({3, 2, 4}), pixels);
  const TaskRandom random(3);
  const at::Tensor x = at::randn({7, 4, 3, 2});
  const at::Tensor moved = x.permute({0, 2, 3, 1}).contiguous();
  LayerContext context;

  const at::Tensor result = first->forward({&x, 1}, context);

  EXPECT_EQ(result.sizes(), (std::vector<std::int64_t>{7, 3, 2, 5}));
  EXPECT_TRUE(at::equal(result, last->forward({&moved, 1}, context)));
  const auto parameters = first->named_parameters();
  const at::Tensor convolved =
      at::conv2d(x, parameters["weight"].view({5, 4, 1, 1}), parameters["bias"]);
  EXPECT_TRUE(result.allclose(convolved.permute({0, 2, 3, 1}), 1e-5, 1e-6));
}

// Sizes that fit both ways: channels last.
TEST(Head, TakesTheChannelsOfSequencesLastWhereBothFit) {
  const std::vector<OutputSpec> steps{{"y", {4, 2}}};
  EXPECT_EQ(
      layer_of("head", {}, numbers({4, 4}), steps)->result(std::vector{numbers({4, 4})}).text(),
      "[B, 4, 2]");
  const at::Tensor x = at::eye(4).unsqueeze(0).mul(at::arange(1, 5).unsqueeze(0));
  const auto automatic = layer_of("head", {}, numbers({4, 4}), steps);
  const auto last = layer_of("head", {{"channels", "last"}}, numbers({4, 4}), steps);
  LayerContext context;
  EXPECT_TRUE(at::equal(automatic->forward({&x, 1}, context), last->forward({&x, 1}, context)));
}

TEST(LayerMessages, AnUnflattenSaysHowManyElementsThereAre) {
  try {
    layer_of("unflatten", {{"shape", {2, 4}}}, numbers({6}));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "a row of 6 elements cannot be [2,4]");
  }
}

}  // namespace
}  // namespace treadle::testing
