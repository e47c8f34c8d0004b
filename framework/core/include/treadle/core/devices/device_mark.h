#pragma once

namespace treadle {

/// A place in the work of a device, and the time at which the device came past it, by the device's
/// own clock: how long work took there, for hosts that do not wait. Made by DeviceBackend::mark().
///
/// One thread at a time. Implementations throw a TrainingError for a device that failed.
class DeviceMark {
 public:
  DeviceMark() = default;
  virtual ~DeviceMark();
  DeviceMark(const DeviceMark&) = delete;
  DeviceMark& operator=(const DeviceMark&) = delete;

  /// Moves it behind all that this thread has enqueued so far on its stream for the device.
  virtual void record() = 0;

  /// Whether the device has come past it. Never waits.
  virtual bool has_passed() const = 0;

  /// From when the device came past `earlier`, which it may have done on another stream, until it
  /// came past this one. Expects a mark of the same device, and that both have been passed.
  virtual double seconds_since(const DeviceMark& earlier) const = 0;
};

}  // namespace treadle
