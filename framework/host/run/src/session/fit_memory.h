#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace treadle::internal {

/// The memory of the process, or of a device.
struct MemoryGauge {
  std::function<std::int64_t()> in_use;                    ///< bytes that this process has
  std::function<std::int64_t()> peak;                      ///< the most it had so far
  std::function<std::optional<std::int64_t>()> available;  ///< bytes that it may still take
  std::string name = "memory";                             ///< in the note
};

/// Decides whether there is memory for one more training beside those that run: for one that takes
/// as much as the greediest so far, and half as much again, since a training goes on taking after
/// its first steps (validation rows, the best weights). Where the system does not say what is left,
/// there is. All from any thread.
class FitMemory {
 public:
  using Note = std::function<void(const std::string&)>;

  /// `note` hears once when a training has to wait.
  FitMemory(MemoryGauge gauge, Note note);

  /// A training begins, and until it has settled no other does.
  void begin();
  /// It has made its first steps.
  void settle();
  bool fits();

 private:
  const MemoryGauge gauge_;
  const Note note_;
  std::mutex mutex_;
  std::int64_t before_ = 0;  // the newest began
  std::int64_t taken_ = 0;   // the most that one took
  bool noted_ = false;
};

}  // namespace treadle::internal
