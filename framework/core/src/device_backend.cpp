#include <treadle/core/device_backend.h>

#include <treadle/base/error.h>
#include <treadle/core/plugin_call.h>

namespace treadle {

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

void DeviceBackend::release_unused(c10::Device device) const {
  call_plugin(*this, "release_unused", [&] { do_release_unused(device); });
}

void DeviceBackend::synchronize(c10::Device device) const {
  call_plugin(*this, "synchronize", [&] { do_synchronize(device); });
}

}  // namespace treadle
