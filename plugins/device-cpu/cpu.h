#pragma once

#include <treadle/base/config.h>
#include <treadle/core/devices/device_backend.h>

namespace treadle::device_cpu {

/// `cpu`: one device, always there. libtorch does not count the memory of tensors on a CPU, so what
/// the process has taken stands for it.
class Cpu final : public DeviceBackend {
 public:
  explicit Cpu(const Config&) {}

 private:
  FoundDevices do_find() const override;
  DeviceMemory do_memory(c10::Device device) const override;
  void do_reset_peak(c10::Device device) const override;
  // An operator has done its work when it returns.
  void do_synchronize(c10::Device) const override {}
};

}  // namespace treadle::device_cpu
