#include <treadle/sdk.h>

#include <ATen/ops/tensor.h>

#include <treadle/testing/model/loss_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::Loss> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::Loss>("@name@", std::move(parameters));
}

// What every loss keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(
    @Name@, LossContract,
    ::testing::Values(LossCase{"OneNumber", [] { return make(); }, LossCase::numbers(1)},
                      LossCase{"ThreeNumbers", [] { return make(); }, LossCase::numbers(3)},
                      LossCase{"TimeSteps", [] { return make(); },
                               LossCase::numbers(2, {treadle::kVaries})},
                      LossCase{"Narrow",
                               [] {
                                 return make({{"delta", 0.3}});
                               },
                               LossCase::numbers(1)}),
    CaseName());

at::Tensor column(std::vector<double> values) {
  return at::tensor(values, at::kDouble).view({static_cast<std::int64_t>(values.size()), 1});
}

treadle::LossTerms forward(const treadle::Loss& loss, const at::Tensor& outputs,
                           const treadle::Batch& batch) {
  return loss.forward({outputs}, treadle::TargetBatch::transformed(batch, 0, LossCase::numbers(1)));
}

// By hand: 0.5^2 / 2 = 0.125; 1 * (3 - 1 / 2) = 2.5.
TEST(@Name@, IsQuadraticNearZeroAndLinearFarAway) {
  const auto terms = forward(*make(), column({1, 5}), batch_of_target(column({1.5, 2})));

  EXPECT_DOUBLE_EQ(terms.sum.item<double>(), 0.125 + 2.5);
}

// By hand: 2 * (3 - 2 / 2) = 4.
TEST(@Name@, TurnsWhereDeltaSays) {
  const auto terms = forward(*make({{"delta", 2}}), column({5}), batch_of_target(column({2})));

  EXPECT_DOUBLE_EQ(terms.sum.item<double>(), 4);
}

TEST(@Name@, WeighsRows) {
  treadle::Batch batch = batch_of_target(column({1.5, 2}));
  batch.weights = at::tensor({2.0, 4.0}, at::kDouble);

  const auto terms = forward(*make(), column({1, 5}), batch);

  EXPECT_DOUBLE_EQ(terms.sum.item<double>(), 2 * 0.125 + 4 * 2.5);
  EXPECT_DOUBLE_EQ(
      weight_of(terms, treadle::TargetBatch::transformed(batch, 0, LossCase::numbers(1))), 6);
}

TEST(@Name@, SaysWhyItCannotWorkOnClasses) {
  try {
    make()->outputs_for(LossCase::classes(3));
    ADD_FAILURE() << "expected a DataError";
  } catch (const treadle::DataError& error) {
    EXPECT_STREQ(error.what(),
                 "loss \"@name@\" needs numbers, but the target \"species\" is not; use "
                 "cross_entropy for classes");
  }
}

TEST(@Name@, RefusesParametersOutOfRange) {
  EXPECT_THROW(make({{"delta", 0}}), treadle::DocumentError);
}

}  // namespace
