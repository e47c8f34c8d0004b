#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/devices/device_backend.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// A device component with the devices that its plugin found.
struct DeviceCandidate {
  std::string component;
  std::shared_ptr<const DeviceBackend> backend;
  FoundDevices found = {};
  std::string why_unusable = {};  ///< the error of a plugin that could not be loaded
};

/// Loads every device plugin.
std::vector<DeviceCandidate> device_candidates(const Runtime& runtime);

/// The candidate of "auto": the first with an accelerator, else the CPU. Null where none was found.
const DeviceCandidate* preferred_device(const std::vector<DeviceCandidate>& all);

/// "cpu", "cuda:0": with its number where the device has one.
std::string device_name(const std::string& component, const DeviceInfo& info, std::size_t index);

}  // namespace treadle::internal
