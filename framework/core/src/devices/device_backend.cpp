#include <treadle/core/devices/device_backend.h>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {

CapturedWork::~CapturedWork() = default;
DeviceMark::~DeviceMark() = default;

FoundDevices DeviceBackend::find() const {
  FoundDevices found = call_plugin(*this, "find", [&] { return do_find(); });
  if (found.devices.empty() && found.why_none.empty())
    refuse_result(*this, "find", "found no device, and does not say why");
  return found;
}

at::Tensor DeviceBackend::staged(const at::Tensor& host) const {
  TREADLE_EXPECTS(host.is_cpu(), "only a tensor of the host is staged");
  at::Tensor staged = call_plugin(*this, "staged", [&] { return do_staged(host); });
  if (!staged.defined() || !staged.is_cpu() || staged.sizes() != host.sizes() ||
      staged.scalar_type() != host.scalar_type())
    refuse_result(*this, "staged", "returned another kind of tensor than it was given");
  return staged;
}

DeviceMemory DeviceBackend::memory(c10::Device device) const {
  return call_plugin(*this, "memory", [&] { return do_memory(device); });
}

void DeviceBackend::reset_peak(c10::Device device) const {
  call_plugin(*this, "reset_peak", [&] { do_reset_peak(device); });
}

void DeviceBackend::synchronize(c10::Device device) const {
  call_plugin(*this, "synchronize", [&] { do_synchronize(device); });
}

bool DeviceBackend::can_capture() const {
  return call_plugin(*this, "can_capture", [&] { return do_can_capture(); });
}

std::unique_ptr<CapturedWork> DeviceBackend::capture(c10::Device device,
                                                     std::span<const at::Generator> generators,
                                                     const std::function<void()>& work) const {
  TREADLE_EXPECTS(can_capture(), "the device does not capture work");
  std::unique_ptr<CapturedWork> captured =
      call_plugin(*this, "capture", [&] { return do_capture(device, generators, work); });
  if (!captured)
    refuse_result(*this, "capture", "returned nothing");
  return captured;
}

std::unique_ptr<CapturedWork> DeviceBackend::do_capture(c10::Device, std::span<const at::Generator>,
                                                        const std::function<void()>&) const {
  return nullptr;
}

std::unique_ptr<DeviceMark> DeviceBackend::mark(c10::Device device) const {
  return call_plugin(*this, "mark", [&] { return do_mark(device); });
}

}  // namespace treadle
