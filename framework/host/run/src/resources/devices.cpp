#include <treadle/host/run/devices.h>

#include <treadle/base/error.h>

#include "resources/device_candidates.h"

namespace treadle::internal {

std::vector<DeviceCandidate> device_candidates(const Runtime& runtime) {
  std::vector<DeviceCandidate> all;
  for (const std::string& component : runtime.registry().names<DeviceBackend>()) {
    DeviceCandidate& candidate = all.emplace_back(DeviceCandidate{component, nullptr});
    try {
      candidate.backend = runtime.registry().make<DeviceBackend>(component);
      candidate.found = candidate.backend->find();
    } catch (const PluginError& error) {
      candidate.why_unusable = error.what();
    }
  }
  return all;
}

const DeviceCandidate* preferred_device(const std::vector<DeviceCandidate>& all) {
  const DeviceCandidate* best = nullptr;
  for (const DeviceCandidate& candidate : all) {
    if (candidate.found.devices.empty())
      continue;
    if (!candidate.found.devices.front().device.is_cpu())
      return &candidate;
    if (best == nullptr)
      best = &candidate;
  }
  return best;
}

std::string device_name(const std::string& component, const DeviceInfo& info, std::size_t index) {
  return info.device.has_index() ? component + ":" + std::to_string(index) : component;
}

}  // namespace treadle::internal

namespace treadle {

DeviceListing list_devices(const Runtime& runtime) {
  const std::vector<internal::DeviceCandidate> all = internal::device_candidates(runtime);
  DeviceListing listing;
  for (const internal::DeviceCandidate& candidate : all) {
    const std::vector<DeviceInfo>& devices = candidate.found.devices;
    for (std::size_t i = 0; i < devices.size(); ++i)
      listing.found.push_back(
          {internal::device_name(candidate.component, devices[i], i), devices[i]});
    if (devices.empty()) {
      listing.absent.push_back({candidate.component, candidate.why_unusable.empty()
                                                         ? candidate.found.why_none
                                                         : candidate.why_unusable});
    }
  }
  if (const internal::DeviceCandidate* const best = internal::preferred_device(all))
    listing.preferred = internal::device_name(best->component, best->found.devices.front(), 0);
  return listing;
}

}  // namespace treadle
