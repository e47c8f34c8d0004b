#pragma once

#include <string>

namespace treadle::storages {

/// A moment on the clock that all processes of a machine share: the seconds since it was started,
/// those asleep included (CLOCK_BOOTTIME), and which start that was. Nobody can set this clock, as
/// the wall clock can be, and it begins anew with each boot.
struct BootTime {
  std::string boot;  ///< the kernel's random id of the boot
  double seconds = 0;

  /// Throws StorageError where the kernel's id cannot be read.
  static BootTime now();
};

/// Until when somebody has a job.
struct Lease {
  BootTime until;

  /// Leases of another boot have passed: whoever had them is gone.
  bool has_passed(const BootTime& now) const {
    return until.boot != now.boot || until.seconds <= now.seconds;
  }
};

}  // namespace treadle::storages
