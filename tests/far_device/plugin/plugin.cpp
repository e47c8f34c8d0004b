#include <treadle/base/config.h>
#include <treadle/core/devices/device_backend.h>
#include <treadle/plugin.h>

#include "far_backend.h"

namespace {

using namespace treadle;

/// `near`: the CPU by the tensor operations that `far` is trained with. Both have the same bits.
class Near final : public DeviceBackend {
 public:
  explicit Near(const Config&) {}

 private:
  FoundDevices do_find() const override {
    return {.devices = {{.device = c10::kCPU, .name = "a CPU", .tensors_only = true}}};
  }
  DeviceMemory do_memory(c10::Device) const override { return {}; }
  void do_reset_peak(c10::Device) const override {}
  void do_synchronize(c10::Device) const override {}
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<far::Far, DeviceBackend>("far");
  registrar.add<Near>("near");
}
