#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace treadle {

/// The use of a device by a run beside computing there: copies, waits, memory, and for how long
/// the device had a step to work on. Nothing is counted on a CPU. Any thread may add.
class DeviceUse {
 public:
  struct Totals {
    std::int64_t copies_to_device = 0;
    std::int64_t bytes_to_device = 0;
    std::int64_t copies_to_host = 0;  ///< the host waits for each
    std::int64_t bytes_to_host = 0;
    std::int64_t waits = 0;            ///< times that the host waited; copies to it are among them
    std::int64_t memory_peak = 0;      ///< bytes, the most that tensors took
    std::int64_t memory_reserved = 0;  ///< bytes, the most that was kept from the system
    double busy_seconds = 0;           ///< from the beginning of a step to its end, on the device
    double idle_seconds = 0;           ///< between the steps of an epoch

    /// Of the epochs' time; 0 where nothing was measured.
    double idle_fraction() const {
      const double all = busy_seconds + idle_seconds;
      return all > 0 ? idle_seconds / all : 0;
    }
  };

  void count_sent(std::int64_t copies, std::int64_t bytes) {
    copies_to_device_ += copies;
    bytes_to_device_ += bytes;
  }
  /// Copies to the host; each is a wait.
  void count_fetched(std::int64_t copies, std::int64_t bytes) {
    copies_to_host_ += copies;
    bytes_to_host_ += bytes;
    waits_ += copies;
  }
  /// Numbers that were read one by one; the end of all work that was waited for.
  void count_waits(std::int64_t waits) { waits_ += waits; }

  /// Keeps the largest. What tensors took was reserved then, even if it no longer is.
  void note_memory(std::int64_t peak, std::int64_t reserved) {
    keep_larger(memory_peak_, peak);
    keep_larger(memory_reserved_, std::max(peak, reserved));
  }

  /// Of the steps of one epoch of one training.
  void add_epoch(double busy_seconds, double idle_seconds) {
    busy_nanoseconds_ += static_cast<std::int64_t>(1e9 * busy_seconds);
    idle_nanoseconds_ += static_cast<std::int64_t>(1e9 * idle_seconds);
  }

  Totals totals() const {
    return {copies_to_device_,
            bytes_to_device_,
            copies_to_host_,
            bytes_to_host_,
            waits_,
            memory_peak_,
            memory_reserved_,
            1e-9 * static_cast<double>(busy_nanoseconds_),
            1e-9 * static_cast<double>(idle_nanoseconds_)};
  }

 private:
  using Count = std::atomic<std::int64_t>;

  static void keep_larger(Count& kept, std::int64_t value) {
    std::int64_t before = kept;
    while (before < value && !kept.compare_exchange_weak(before, value))
      continue;
  }

  Count copies_to_device_ = 0;
  Count bytes_to_device_ = 0;
  Count copies_to_host_ = 0;
  Count bytes_to_host_ = 0;
  Count waits_ = 0;
  Count memory_peak_ = 0;
  Count memory_reserved_ = 0;
  Count busy_nanoseconds_ = 0;
  Count idle_nanoseconds_ = 0;
};

}  // namespace treadle
