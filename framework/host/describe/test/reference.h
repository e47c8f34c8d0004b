#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// reference.json, which reference.py computes with numpy, scipy and scikit-learn.
namespace treadle::describe {

inline constexpr double kReferenceTolerance = 1e-9;

inline const nlohmann::json& reference() {
  static const nlohmann::json kReference = [] {
    std::ifstream file(std::string(std::getenv("TREADLE_SOURCE")) +
                       "/framework/host/describe/test/reference.json");
    return nlohmann::json::parse(file);
  }();
  return kReference;
}

/// float64 [n] or [n, d]; null is NaN.
inline at::Tensor numbers_of(const nlohmann::json& json) {
  std::vector<double> values;
  const auto add = [&](const nlohmann::json& value) {
    values.push_back(value.is_null() ? std::nan("") : value.get<double>());
  };
  for (const nlohmann::json& row : json) {
    if (row.is_array()) {
      for (const nlohmann::json& value : row)
        add(value);
    } else {
      add(row);
    }
  }
  const at::Tensor flat = at::tensor(values, at::kDouble);
  return json.front().is_array() ? flat.view({static_cast<std::int64_t>(json.size()), -1}) : flat;
}

inline at::Tensor codes_of(const nlohmann::json& json) {
  return at::tensor(json.get<std::vector<std::int64_t>>(), at::kLong);
}

inline void expect_near(const std::vector<double>& found, const nlohmann::json& expected) {
  const at::Tensor flat = numbers_of(expected).flatten();
  ASSERT_EQ(found.size(), static_cast<std::size_t>(flat.size(0)));
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto wanted = flat[static_cast<std::int64_t>(i)].item<double>();
    EXPECT_NEAR(found[i], wanted, kReferenceTolerance * std::max(1.0, std::abs(wanted))) << i;
  }
}

}  // namespace treadle::describe
