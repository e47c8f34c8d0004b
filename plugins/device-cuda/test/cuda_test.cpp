#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/training/device_contract.h>

namespace treadle::testing {
namespace {

std::unique_ptr<DeviceBackend> make() {
  static const PluginUnderTest kPlugin(TREADLE_PLUGIN_FOLDER);
  return kPlugin.make<DeviceBackend>("cuda");
}

// Products are added in another order than on a CPU.
INSTANTIATE_TEST_SUITE_P(Cuda, DeviceContract,
                         ::testing::Values(DeviceCase{"Cuda", make, /*tolerance=*/1e-9,
                                                      /*counts_tensors=*/true}),
                         CaseName());

TEST(Cuda, SaysWhyThereIsNone) {
  const FoundDevices found = make()->find();

  EXPECT_EQ(found.devices.empty(), !found.why_none.empty());
}

TEST(Cuda, StagesInPageLockedMemory) {
  if (make()->find().devices.empty())
    GTEST_SKIP() << make()->find().why_none;

  EXPECT_TRUE(make()->staged(at::ones({3})).is_pinned());
}

}  // namespace
}  // namespace treadle::testing
