// Components under test that are made of others: of their own plugin, and of plugins that come with
// Treadle.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/plugin.h>
#include <treadle/testing/model/gradients_contract.h>
#include <treadle/testing/plugin/installed_plugins.h>
#include <treadle/testing/plugin/plugin_under_test.h>

#include "component/wrapping.h"

namespace treadle::testing {
namespace {

/// A plugin's component as it should be: reads its parameters, and says which of them do not go
/// together.
class Halving : public LearningRateSchedule {
 public:
  explicit Halving(const Config& config)
      : every_(config.get<std::int64_t>("every")), floor_(config.get<double>("floor")) {
    if (floor_ > 0 && every_ == 1)
      config.fail("floor", "needs \"every\" above 1");
  }

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override {
    const double halved = span.base_rate * std::exp2(-static_cast<double>(step / every_));
    return std::max(floor_, halved);
  }
  std::int64_t every_;
  double floor_;
};

}  // namespace
}  // namespace treadle::testing

// The schemas lie in data/plugin.
TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::testing::Halving>("halving");
  registrar.add<treadle::testing::Wrapping>("wrapping");
}

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

const PluginUnderTest& wrapping_plugin() {
  static const PluginUnderTest kPlugin(TREADLE_TEST_DATA "/plugin");
  return kPlugin;
}

std::unique_ptr<GradientStrategy> wrapping(const Json& inner) {
  return wrapping_plugin().make<GradientStrategy>("wrapping", {{"inner", inner}});
}

INSTANTIATE_TEST_SUITE_P(
    Wrapping, GradientStrategyContract,
    ::testing::Values(GradientsCase{"AnInstalledComponent", [] { return wrapping("backprop"); }},
                      GradientsCase{
                          "AnInstalledOneWithParameters",
                          [] {
                            return wrapping({{"use", "accumulate"}, {"micro_batches", 3}});
                          }},
                      GradientsCase{"ItsOwnPluginsComponent",
                                    [] {
                                      return wrapping({{"use", "wrapping"}, {"inner", "backprop"}});
                                    }}),
    CaseName());

template <typename Action>
std::string refusal_of(Action&& action) {
  try {
    action();
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(InstalledPlugins, ParametersOfTheirComponentsAreChecked) {
  EXPECT_THAT(refusal_of([] {
                wrapping({{"use", "accumulate"}, {"micro_batches", 0}});
              }),
              HasSubstr("/inner/micro_batches"));
}

TEST(InstalledPlugins, OneThatNobodyHasIsRefusedWithThePlacesThatWereLookedAt) {
  EXPECT_THAT(refusal_of([] { wrapping("backdrop"); }),
              AllOf(HasSubstr("/inner"), HasSubstr("\"backdrop\""),
                    HasSubstr(InstalledPlugins::folder().string())));
}

TEST(InstalledPlugins, ThoseOfThePluginUnderTestGoFirst) {
  // "halving" is nowhere else; what is here is not looked for there.
  EXPECT_EQ(InstalledPlugins::find("treadle.schedule/0", "halving"), nullptr);
  EXPECT_EQ(wrapping_plugin().schema("halving").at("x-treadle-interface"), "schedule");
}

}  // namespace
}  // namespace treadle::testing
