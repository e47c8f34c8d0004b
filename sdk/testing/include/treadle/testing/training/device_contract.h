#pragma once

#include <functional>
#include <memory>
#include <string>

#include <treadle/core/devices/device_backend.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/component/contract_suite.h>

/// What every DeviceBackend must keep. Include in one source file of a test program:
///
///     INSTANTIATE_TEST_SUITE_P(Devices, DeviceContract, ::testing::Values(
///         DeviceCase{"Cuda", [] { return plugin().make<DeviceBackend>("cuda"); }}),
///         CaseName());
///
/// Claims about a device are skipped, with the reason that the backend gives, where there is none.
namespace treadle::testing {

struct DeviceCase {
  std::string name;
  std::function<std::unique_ptr<DeviceBackend>()> make;
  /// How far trainings may be from those of tensors on a CPU, relative and absolute; 0: the same
  /// bits.
  double tolerance = 0;
  /// Whether memory() counts tensors to the byte, as an allocator does, and no other memory.
  bool counts_tensors = false;
};

class DeviceContract : public ::testing::TestWithParam<DeviceCase> {
 protected:
  /// Skips claims where there is no device.
  void SetUp() override;
};
TREADLE_LINK_CLAIMS(DeviceContract);

}  // namespace treadle::testing
