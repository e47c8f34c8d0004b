#include <treadle/core/devices/device_constant.h>

#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

namespace treadle {
namespace {

TEST(DeviceConstant, IsConvertedOnceForEachDtype) {
  const DeviceConstant constant(at::tensor({0.1, 2.0}, at::kDouble));
  const DeviceConstant copy = constant;

  const at::Tensor single = constant.with(at::kFloat);

  EXPECT_TRUE(at::equal(single, at::tensor({0.1F, 2.0F})));
  EXPECT_TRUE(constant.with(at::kFloat).is_same(single));
  EXPECT_TRUE(copy.with(at::kFloat).is_same(single)) << "copies share them";
  EXPECT_TRUE(at::equal(constant.with(at::kDouble), constant.numbers()));
}

TEST(DeviceConstant, IsUndefinedByDefault) {
  const DeviceConstant nothing;

  EXPECT_FALSE(nothing.is_defined());
  EXPECT_FALSE(nothing.with(at::kFloat).defined());
}

}  // namespace
}  // namespace treadle
