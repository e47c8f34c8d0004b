#include <treadle/sdk.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <treadle/testing/support/batches.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/data/sequence_contract.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::SequenceProvider> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::SequenceProvider>("@name@", std::move(parameters));
}

// What every sequence provider keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(@Name@, SequenceContract,
                         ::testing::Values(SequenceCase{"Defaults", [] { return make(); }},
                                           SequenceCase{"OneLag",
                                                        [] {
                                                          return make({{"lags", 1}});
                                                        }}),
                         CaseName());

/// The column "x" with 1, 2, 3, … and the number "y", ten times as large.
treadle::MatrixRows::Matrices counting(std::int64_t rows) {
  treadle::MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {1}, {{"x"}}}};
  matrices.spec.targets = {treadle::number_target("y")};
  matrices.inputs = {at::arange(1, rows + 1, at::kFloat).view({rows, 1})};
  matrices.targets = {matrices.inputs[0].mul(10)};
  return matrices;
}

TEST(@Name@, AddsTheRowsBefore) {
  const treadle::MatrixRows rows(counting(5));

  const auto samples = make({{"lags", 2}})->samples(rows);
  const treadle::Batch batch = gathered(*samples, 0, samples->rows());

  const treadle::PortSpec& input = samples->spec().inputs[0];
  EXPECT_EQ(input.shape, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(input.columns[1].name, "x.lag1");
  EXPECT_EQ(input.columns[2].name, "x.lag2");
  const at::Tensor expected = at::tensor({3.0, 2.0, 1.0, 4.0, 3.0, 2.0, 5.0, 4.0, 3.0}, at::kFloat);
  EXPECT_TRUE(same(batch.inputs[0], expected.view({3, 3})));
  EXPECT_TRUE(same(batch.targets[0], at::tensor({30.0, 40.0, 50.0}, at::kFloat).view({3, 1})));
  EXPECT_EQ(samples->describe_row(0), "row 2");
}

TEST(@Name@, ASeriesBeginsAnew) {
  treadle::MatrixRows::Matrices matrices = counting(6);
  matrices.groups = at::tensor({4, 4, 4, 9, 9, 9}, at::kLong);
  const treadle::MatrixRows rows(std::move(matrices));

  const auto samples = make({{"lags", 2}})->samples(rows);

  ASSERT_EQ(samples->rows(), 2);
  EXPECT_EQ(samples->source_rows(0).inputs, (treadle::RowRange{0, 3}));
  EXPECT_EQ(samples->source_rows(1).inputs, (treadle::RowRange{3, 6}));
  EXPECT_EQ(samples->source_rows(1).targets, (treadle::RowRange{5, 6}));
}

TEST(@Name@, SaysHowManyRowsItNeeds) {
  const treadle::MatrixRows rows(counting(3));
  try {
    make({{"lags", 3}})->samples(rows);
    ADD_FAILURE() << "expected a DataError";
  } catch (const treadle::DataError& error) {
    EXPECT_STREQ(error.what(),
                 "the sequence @name@ needs 4 rows of one series; there are 3 rows");
  }
}

}  // namespace
