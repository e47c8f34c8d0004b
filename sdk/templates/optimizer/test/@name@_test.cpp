#include <treadle/sdk.h>

#include <ATen/ops/full_like.h>

#include <treadle/testing/training/optimizer_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/training/trained_parameters.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::Optimizer> make(nlohmann::json parameters = {}) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::Optimizer>("@name@", std::move(parameters));
}

// What every optimizer keeps: one case for each configuration that may behave differently.
INSTANTIATE_TEST_SUITE_P(@Name@, OptimizerContract,
                         ::testing::Values(OptimizerCase{"Defaults", [] { return make(); }},
                                           OptimizerCase{
                                               .name = "WithDecay",
                                               .make =
                                                   [] {
                                                     return make({{"weight_decay", 0.1}});
                                                   },
                                               .decays_weights = true}),
                         CaseName());

/// All three gradients of TrainedParameters, each element `value`.
std::vector<at::Tensor> gradients_of(double value) {
  std::vector<at::Tensor> gradients = TrainedParameters::random_gradients(1);
  for (at::Tensor& gradient : gradients)
    gradient = at::full_like(gradient, value);
  return gradients;
}

TEST(@Name@, MovesEachParameterByTheRateAgainstItsDirection) {
  const auto optimizer = make();
  TrainedParameters trained(*optimizer);
  const double start = trained.value(2).item<double>();

  trained.step(gradients_of(3), 0.5);

  EXPECT_DOUBLE_EQ(trained.value(2).item<double>(), start - 0.5);
  EXPECT_DOUBLE_EQ(trained.slots().tensor(0).max().item<double>(), (1 - 0.9) * 3);
}

// By hand, with momentum = 0.5, from p0, m = 0:
//   g =  4: m = 0.5 * 0 + 0.5 * 4 = 2,      p0 - 1
//   g = -3: m = 0.5 * 2 - 0.5 * 3 = -0.5,   p0
//   g = .5: m = 0, whose sign is 0:         p0
TEST(@Name@, FollowsItsFormulaOverSeveralSteps) {
  const auto optimizer = make({{"momentum", 0.5}});
  TrainedParameters trained(*optimizer);
  const double start = trained.value(2).item<double>();

  trained.step(gradients_of(4), 1);
  EXPECT_DOUBLE_EQ(trained.value(2).item<double>(), start - 1);
  EXPECT_DOUBLE_EQ(trained.slots().tensor(0).max().item<double>(), 2);
  trained.step(gradients_of(-3), 1);
  EXPECT_DOUBLE_EQ(trained.value(2).item<double>(), start);
  trained.step(gradients_of(0.5), 1);
  EXPECT_DOUBLE_EQ(trained.value(2).item<double>(), start);
}

// p - 0.5 * (1 + 0.1 * p)
TEST(@Name@, TakesWeightDecayFromTheParameterItself) {
  const auto optimizer = make({{"weight_decay", 0.1}});
  TrainedParameters trained(*optimizer);
  const double start = trained.value(2).item<double>();

  trained.step(gradients_of(3), 0.5);

  EXPECT_DOUBLE_EQ(trained.value(2).item<double>(), start - 0.5 * (1 + 0.1 * start));
}

TEST(@Name@, RefusesParametersOutOfRange) {
  EXPECT_THROW(make({{"learning_rate", 0}}), treadle::DocumentError);
  EXPECT_THROW(make({{"momentum", 1}}), treadle::DocumentError);
  EXPECT_THROW(make({{"beta1", 0.5}}), treadle::DocumentError);
}

}  // namespace
