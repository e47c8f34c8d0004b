#include <treadle/sdk.h>

#include <ATen/ops/tensor.h>

#include <treadle/testing/model/output_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/evaluated_rows.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::OutputStage> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::OutputStage>("@name@", std::move(parameters));
}

// The contract of every output stage: one case for each kind of target, and for each configuration that
// may behave differently.
INSTANTIATE_TEST_SUITE_P(
    @Name@, OutputContract,
    ::testing::Values(OutputCase{"TwoClasses", [] { return make(); }, class_target(2)},
                      OutputCase{"Positions", [] { return make(); }, class_target(3, {4})}),
    CaseName());

// By hand: half of 0.9 and half of the share, 3 of 4.
TEST(@Name@, MixesProbabilitiesWithTheShares) {
  const treadle::TargetSpec target = class_target(2);
  const EvaluatedRows rows =
      evaluated_rows(treadle::TargetKind::kClasses,
                     at::tensor({0.1, 0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, at::kDouble).view({4, 2}),
                     at::tensor({1, 1, 1, 0}, at::kLong));
  const auto stage = make({{"weight", 0.5}});
  stage->start(target);
  stage->fit(rows.prediction, treadle::TargetBatch::original(rows.batch, 0, target));

  const treadle::Prediction after = stage->apply(rows.prediction, rows.batch);

  EXPECT_DOUBLE_EQ(after.values[0][1].item<double>(), (0.9 + 0.75) / 2);
}

TEST(@Name@, RefusesParametersOutOfRange) {
  EXPECT_THROW(make({{"weight", 2}}), treadle::DocumentError);
}

}  // namespace
