#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/testing/support/source_path.h>

#include "metric_cases.h"

namespace treadle::testing {
namespace {

using nlohmann::json;

constexpr double kRounding = 1e-9;  // relative above 1

bool has_no_value(const json& number) {
  return number.is_object() || number == "undefined" || number == "nan";
}

void expect_number(const json& got, const json& expected, const std::string& where) {
  if (has_no_value(expected)) {
    EXPECT_TRUE(has_no_value(got)) << where << ": " << got;
    return;
  }
  ASSERT_TRUE(got.is_number()) << where << ": " << got;
  const auto value = expected.get<double>();
  EXPECT_NEAR(got.get<double>(), value, kRounding * std::max(1.0, std::abs(value))) << where;
}

void expect_rows(const json& got, const json& expected, const std::string& where) {
  // Without rows a table of fixed bins has zeros.
  ASSERT_TRUE(got.size() == expected.size() || expected.empty()) << where << ": " << got.dump();
  for (std::size_t row = 0; row < expected.size(); ++row) {
    for (std::size_t column = 0; column < expected[row].size(); ++column) {
      expect_number(got[row][column], expected[row][column],
                    where + "[" + std::to_string(row) + "][" + std::to_string(column) + "]");
    }
  }
}

// The cases and their results: /usr/bin/python3 plugins/metrics/test/scikit_learn.py,
// version 1.2.1.
TEST(Metrics, GiveTheNumbersOfScikitLearn) {
  std::ifstream file(source_path(TREADLE_PLUGIN_FOLDER) / "test/scikit_learn.json");
  const json cases = json::parse(file);
  ASSERT_GT(cases.size(), 10U);
  for (const json& one : cases) {
    const json results = run_case(one);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string where = one.at("name").get<std::string>() + ", " + one["metrics"][i].dump();
      const json& expected = one.at("expected").at(i);
      ASSERT_EQ(results[i]["values"].size(), expected["values"].size()) << where;
      for (const auto& [name, value] : expected["values"].items())
        expect_number(results[i]["values"].at(name), value, where + ", " + name);
      for (const auto& [name, rows] : expected["tables"].items())
        expect_rows(results[i]["tables"].at(name)["values"], rows, where + ", " + name);
    }
  }
}

}  // namespace
}  // namespace treadle::testing
