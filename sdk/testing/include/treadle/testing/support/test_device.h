#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>
#include <c10/core/Device.h>
#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/core/devices/device_backend.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/plugin/installed_plugins.h>
#include <treadle/testing/support/tensor_comparison.h>

/// Contract suites on a device: claims whose names end in OnADevice compare a component there with
/// the same on the CPU. They are skipped unless the environment names a device.
///
///     TREADLE_TEST_DEVICE=cuda build/tests/treadle-plugin-wide-tests --gtest_filter='*OnADevice*'
namespace treadle::testing {

/// The device that TREADLE_TEST_DEVICE names: the first one of the component "cuda" of an installed
/// plugin, or of a plugin in a folder of TREADLE_PLUGIN_PATH. Made once; thread-safe.
class TestDevice {
 public:
  static constexpr const char* kNone =
      "TREADLE_TEST_DEVICE names no device; set it to \"cuda\" to test on a GPU";

  /// Null where the environment names none. Throws a UsageError where that device is not there.
  static const TestDevice* chosen() {
    static const std::unique_ptr<const TestDevice> kChosen = named_by_environment();
    return kChosen.get();
  }

  c10::Device device() const { return device_; }

  at::Tensor moved(const at::Tensor& tensor) const {
    return tensor.defined() ? tensor.to(device_) : tensor;
  }

  /// Whether results there are those of the CPU: the same bits where TREADLE_TEST_TOLERANCE is 0.
  /// By default float64 may differ by 1e-9, float32 by 1e-4, relative or absolute: sums are added
  /// in another order.
  Closeness closeness(at::ScalarType dtype) const {
    const double bound = tolerance_.value_or(dtype == at::kDouble ? 1e-9 : 1e-4);
    return {.relative = bound, .absolute = bound};
  }
  /// Random operators draw the numbers of the CPU.
  bool draws_as_a_cpu() const { return tolerance_ == 0; }

 private:
  TestDevice(c10::Device device, std::optional<double> tolerance)
      : device_(device), tolerance_(tolerance) {}

  static std::unique_ptr<const TestDevice> named_by_environment() {
    const char* const name = std::getenv("TREADLE_TEST_DEVICE");
    if (name == nullptr || *name == '\0')
      return nullptr;
    const auto* const entry = InstalledPlugins::find(DeviceBackend::kInterface, name);
    if (entry == nullptr) {
      throw UsageError("TREADLE_TEST_DEVICE: no plugin has a device \"" + std::string(name) +
                       "\", neither in " + InstalledPlugins::folder().string() +
                       " nor in TREADLE_PLUGIN_PATH; install one, or unset the variable");
    }
    const std::unique_ptr<Component> made = entry->factory(Config(nlohmann::json::object()), {});
    const FoundDevices found = static_cast<const DeviceBackend&>(*made).find();
    if (found.devices.empty()) {
      throw UsageError("TREADLE_TEST_DEVICE: \"" + std::string(name) +
                       "\" is not there: " + found.why_none);
    }
    std::optional<double> tolerance;
    if (const char* const given = std::getenv("TREADLE_TEST_TOLERANCE"))
      tolerance = std::strtod(given, nullptr);
    return std::unique_ptr<const TestDevice>(
        new TestDevice(found.devices.front().device, tolerance));
  }

  c10::Device device_;
  std::optional<double> tolerance_;
};

/// Results by name, on the CPU.
using NamedResults = std::vector<std::pair<std::string, at::Tensor>>;

void add_result(NamedResults& results, std::string name, const at::Tensor& tensor);

/// Expects both to have the same names, and values as close as `allowed` says.
void expect_results(const NamedResults& got, const NamedResults& expected,
                    const Closeness& allowed);

/// Moves a module to a device, and returns what a forward and a backward pass there leave: outputs,
/// gradients of inputs and parameters, buffers. `forward(inputs)` returns the outputs; one that is
/// not on `device` is a failure. Without `has_slopes` there is no backward pass.
template <typename Module, typename Forward>
NamedResults passed_on(c10::Device device, Module& module, const std::vector<at::Tensor>& inputs,
                       const Forward& forward, bool has_slopes) {
  module.to(device);
  std::vector<at::Tensor> there;
  for (const at::Tensor& input : inputs) {
    there.push_back(input.defined() ? input.detach().to(device) : input);
    if (input.defined() && input.is_floating_point())
      there.back().set_requires_grad(has_slopes);
  }
  NamedResults results;
  at::Tensor sum;
  const TaskRandom random(31);
  const std::vector<at::Tensor> outputs = forward(there);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& output = outputs[i];
    if (output.defined() && output.device() != device)
      ADD_FAILURE() << "output " << i << " is on " << output.device() << ", not on " << device;
    add_result(results, "output " + std::to_string(i), output);
    if (!output.defined() || !output.requires_grad())
      continue;
    const TaskRandom same_everywhere(47 + i);
    const at::Tensor weights = at::randn(output.sizes(), at::kDouble).to(output.scalar_type());
    const at::Tensor part = output.mul(weights.to(device)).sum();
    sum = sum.defined() ? sum.add(part) : part;
  }
  if (sum.defined() && has_slopes)
    sum.backward();
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (there[i].defined())
      add_result(results, "gradient of input " + std::to_string(i), there[i].grad());
  }
  for (const auto& parameter : module.named_parameters())
    add_result(results, "gradient of " + parameter.key(), parameter.value().grad());
  for (const auto& buffer : module.named_buffers())
    add_result(results, buffer.key(), buffer.value());
  return results;
}

}  // namespace treadle::testing
