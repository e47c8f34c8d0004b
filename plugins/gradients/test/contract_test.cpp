#include <treadle/testing/model/gradients_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

GradientsCase case_of(std::string name, std::string component, nlohmann::json parameters = {}) {
  return {std::move(name), [component, parameters] {
            static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
            return plugin.make<GradientStrategy>(component, parameters);
          }};
}

// The suite's models have no steps of time: truncated_bptt, too, is exact on them.
INSTANTIATE_TEST_SUITE_P(
    Strategies, GradientStrategyContract,
    ::testing::Values(case_of("Backprop", "backprop"), case_of("TruncatedBptt", "truncated_bptt"),
                      case_of("OnePart", "accumulate", {{"micro_batches", 1}}),
                      case_of("ThreeParts", "accumulate", {{"micro_batches", 3}}),
                      case_of("RowByRow", "accumulate", {{"micro_batches", 65536}}),
                      case_of("MicroBatchesOfTruncatedBptt", "accumulate",
                              {{"micro_batches", 5}, {"inner", "truncated_bptt"}}),
                      case_of("TruncatedBpttOfMicroBatches", "truncated_bptt",
                              {{"inner", {{"use", "accumulate"}, {"micro_batches", 5}}}})),
    CaseName());

}  // namespace
}  // namespace treadle::testing
