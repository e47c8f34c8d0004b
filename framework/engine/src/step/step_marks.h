#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <c10/core/Device.h>

#include <treadle/core/devices/device_backend.h>
#include <treadle/core/history/timeline.h>

namespace treadle::engine {

/// For how long of an epoch a device had a step of a training to work on, by its own clock: a mark
/// before each step and one behind it, read when the device has come past them. Never waits. Does
/// nothing on a CPU, and for a device without a clock. One training thread.
class StepMarks {
 public:
  /// `backend` is that of `device`; it or `timeline` may be null.
  StepMarks(const DeviceBackend* backend, c10::Device device, Timeline* timeline);

  // Around what is enqueued for a step.
  void begin_step();
  void end_step();

  /// Reads the marks of the steps that the device is done with, and keeps them for steps to come.
  void read();
  /// The same behind the last step of an epoch, whose time goes to the timeline. Expects that the
  /// device has done all steps.
  void end_epoch();

 private:
  using Mark = std::unique_ptr<DeviceMark>;

  Mark recorded();

  const DeviceBackend* const backend_;  // null: nothing is measured
  const c10::Device device_;
  Timeline* const timeline_;

  std::vector<Mark> spare_;
  std::deque<std::pair<Mark, Mark>> steps_;  // not read yet
  Mark begun_;                               // before the epoch's first step; null: none was made
  Timeline::Clock::time_point begun_at_;     // as the host saw it, with nothing enqueued before it
  double busy_seconds_ = 0;                  // of the epoch's steps that were read
  double last_end_ = 0;                      // seconds after begun_
};

}  // namespace treadle::engine
