#include <treadle/sdk.h>

#include <cmath>

#include <ATen/ops/tensor.h>

#include <treadle/testing/support/batches.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/data/transform_contract.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::Transform> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::Transform>("@name@", std::move(parameters));
}

// What every transform keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(@Name@, TransformContract,
                         ::testing::Values(TransformCase{"Defaults", [] { return make(); }},
                                           TransformCase{"WithTarget",
                                                         [] {
                                                           return make({{"target", true}});
                                                         }},
                                           TransformCase{
                                               "WideScale",
                                               [] {
                                                 return make({{"scale", 50}, {"target", true}});
                                               }}),
                         CaseName());

/// One row: a number, a category, and a number to predict.
treadle::MatrixRows row_of(double number, std::int64_t category, double target) {
  treadle::MatrixRows::Matrices matrices;
  matrices.spec.inputs = {
      {"features", {1}, {{"height", {}}}, treadle::Role::kFeatures, at::kDouble},
      {"categories", {1}, {{"color", {"blue", "red"}}}, treadle::Role::kCategories, at::kLong}};
  matrices.spec.targets = {treadle::number_target("price")};
  matrices.inputs = {at::tensor({number}, at::kDouble).view({1, 1}),
                     at::tensor({category}, at::kLong).view({1, 1})};
  matrices.targets = {at::tensor({target}, at::kDouble).view({1, 1})};
  return treadle::MatrixRows(std::move(matrices));
}

treadle::Batch applied(const treadle::MatrixRows& rows, treadle::Transform& transform) {
  transform.fit(rows, row_numbers(0, 1));
  treadle::Batch batch = gathered(rows, 0, 1);
  transform.apply(batch, {});
  return batch;
}

// By hand: log(1 + (e - 1)) = 1, with the sign kept.
TEST(@Name@, IsOneWhereTheValueIsEMinusOne) {
  const double e = std::exp(1.0);

  EXPECT_DOUBLE_EQ(applied(row_of(e - 1, 0, 5), *make()).inputs[0][0][0].item<double>(), 1);
  EXPECT_DOUBLE_EQ(applied(row_of(1 - e, 0, 5), *make()).inputs[0][0][0].item<double>(), -1);
  EXPECT_EQ(applied(row_of(0, 0, 5), *make()).inputs[0][0][0].item<double>(), 0);
}

// By hand: log(1 + 30 / 10) = log(4).
TEST(@Name@, MeasuresByTheScale) {
  const auto transform = make({{"scale", 10}});

  EXPECT_DOUBLE_EQ(applied(row_of(30, 0, 5), *transform).inputs[0][0][0].item<double>(),
                   std::log(4.0));
}

TEST(@Name@, LeavesCategoriesAndTargetsAlone) {
  const treadle::Batch batch = applied(row_of(3, 1, 5), *make());

  EXPECT_EQ(batch.inputs[1].item<std::int64_t>(), 1);
  EXPECT_EQ(batch.targets[0].item<double>(), 5);
}

TEST(@Name@, TurnsPredictionsBack) {
  const auto transform = make({{"target", true}, {"scale", 2}});

  const treadle::Batch batch = applied(row_of(3, 1, -6), *transform);

  EXPECT_DOUBLE_EQ(batch.targets[0].item<double>(), -std::log(4.0));
  EXPECT_DOUBLE_EQ(transform->invert(batch.targets[0], "price").item<double>(), -6);
  EXPECT_EQ(batch.original_targets[0].item<double>(), -6);
}

TEST(@Name@, SaysWhyItCannotChangeClasses) {
  treadle::DataSpec spec;
  spec.targets = {treadle::class_target("species", {"a", "b"})};
  try {
    make({{"target", true}})->output_spec(spec);
    ADD_FAILURE() << "expected a DataError";
  } catch (const treadle::DataError& error) {
    EXPECT_STREQ(error.what(),
                 "@name@: \"target\": true needs a target of numbers, but \"species\" is classes");
  }
}

}  // namespace
