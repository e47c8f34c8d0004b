#pragma once

#include <memory>
#include <string>

#include <treadle/core/device_backend.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// The device that models are trained on, with what it takes to use it.
struct RunDevice {
  std::shared_ptr<const DeviceBackend> backend;
  DeviceInfo info;
  std::string name;  ///< as a document names it: "cpu", "cuda:0"
  std::string kind;  ///< what bits depend on: "cpu", "cuda (NVIDIA H100 80GB HBM3)"

  c10::Device device() const { return info.device; }
};

/// The device that a document calls `text`. "auto" is the first that is not a CPU, of the first
/// plugin that finds one, else the CPU. Throws a DocumentError at /resources/device, with what was
/// found instead, where this machine has no such device.
RunDevice find_device(const Runtime& runtime, const ResolvedWorkflow& workflow);

}  // namespace treadle::internal
