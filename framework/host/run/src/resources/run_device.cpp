#include "resources/run_device.h"

#include <optional>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/problem.h>
#include <treadle/host/catalog/device_name.h>

#include "resources/device_candidates.h"
#include "resources/mebibytes.h"

// Devices are looked for once, when the document's components are made, and not while it is
// checked: that would load plugins, and a document is written on other machines than it is run on.

namespace treadle::internal {
namespace {

constexpr const char* kSlot = "/resources/device";

RunDevice chosen(std::shared_ptr<const DeviceBackend> backend, const std::string& component,
                 const FoundDevices& found, std::size_t index) {
  const DeviceInfo& info = found.devices[index];
  return {std::move(backend), info, device_name(component, info, index),
          info.device.is_cpu() ? component : component + " (" + info.name + ")"};
}

[[noreturn]] void refuse(const ResolvedWorkflow& workflow, const std::string& why) {
  throw DocumentError({Problem{workflow.document->place_of(kSlot), kSlot, why}});
}

RunDevice device_named(const Runtime& runtime, const ResolvedWorkflow& workflow,
                       const DeviceName& name) {
  std::shared_ptr<const DeviceBackend> backend =
      runtime.registry().make<DeviceBackend>(name.component);
  const FoundDevices found = backend->find();
  const auto index = static_cast<std::size_t>(name.index.value_or(0));
  if (found.devices.empty()) {
    refuse(workflow, "there is no device " + quote_text(name.component) + " here: " +
                         found.why_none + "; \"workflow-runner devices\" lists what there is");
  }
  if (index >= found.devices.size()) {
    const std::string count = std::to_string(found.devices.size());
    refuse(workflow, "there is no device " + std::to_string(index) + " of " +
                         quote_text(name.component) + ": it has " + count +
                         (found.devices.size() == 1 ? " device" : " devices") + ", counted from 0");
  }
  return chosen(std::move(backend), name.component, found, index);
}

}  // namespace

RunDevice find_device(const Runtime& runtime, const ResolvedWorkflow& workflow) {
  const auto text = workflow.resolved.at("resources").at("device").get<std::string>();
  const std::optional<DeviceName> name = parse_device_name(text);
  if (!name)
    refuse(workflow, "expected \"auto\" or a device, got " + quote_text(text));
  if (!name->is_auto())
    return device_named(runtime, workflow, *name);
  const std::vector<DeviceCandidate> all = device_candidates(runtime);
  const DeviceCandidate* const best = preferred_device(all);
  if (best == nullptr) {
    refuse(workflow,
           "no plugin offers a device, not even the CPU; put the plugin device-cpu beside the "
           "others, or name its folder with --plugin-dir");
  }
  RunDevice device = chosen(best->backend, best->component, best->found, 0);
  for (const DeviceCandidate& candidate : all) {
    if (!candidate.why_unusable.empty())
      device.unusable.push_back(candidate.component + ": " + candidate.why_unusable);
  }
  return device;
}

void refuse_memory(const RunDevice& device, const c10::OutOfMemoryError& error) {
  const std::string text = error.what_without_backtrace();
  const DeviceMemory memory = device.backend->memory(device.device());
  const std::string all =
      device.info.memory_bytes > 0 ? " of " + mebibytes(device.info.memory_bytes) : std::string();
  throw TrainingError(
      "the memory of " + device.name + " (" + device.info.name +
      ") does not suffice: " + text.substr(0, text.find('\n')) + "; " + mebibytes(memory.in_use) +
      all + " are in use here, " + mebibytes(memory.available) +
      " are available. Lower training.batch_size or training.evaluation_batch_size, "
      "split batches with {\"use\": \"accumulate\"} in training.gradients, train "
      "fewer folds at once with resources.workers, or choose another device");
}

void expect_working(const RunDevice& device, const std::exception& error) {
  try {
    device.backend->synchronize(device.device());
  } catch (const Error& failure) {
    throw TrainingError(std::string(failure.what()) + "; it showed as: " + error.what());
  }
}

}  // namespace treadle::internal
