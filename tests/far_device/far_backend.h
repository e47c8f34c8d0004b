#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/core/devices/device_backend.h>

#include "far_memory.h"
#include "far_operators.h"

namespace treadle::far {

/// By the host's clock, since the device does its work at once. As strict as a device that works by
/// itself: only a wait, or a copy to the host, tells the host that it has been passed.
class FarMark final : public DeviceMark {
 public:
  void record() override {
    recorded_ = Clock::now();
    waits_ = all_waits();
  }
  bool has_passed() const override { return recorded_ && all_waits() > waits_; }
  double seconds_since(const DeviceMark& earlier) const override {
    const auto& other = static_cast<const FarMark&>(earlier);
    TREADLE_EXPECTS(has_passed() && other.has_passed(), "a mark is read that was not passed yet");
    return std::chrono::duration<double>(*recorded_ - *other.recorded_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;

  static std::int64_t all_waits() { return far::traffic().waits + far::traffic().to_host; }

  std::optional<Clock::time_point> recorded_;
  std::int64_t waits_ = 0;
};

/// `far`: there once it was asked for. FAR_DEVICE_GONE is why it is not there, FAR_DEVICE_BROKEN
/// what it fails with when it is looked for.
class Far final : public DeviceBackend, public CountsTraffic {
 public:
  explicit Far(const Config&) {}

  const Traffic& traffic() const override { return far::traffic(); }

 private:
  FoundDevices do_find() const override {
    if (const char* failure = std::getenv("FAR_DEVICE_BROKEN"))
      throw PluginError(failure);
    if (const char* why = std::getenv("FAR_DEVICE_GONE"))
      return {.devices = {}, .why_none = why};
    far::install();
    return {.devices = {{.device = c10::Device(far::kType, 0),
                         .name = "a device that is not there",
                         .memory_bytes = far::memory_bytes(),
                         .driver = "protected pages"}}};
  }

  DeviceMemory do_memory(c10::Device) const override {
    const far::Usage now = far::usage();
    return {.in_use = now.in_use,
            .peak = now.peak,
            .reserved = now.in_use,
            .available = far::memory_bytes() - now.in_use};
  }

  void do_reset_peak(c10::Device) const override { far::reset_peak(); }
  void do_synchronize(c10::Device) const override { far::synchronize(); }
  bool do_can_capture() const override { return true; }
  std::unique_ptr<CapturedWork> do_capture(c10::Device, std::span<const at::Generator>,
                                           const std::function<void()>& work) const override {
    return far::capture(work);
  }
  std::unique_ptr<DeviceMark> do_mark(c10::Device) const override {
    return std::make_unique<FarMark>();
  }
  void* do_ask(std::string_view interface_id) override {
    return interface_id == CountsTraffic::kInterface ? static_cast<CountsTraffic*>(this) : nullptr;
  }
};

}  // namespace treadle::far
