#include <cstdlib>

#include <treadle/base/config.h>
#include <treadle/core/device_backend.h>
#include <treadle/plugin.h>

#include "far_memory.h"
#include "far_operators.h"

namespace {

using namespace treadle;

/// `far`: there once it was asked for. FAR_DEVICE_GONE says why it is not there.
class Far final : public DeviceBackend {
 public:
  explicit Far(const Config&) {}

 private:
  FoundDevices do_find() const override {
    if (const char* why = std::getenv("FAR_DEVICE_GONE"))
      return {.devices = {}, .why_none = why};
    far::install();
    return {.devices = {{.device = c10::Device(far::kType, 0),
                         .name = "a device that is not there",
                         .memory_bytes = far::memory_bytes(),
                         .driver = "protected pages"}}};
  }

  DeviceMemory do_memory(c10::Device) const override {
    const far::Usage now = far::usage();
    return {.in_use = now.in_use,
            .peak = now.peak,
            .reserved = now.in_use,
            .available = far::memory_bytes() - now.in_use};
  }

  void do_reset_peak(c10::Device) const override { far::reset_peak(); }
  void do_synchronize(c10::Device) const override { far::synchronize(); }
};

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
  registrar.add<Far>("far");
  registrar.add<Near>("near");
}
