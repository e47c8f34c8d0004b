// Components under test that are made of others: of their own plugin, and of plugins that come with
// Treadle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/gradient_strategy.h>
#include <treadle/core/plugin_registry.h>
#include <treadle/testing/gradients_contract.h>
#include <treadle/testing/plugin_under_test.h>

#include "wrapping.h"

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
