#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

#include <treadle/base/error.h>
#include <treadle/core/devices/device_backend.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// The device that models are trained on, with what it takes to use it.
struct RunDevice {
  std::shared_ptr<const DeviceBackend> backend;
  DeviceInfo info;
  std::string name;  ///< as a document names it: "cpu", "cuda:0"
  std::string kind;  ///< what bits depend on: "cpu", "cuda (NVIDIA H100 80GB HBM3)"

  /// Plugins that "auto" could not ask, with the reason.
  std::vector<std::string> unusable = {};

  c10::Device device() const { return info.device; }
  /// For PipelineOptions: a CPU trains on the batches where they are gathered.
  const DeviceBackend* staging() const { return info.device.is_cpu() ? nullptr : backend.get(); }
};

/// The device that the document's `resources.device` names. "auto" is the first accelerator, of the
/// first plugin that finds one, else the CPU. Throws a DocumentError at /resources/device where
/// this machine has no such device.
RunDevice find_device(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// Throws a TrainingError: what was asked for, what there is, and what to lower.
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

/// Throws a TrainingError where the device itself has failed, which showed as `error`: what to do.
/// Returns where it works.
void expect_working(const RunDevice& device, const std::exception& error);

/// Does work with models on the device. Where that fails because the device does, whoever called an
/// operator is not to blame: a TrainingError says so.
template <typename Work>
decltype(auto) on_working_device(const RunDevice& device, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const Interrupted&) {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::exception& error) {
    expect_working(device, error);
    throw;
  }
}

}  // namespace treadle::internal
