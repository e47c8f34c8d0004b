// Layers beside PyTorch (reference.py) and hand calculation.
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/var.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/layer.h>
#include <treadle/tensor/task_random.h>

#include "test/reference_numbers.h"
#include "test/this_plugin.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

std::shared_ptr<Layer> layer_for(const std::string& component, const Json& parameters,
                                 std::vector<std::int64_t> row, std::size_t inputs = 1) {
  row.insert(row.begin(), TensorSpec::kVaries);
  LayerSpec spec;
  spec.dtype = at::kDouble;
  spec.inputs.assign(inputs, TensorSpec(std::move(row), at::kDouble));
  const TaskRandom random(1);
  return plugin().make<LayerFactory>(component, parameters)->create(spec);
}

at::Tensor given_by(Layer& layer, const std::vector<at::Tensor>& inputs) {
  LayerContext context;
  return layer.forward(inputs, context);
}

at::Tensor row_of(const std::vector<double>& numbers) {
  return at::tensor(numbers, at::kDouble).unsqueeze(0);
}

// --- ghost_batch_norm

TEST(GhostBatchNorm, NormsEachPartByItself) {
  const auto layer = layer_for("ghost_batch_norm", {{"virtual_batch_size", 3}}, {2});

  const at::Tensor y = given_by(*layer, {counted_rows(6, 2)});

  expect_near(numbers_of(y),
              {0.9928863007288986, 1.1307588426716024, 0.37568107797482336, 0.17016137642371149,
               -1.3685673787037214, -1.3009202190953133, 1.1695018062265854, -0.48191393093658713,
               -1.2732219827874482, -0.9104392539095189, 0.1037201765608638, 1.3923531848461068});
  expect_near(numbers_of(layer->named_buffers()["running_mean"]),
              {0.001377970183035676, -0.006109787213596254});
  expect_near(numbers_of(layer->named_buffers()["running_var"]),
              {0.9763896192299454, 0.9890583136897263});
}

TEST(GhostBatchNorm, GathersEachPartAlike) {
  const auto layer = layer_for("ghost_batch_norm", {{"virtual_batch_size", 3}}, {2});
  const at::Tensor x = counted_rows(11, 2);
  given_by(*layer, {x.mul(100)});  // what was there before

  auto& gathers = dynamic_cast<GathersStatistics&>(*layer);
  gathers.begin_gathering();
  given_by(*layer, {x.narrow(0, 0, 6)});
  given_by(*layer, {x.narrow(0, 6, 5)});
  gathers.end_gathering();

  std::vector<at::Tensor> means;
  std::vector<at::Tensor> variances;
  for (const auto& [from, rows] : {std::pair(0, 3), {3, 3}, {6, 3}, {9, 2}}) {
    means.push_back(x.narrow(0, from, rows).mean(0));
    variances.push_back(at::var(x.narrow(0, from, rows), at::IntArrayRef{0}, /*unbiased=*/true));
  }
  expect_near(numbers_of(layer->named_buffers()["running_mean"]),
              numbers_of(at::stack(means).mean(0)));
  expect_near(numbers_of(layer->named_buffers()["running_var"]),
              numbers_of(at::stack(variances).mean(0)));
}

TEST(GhostBatchNorm, CutsBatchesAsEvenlyAsPossible) {
  const auto layer = layer_for("ghost_batch_norm", {{"virtual_batch_size", 4}}, {2});
  const at::Tensor x = counted_rows(11, 2);  // parts of 4, 4 and 3 rows

  const at::Tensor y = given_by(*layer, {x});

  const auto normed = [&](std::int64_t from, std::int64_t rows) {
    return given_by(*layer_for("ghost_batch_norm", Json::object(), {2}), {x.narrow(0, from, rows)});
  };
  expect_near(numbers_of(y), numbers_of(at::cat({normed(0, 4), normed(4, 4), normed(8, 3)})));
}

TEST(GhostBatchNorm, LeavesNoSingleRowOver) {
  const auto layer = layer_for("ghost_batch_norm", {{"virtual_batch_size", 2}}, {2});

  const at::Tensor y = given_by(*layer, {counted_rows(5, 2)});  // 3 and 2

  EXPECT_GT(y.abs().min().item<double>(), 0.01);  // a row by itself would be 0
  try {
    given_by(*layer, {counted_rows(1, 2)});
    FAIL() << "no error";
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(), HasSubstr("leaves no single row over"));
  }
}

// --- relaxed_prior, entropy_penalty

TEST(RelaxedPrior, IsTheProductOverEarlierMasks) {
  const auto layer = layer_for("relaxed_prior", {{"relaxation", 1.5}}, {3}, 3);

  const at::Tensor y = given_by(
      *layer, {row_of({2.0, -4.0, 1.0}), row_of({1.0, 0.0, 0.0}), row_of({0.5, 0.5, 0.0})});

  expect_near(numbers_of(y), {2 * 0.5 * 1.0, -4 * 1.5 * 1.0, 1 * 1.5 * 1.5});
}

TEST(EntropyPenalty, AddsTheEntropyOfEachRow) {
  const auto layer = layer_for("entropy_penalty", {{"weight", 0.1}}, {2});
  const at::Tensor p = at::cat({row_of({0.5, 0.5}), row_of({1.0, 0.0})});
  LayerContext context;

  const at::Tensor y = layer->forward(std::vector{p}, context);

  EXPECT_TRUE(at::equal(y, p));
  ASSERT_EQ(context.reports().size(), 1U);
  EXPECT_EQ(context.reports()[0].name, "entropy");
  EXPECT_NEAR(context.reports()[0].value.item<double>(), 0.1 * std::numbers::ln2, 1e-12);
}

// --- random_fourier_features

// Rahimi and Recht (2007), claim 1: the mean over D cosines is off by some 1 / sqrt(D).
TEST(RandomFourierFeatures, HaveTheProductsOfTheKernel) {
  const auto layer =
      layer_for("random_fourier_features", {{"out_features", 40000}, {"gamma", 0.3}}, {3});
  const at::Tensor x = counted_rows(5, 3) / 2;

  const at::Tensor z = given_by(*layer, {x});

  const at::Tensor distances = (x.unsqueeze(0) - x.unsqueeze(1)).square().sum(-1);
  expect_near(numbers_of(at::matmul(z, z.t())), numbers_of((distances * -0.3).exp()), 0.02);
}

// --- intersample_attention

struct Intersample {
  explicit Intersample(std::int64_t references)
      : layer(layer_for("intersample_attention",
                        {{"num_heads", 2}, {"head_dim", 3}, {"references", references}}, {4})) {
    fill_parameters(layer->parameters());
  }
  at::Tensor evaluated(const at::Tensor& x) const {
    layer->eval();
    return given_by(*layer, {x});
  }
  std::shared_ptr<Layer> layer;
};

TEST(IntersampleAttention, EqualsPyTorchInTraining) {
  const Intersample made(8);

  const at::Tensor y = given_by(*made.layer, {counted_rows(6, 4) / 4});
  weighted(y).backward();

  expect_near(numbers_of(y.flatten().narrow(0, 0, 8)),
              {0.596484564070821, 0.011802007836819325, -0.6288965526126278, -0.29186292728642604,
               0.587841421643488, 0.016947960807607743, -0.6196981060718257, -0.29601626815395043});
  expect_near(slopes_of(made.layer->parameters()),
              {0.04396938480244174, -0.01652788837376521, 0.1859163611491132});
}

TEST(IntersampleAttention, EvaluatesEachRowAmongTheLastRowsOfTheTraining) {
  const Intersample made(5);
  const at::Tensor x = counted_rows(6, 4) / 4;

  given_by(*made.layer, {x.narrow(0, 0, 4)});
  given_by(*made.layer, {x.narrow(0, 4, 2)});

  expect_near(
      numbers_of(made.evaluated(x.narrow(0, 0, 2) * 0.5)),
      {0.5647283578201601, -0.012353466997709964, -0.5997469839691418, -0.2645618979811386,
       0.5247200439137766, -0.0061130125002648444, -0.559065257368935, -0.26641235314272593});
}

TEST(IntersampleAttention, LeavesOutReferencesThatAreNotThereYet) {
  const Intersample made(5);
  const at::Tensor x = counted_rows(6, 4) / 4;

  given_by(*made.layer, {x.narrow(0, 0, 3)});

  expect_near(numbers_of(made.evaluated(x.narrow(0, 0, 2) * 0.5)),
              {0.4876448561127701, 0.03136863664317119, -0.517945393282097, -0.29945672316559324,
               0.43152258057406406, 0.0363303178824947, -0.46128769854745993, -0.2983044249098817});
}

TEST(IntersampleAttention, EvaluationIsTheSameHoweverBatchesAreCut) {
  const Intersample made(16);
  given_by(*made.layer, {at::randn({20, 4}, at::kDouble)});
  const at::Tensor x = at::randn({9, 4}, at::kDouble);

  const at::Tensor together = made.evaluated(x);

  std::vector<at::Tensor> one_by_one;
  for (std::int64_t row = 0; row < 9; ++row)
    one_by_one.push_back(made.evaluated(x.narrow(0, row, 1)));
  expect_near(numbers_of(at::cat(one_by_one)), numbers_of(together), 1e-12);
}

// --- What does not fit

TEST(TabularMistakes, NameBothShapes) {
  const auto mistake = [](const std::string& component, std::vector<std::int64_t> row) {
    try {
      layer_for(component, Json::object(), std::move(row));
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const char* const component :
       {"ghost_batch_norm", "intersample_attention", "random_fourier_features"}) {
    EXPECT_THAT(mistake(component, {3, 4}),
                HasSubstr("takes one input of rows of numbers [B, width], got [B, 3, 4]"));
  }
}

}  // namespace
}  // namespace treadle::testing
