#pragma once

#include <memory>
#include <string>

#include <treadle/core/devices/device_backend.h>

#include "far_operators.h"
#include "watched_runs.h"

/// Whole runs on the far device, and what they cost there.
namespace treadle::testing {

/// With the far device among its plugins, known to libtorch before the first backward pass.
inline Runtime& far_runtime() {
  static Runtime* const kRuntime = [] {
    RuntimeOptions options;
    options.plugin_dirs = {build_folder() / "tests/far_device/plugins", test_plugins()};
    auto* const runtime = new Runtime(options);
    runtime->registry().make<DeviceBackend>("far")->find();
    return runtime;
  }();
  return *kRuntime;
}

/// `document` on "far", or on "near", the CPU by the same tensor operations.
inline nlohmann::json on(const std::string& device, nlohmann::json document, int workers = 1) {
  document["treadle"] = 1;
  document["resources"]["device"] = device;
  document["resources"]["workers"] = workers;
  return document;
}

inline RunOutcome run(const nlohmann::json& document, const Workspace& workspace) {
  return run_workflow(far_runtime(), far_runtime().resolve(document), workspace.options());
}

/// Weights, history, and what was measured at the end.
inline std::string all_bits(const RunOutcome& outcome) {
  return bits_of(outcome.folder) + to_json(outcome.result).at("metrics").dump();
}

inline DeviceMemory far_memory() {
  const auto far = far_runtime().registry().make<DeviceBackend>("far");
  const c10::Device device = far->find().devices.front().device;
  far->synchronize(device);  // batches copied ahead of a training that has ended
  return far->memory(device);
}

/// Transfers between host and device while it lives.
class FarCrossings {
 public:
  std::int64_t to_host() const { return traffic().to_host - to_host_; }
  std::int64_t to_device() const { return traffic().to_device - to_device_; }
  std::int64_t waits() const { return traffic().waits - waits_; }

 private:
  const far::Traffic& traffic() const { return far_->ask<far::CountsTraffic>()->traffic(); }

  const std::unique_ptr<DeviceBackend> far_ = far_runtime().registry().make<DeviceBackend>("far");
  const std::int64_t to_host_ = traffic().to_host;
  const std::int64_t to_device_ = traffic().to_device;
  const std::int64_t waits_ = traffic().waits;
};

}  // namespace treadle::testing
