#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <treadle/testing/training/device_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_devices {
namespace {

/// The CPU, whose memory is what this object pretends. What a wrong one does otherwise it
/// overrides.
class Plain : public DeviceBackend {
 private:
  FoundDevices do_find() const override {
    return {.devices = {{.device = c10::kCPU, .name = "a CPU", .memory_bytes = 1}}};
  }
  // As if the tensor of a test were always there, and gone when it is asked for the second time.
  DeviceMemory do_memory(c10::Device) const override {
    constexpr std::int64_t kMuch = std::int64_t{64} << 20;
    const bool is_there = calls_++ % 4 == 1;
    const std::int64_t in_use = is_there ? kMuch : 0;
    return {.in_use = in_use, .peak = calls_ % 4 == 0 ? 0 : kMuch, .reserved = in_use};
  }
  void do_reset_peak(c10::Device) const override {}
  void do_synchronize(c10::Device) const override {}

  mutable std::atomic<int> calls_ = 0;
};

class Nameless final : public Plain {
  FoundDevices do_find() const override {
    return {.devices = {{.device = c10::kCPU, .memory_bytes = 1}}};
  }
};

class Growing final : public Plain {
  FoundDevices do_find() const override {
    static std::atomic<int> count = 0;
    return {.devices = {{.device = c10::kCPU, .name = std::to_string(++count)}}};
  }
};

class StagesZeros final : public Plain {
  at::Tensor do_staged(const at::Tensor& host) const override { return at::zeros_like(host); }
};

class StagesAgain final : public Plain {
  at::Tensor do_staged(const at::Tensor& host) const override { return host.clone(); }
};

class CountsNothing final : public Plain {
  DeviceMemory do_memory(c10::Device) const override { return {}; }
};

/// Does the work while it records it, and nothing afterwards.
class RecordsNothing final : public Plain {
  class Nothing final : public CapturedWork {
    void replay() override {}
  };
  bool do_can_capture() const override { return true; }
  std::unique_ptr<CapturedWork> do_capture(c10::Device, std::span<const at::Generator>,
                                           const std::function<void()>& work) const override {
    work();
    return std::make_unique<Nothing>();
  }
};

template <typename Device>
DeviceCase one(std::string name) {
  return {std::move(name), [] { return std::make_unique<Device>(); }};
}

std::vector<Wrong<DeviceCase>> all() {
  return {{one<Nameless>("Nameless"), {"DevicesHaveNamesAndAreDistinct"}},
          {one<Growing>("Growing"), {"FindsTheSameDevicesFromAnyThread"}},
          {one<StagesZeros>("StagesZeros"),
           {"StagedTensorsAreEqualAndStayWhereTheyAre", "CopiesToTheDeviceAndBackChangeNothing",
            "AStreamWaitsForTheEventOfAnother", "APipelineHandsOutTheSameBatchesThere"}},
          {one<StagesAgain>("StagesAgain"), {"StagedTensorsAreEqualAndStayWhereTheyAre"}},
          {one<CountsNothing>("CountsNothing"), {"MemoryOfTensorsIsCountedAndGivenBack"}},
          {one<RecordsNothing>("RecordsNothing"),
           {"CapturedWorkIsDoneWhenItIsReplayed", "WorkThatReadsTheDeviceCannotBeCaptured",
            "CapturedTrainingsHaveTheResultOfOthers"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, DeviceContract, ::testing::Values(one<Plain>("Plain")), CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, DeviceContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_devices

std::vector<Defect> device_defects() {
  return defects_of("DeviceContract", wrong_devices::all());
}

}  // namespace treadle::testing
