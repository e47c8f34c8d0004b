#include <treadle/sdk.h>

#include <ATen/ops/tensor.h>

#include <treadle/testing/support/evaluated_rows.h>
#include <treadle/testing/model/metric_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::MetricComputer> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::MetricComputer>("@name@", std::move(parameters));
}

// What every metric keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(
    @Name@, MetricContract,
    ::testing::Values(MetricCase{"OneNumber", [] { return make(); }, MetricCase::numbers(1)},
                      MetricCase{"TwoNumbers", [] { return make(); }, MetricCase::numbers(2)},
                      MetricCase{"TimeSteps", [] { return make(); },
                                 MetricCase::numbers(1, {treadle::kVaries})},
                      MetricCase{"HighFloor",
                                 [] {
                                   return make({{"floor", 0.5}});
                                 },
                                 MetricCase::numbers(1)}),
    CaseName());

/// Rows with targets 2, 4, -5 and predictions 1, 5, -5: off by 50, 25 and 0 percent.
EvaluatedRows three_rows() {
  return evaluated_rows(treadle::TargetKind::kNumbers,
                     at::tensor({1.0, 5.0, -5.0}, at::kDouble).view({3, 1}),
                     at::tensor({2.0, 4.0, -5.0}, at::kDouble).view({3, 1}));
}

double value_of(treadle::MetricComputer& metric, const EvaluatedRows& rows) {
  metric.start(MetricCase::numbers(1));
  update(metric, rows, MetricCase::numbers(1));
  return metric.compute().values.at(0).value;
}

TEST(@Name@, IsTheMeanOfThePercentages) {
  EXPECT_DOUBLE_EQ(value_of(*make(), three_rows()), 25);
}

// By hand: (50 * 3 + 25 * 1 + 0 * 4) / 8.
TEST(@Name@, WeighsRows) {
  EvaluatedRows rows = three_rows();
  rows.batch.weights = at::tensor({3.0, 1.0, 4.0}, at::kDouble);

  EXPECT_DOUBLE_EQ(value_of(*make(), rows), 175.0 / 8);
}

// By hand: |0 - 1| / 0.5 is 200 percent.
TEST(@Name@, TakesTargetsNearZeroForTheFloor) {
  EvaluatedRows rows = three_rows().part(0, 1);
  rows.batch.original_targets = {at::tensor({0.0}, at::kDouble).view({1, 1})};

  EXPECT_DOUBLE_EQ(value_of(*make({{"floor", 0.5}}), rows), 200);
}

TEST(@Name@, IsBetterWhenLower) {
  const auto metric = make();
  metric->start(MetricCase::numbers(1));

  EXPECT_EQ(metric->compute().values.at(0).name, "@name@");
  EXPECT_EQ(metric->compute().values.at(0).direction, treadle::Direction::kLowerIsBetter);
}

TEST(@Name@, RefusesParametersOutOfRange) {
  EXPECT_THROW(make({{"floor", 0}}), treadle::DocumentError);
}

}  // namespace
