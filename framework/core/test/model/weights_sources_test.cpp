// Weights of several files in one module.
#include <treadle/core/model/weights_sources.h>

#include <functional>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/model/quantized_weights.h>

namespace treadle {
namespace {

using ::testing::ElementsAre;

struct OneBranch : torch::nn::Module {
  OneBranch() : dense(register_module("dense", torch::nn::Linear(3, 2))) {}
  torch::nn::Linear dense;
};

/// Two branches and a head.
struct TwoBranches : torch::nn::Module {
  TwoBranches()
      : left(register_module("left", std::make_shared<OneBranch>())),
        right(register_module("right", std::make_shared<OneBranch>())),
        head(register_module("head", torch::nn::Linear(4, 1))) {}
  std::shared_ptr<OneBranch> left;
  std::shared_ptr<OneBranch> right;
  torch::nn::Linear head;
};

/// Of a network that was trained: a dense layer among others.
NamedTensors saved_block(double value) {
  return {{"block.weight", at::full({2, 3}, value)},
          {"block.bias", at::full({2}, value + 0.5)},
          {"blocks.weight", at::ones({7})},
          {"out.weight", at::ones({1, 2})}};
}

std::string mistakes_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const StorageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(WeightsSources, FillPartsOfAModuleAndLeaveTheRest) {
  TwoBranches net;
  const at::Tensor head = net.head->weight.detach().clone();
  const void* const place = net.left->dense->weight.data_ptr();

  const std::vector<std::string> left =
      load_weights(net, std::vector<WeightsSource>{{"a", saved_block(1), "block", "left.dense"},
                                                   {"b", saved_block(2), "block", "right.dense"}});

  EXPECT_THAT(left, ElementsAre("", ""));
  EXPECT_TRUE(at::equal(net.left->dense->weight, at::full({2, 3}, 1.0)));
  EXPECT_TRUE(at::equal(net.left->dense->bias, at::full({2}, 1.5)));
  EXPECT_TRUE(at::equal(net.right->dense->weight, at::full({2, 3}, 2.0)));
  EXPECT_TRUE(at::equal(net.head->weight, head));
  EXPECT_EQ(net.left->dense->weight.data_ptr(), place);
}

TEST(WeightsSources, AreCopied) {
  TwoBranches net;
  const NamedTensors saved = saved_block(1);
  load_weights(net, std::vector<WeightsSource>{{"a", saved, "block", "left.dense"}});

  {
    const at::NoGradGuard no_gradients;
    net.left->dense->weight.fill_(9);
  }

  EXPECT_TRUE(at::equal(saved.at("block.weight"), at::full({2, 3}, 1.0)));
}

TEST(WeightsSources, MayBeAWholeFileForAPart) {
  TwoBranches net;
  const NamedTensors branch{{"dense.weight", at::full({2, 3}, 3.0)},
                            {"dense.bias", at::full({2}, 4.0)}};

  load_weights(net, std::vector<WeightsSource>{{"a", branch, "", "right"}});

  EXPECT_TRUE(at::equal(net.right->dense->bias, at::full({2}, 4.0)));
}

TEST(WeightsSources, MayBeInt8WithTheirScales) {
  TwoBranches net;
  NamedTensors saved = saved_block(1);
  saved["block.weight"] = at::arange(6, at::kFloat).view({2, 3});
  const NamedTensors small = convert_weights(saved, {}, WeightDtype::kInt8);

  load_weights(net, std::vector<WeightsSource>{{"a", small, "block", "left.dense"}});

  EXPECT_TRUE(at::equal(net.left->dense->weight, dequantized(small, "block.weight")));
}

TEST(WeightsSources, ThatDoNotFitAreAllNamedAndChangeNothing) {
  TwoBranches net;
  const at::Tensor before = net.left->dense->weight.detach().clone();
  NamedTensors wide = saved_block(2);
  wide["block.weight"] = at::ones({2, 5});
  wide.erase("block.bias");

  EXPECT_EQ(mistakes_of([&] {
              load_weights(
                  net, std::vector<WeightsSource>{{"a", saved_block(1), "block", "left.dense"},
                                                  {"b", wide, "block", "right.dense"},
                                                  {"c", saved_block(3), "blok", "right.dense"},
                                                  {"d", saved_block(4), "block", "middle"},
                                                  {"e", saved_block(5), "block", "left.dense"}});
            }),
            "b: saved weights do not fit \"right.dense\" of the model; missing: right.dense.bias; "
            "of another shape: right.dense.weight (expected [2, 3], got [2, 5])\n"
            "c: has no weights below \"blok\"; did you mean \"block\"?; there are "
            "block, blocks, out\n"
            "d: the model has no weights below \"middle\"; there are head, left.dense, "
            "right.dense\n"
            "e: gives \"left.dense.bias\", and so does a; say by \"from\" which nodes of each file "
            "are meant\n"
            "e: gives \"left.dense.weight\", and so does a; say by \"from\" which nodes of each "
            "file are meant");
  EXPECT_TRUE(at::equal(net.left->dense->weight, before));
}

TEST(WeightsSources, OfWhichNothingFitsAreRefusedAlsoWhereTheyNeedNotBeStrict) {
  TwoBranches net;
  const auto refusal = [&](NamedTensors tensors) {
    return mistakes_of([&] {
      load_weights(
          net, std::vector<WeightsSource>{{"a", std::move(tensors), "", "", /*is_strict=*/false}});
    });
  };

  EXPECT_EQ(refusal({{"model.head.weight", at::ones({1, 4})}, {"model.head.bias", at::ones({1})}}),
            "a: no tensor of it fits the model: it has \"model.head.bias\" for \"head.bias\"; set "
            "\"from\": \"model\"");
  EXPECT_EQ(refusal({{"block.weight", at::ones({7})}}),
            "a: no tensor of it fits the model; it has block, and the model has head, left.dense, "
            "right.dense");
  EXPECT_EQ(refusal({{"head.bias", at::ones({1})}, {"other", at::ones({1})}}),
            "nothing was thrown");
}

TEST(WeightsSources, ThatCannotBeReadAreNamedAndRefusedByStrictOnesAlone) {
  TwoBranches net;
  const auto source = [&](bool is_strict) {
    return std::vector<WeightsSource>{
        {"a", saved_block(1), "block", "left.dense", is_strict, {{"block.scale", "F8_E8M0"}}}};
  };

  EXPECT_THAT(load_weights(net, source(false)),
              ElementsAre("not readable: \"block.scale\" has dtype F8_E8M0"));
  EXPECT_THAT(mistakes_of([&] { load_weights(net, source(true)); }),
              ::testing::HasSubstr("\"block.scale\" has dtype F8_E8M0, which cannot be read"));
}

TEST(WeightsSources, ThatMatchAreTakenWhereThatIsAskedFor) {
  TwoBranches net;
  NamedTensors saved = saved_block(1);
  saved.erase("block.bias");

  const std::vector<std::string> left = load_weights(
      net, std::vector<WeightsSource>{{"a", saved, "block", "left.dense", /*is_strict=*/false}});

  EXPECT_THAT(left, ElementsAre("missing: left.dense.bias"));
  EXPECT_TRUE(at::equal(net.left->dense->weight, at::full({2, 3}, 1.0)));
}

}  // namespace
}  // namespace treadle
