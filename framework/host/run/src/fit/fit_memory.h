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
/// there is.
///
/// Where there is plenty, no training waits until the one before has been measured: short ones
/// would do little else. All from any thread.
class FitMemory {
 public:
  using Note = std::function<void(const std::string&)>;

  /// `note` hears once when a training has to wait, and once when one takes more than there is.
  FitMemory(MemoryGauge gauge, Note note);

  /// A training begins: what the process has before it. Until it has settled no other begins,
  /// unless there is plenty.
  std::int64_t begin() const { return gauge_.in_use(); }
  /// It has made its first steps. What others have taken meanwhile counts as well.
  void settle(std::int64_t before);
  bool fits();
  /// Whether all that the process has, and the greediest training, would fit kPlenty times into
  /// what is left. Not before one has settled.
  bool is_plenty() const;

 private:
  const MemoryGauge gauge_;
  const Note note_;
  static constexpr std::int64_t kPlenty = 8;

  mutable std::mutex mutex_;
  std::optional<std::int64_t> taken_;  // the most that one took
  bool noted_ = false;
  bool noted_excess_ = false;
};

}  // namespace treadle::internal
