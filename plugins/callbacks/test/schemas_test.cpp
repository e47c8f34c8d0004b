#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

/// The conditions in a component's schema, by their keys, without what people read.
std::map<std::string, nlohmann::json> conditions_in(const nlohmann::json& schema) {
  std::map<std::string, nlohmann::json> found;
  for (const auto& [key, property] : schema.at("properties").items()) {
    if (!property.contains("properties") || !property.at("properties").contains("not_improving"))
      continue;
    found[key] = property;
    found[key].erase("description");
    found[key].erase("examples");
  }
  return found;
}

TEST(Schemas, OfConditionsAgree) {
  const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  const nlohmann::json expected = conditions_in(plugin.schema("stop")).at("when");
  std::vector<std::string> where;
  for (const PluginUnderTest::Offer& offer : plugin.offers()) {
    for (const auto& [key, condition] : conditions_in(offer.schema)) {
      where.push_back(offer.name + "." + key);
      EXPECT_TRUE(condition == expected)
          << where.back() << ": " << nlohmann::json::diff(expected, condition);
    }
  }
  EXPECT_EQ(where,
            (std::vector<std::string>{"freeze.until", "scale_learning_rate.when", "stop.when"}));
}

}  // namespace
}  // namespace treadle::testing
