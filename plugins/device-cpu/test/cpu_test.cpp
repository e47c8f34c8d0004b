#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/training/device_contract.h>

namespace treadle::testing {
namespace {

std::unique_ptr<DeviceBackend> make() {
  static const PluginUnderTest kPlugin(TREADLE_PLUGIN_FOLDER);
  return kPlugin.make<DeviceBackend>("cpu");
}

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceContract, ::testing::Values(DeviceCase{"Cpu", make}),
                         CaseName());

TEST(Cpu, IsOneDeviceWithNameAndMemory) {
  const FoundDevices found = make()->find();

  ASSERT_EQ(found.devices.size(), 1U);
  EXPECT_EQ(found.devices[0].device, c10::Device(c10::kCPU));
  EXPECT_NE(found.devices[0].name, "");
  EXPECT_GT(found.devices[0].memory_bytes, std::int64_t{1} << 28);
}

TEST(Cpu, NeedsNoStaging) {
  const at::Tensor tensor = at::ones({3});

  EXPECT_TRUE(make()->staged(tensor).is_same(tensor));
}

}  // namespace
}  // namespace treadle::testing
