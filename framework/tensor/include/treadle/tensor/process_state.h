#pragma once

#include <map>
#include <string>
#include <vector>

namespace treadle {

/// State of the whole process, which a component may not change: a plugin that sets libtorch's
/// default dtype or the locale changes the results of all other components in the run.
///
///     const ProcessState before = ProcessState::now();
///     …
///     for (const std::string& change : before.changes_until(ProcessState::now())) …
///
/// Takes tenths of a millisecond; the first call queries libtorch's thread counts, which fixes
/// them. Captures one instant: other threads should be idle.
class ProcessState {
 public:
  static ProcessState now();

  /// One sentence per difference, such as "the working directory was /a and is /b". Threads and
  /// descriptors that have gone since are none: others may have ended theirs.
  std::vector<std::string> changes_until(const ProcessState& later) const;

 private:
  void look_at_libtorch();
  void look_at_this_thread();
  void look_at_files_and_threads();
  void look_at_environment();
  void look_at_signals();

  void set(const std::string& what, std::string value);
  void set(const std::string& what, bool value);
  void set(const std::string& what, int value);

  std::map<std::string, std::string> settings_;  ///< each has one value
  std::map<std::string, std::string> holdings_;  ///< threads and descriptors: more or fewer
};

}  // namespace treadle
