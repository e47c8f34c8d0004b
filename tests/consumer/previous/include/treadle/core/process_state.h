#pragma once

#include <map>
#include <string>
#include <vector>

namespace treadle {

/// What belongs to the whole process and is not a component's to change: a plugin that sets
/// libtorch's default dtype or the locale changes the results of everybody else in the run.
///
///     const ProcessState before = ProcessState::now();
///     …
///     for (const std::string& change : before.changes_until(ProcessState::now())) …
///
/// Takes tenths of a millisecond; the first call makes libtorch settle its thread counts, which
/// asking for them does. Sees one instant: other threads should be idle.
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
