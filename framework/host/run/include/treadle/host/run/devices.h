#pragma once

#include <string>
#include <vector>

#include <treadle/core/devices/device_backend.h>
#include <treadle/host/run/runtime.h>

namespace treadle {

/// The devices of this machine.
struct DeviceListing {
  struct Found {
    std::string name;  ///< as documents have it: "cpu", "cuda:0"
    DeviceInfo info;
  };
  struct Absent {
    std::string name;  ///< of the component: "cuda"
    std::string why;   ///< what is missing, and how to get it; or why its plugin cannot be used
  };
  std::vector<Found> found;
  std::vector<Absent> absent;
  std::string preferred;  ///< the device of "auto"; empty where none was found
};

/// Loads every device plugin and lets it look.
DeviceListing list_devices(const Runtime& runtime);

}  // namespace treadle
