#include <treadle/testing/support/test_device.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <c10/core/Device.h>
#include <gtest/gtest.h>
#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/core/devices/device_backend.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/plugin/installed_plugins.h>
#include <treadle/testing/support/tensor_comparison.h>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace treadle::testing {

void add_result(NamedResults& results, std::string name, const at::Tensor& tensor) {
  results.emplace_back(std::move(name),
                       tensor.defined() ? tensor.detach().cpu().clone() : at::Tensor());
}

void expect_results(const NamedResults& got, const NamedResults& expected,
                    const Closeness& allowed) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].first, expected[i].first);
    EXPECT_TRUE(values_match(got[i].second, expected[i].second, allowed)) << got[i].first;
  }
}

}  // namespace treadle::testing
