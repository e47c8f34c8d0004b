#include <treadle/testing/gradients_contract.h>
#include <treadle/testing/plugin_under_test.h>

namespace treadle::testing {
namespace {

GradientsCase case_of(std::string name, std::string component, nlohmann::json parameters = {}) {
  return {std::move(name), [component, parameters] {
            static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
            return plugin.make<GradientStrategy>(component, parameters);
          }};
}

// The suite's models have no steps of time: one_step, too, is exact on them.
INSTANTIATE_TEST_SUITE_P(
    Strategies, GradientStrategyContract,
    ::testing::Values(
        case_of("Backprop", "backprop"), case_of("OneStep", "one_step"),
        case_of("OnePart", "accumulate", {{"parts", 1}}),
        case_of("ThreeParts", "accumulate", {{"parts", 3}}),
        case_of("RowByRow", "accumulate", {{"parts", 65536}}),
        case_of("PartsOfOneStep", "accumulate", {{"parts", 5}, {"inner", "one_step"}}),
        case_of("OneStepOfParts", "one_step", {{"inner", {{"use", "accumulate"}, {"parts", 5}}}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
