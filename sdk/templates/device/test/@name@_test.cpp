#include <treadle/sdk.h>

#include <treadle/testing/training/device_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace {

using namespace treadle::testing;

std::unique_ptr<treadle::DeviceBackend> make() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<treadle::DeviceBackend>("@name@");
}

// What every device keeps: copies, streams, memory, and a training with the bits of tensors on a
// CPU.
INSTANTIATE_TEST_SUITE_P(@Name@, DeviceContract, ::testing::Values(DeviceCase{"@Name@", make}),
                         CaseName());

TEST(@Name@, IsOneDevice) {
  const treadle::FoundDevices found = make()->find();

  ASSERT_EQ(found.devices.size(), 1U);
  EXPECT_EQ(found.devices[0].name, "the CPU of this container");
}

TEST(@Name@, KnowsTheMemoryOfTheProcess) {
  const treadle::DeviceMemory memory = make()->memory(c10::kCPU);

  EXPECT_GT(memory.in_use, 0);
  EXPECT_GE(memory.peak, memory.in_use);
}

}  // namespace
