#pragma once

#include <memory>
#include <string>
#include <utility>

#include <c10/util/Exception.h>

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

/// A TrainingError: what was asked for, what there is, and what to lower.
[[noreturn]] void refuse_memory(const RunDevice& device, const c10::OutOfMemoryError& error);

/// Does work with models on the device. Throws a TrainingError where the memory of it runs out.
template <typename Work>
decltype(auto) within_memory_of(const RunDevice& device, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const c10::OutOfMemoryError& error) {
    refuse_memory(device, error);
  }
}

}  // namespace treadle::internal
