#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/run/runtime.h>

/// Runs in processes of their own, forked from one that has libtorch and the plugins loaded and has
/// never started a thread: a run may be killed, may crash or hang, and costs no start-up.
namespace treadle::testing {

/// How a child ended.
struct Ending {
  enum class Kind {
    kDone,
    kRefused,      ///< an error that a document, data or a training may end with
    kInterrupted,  ///< stopped as it was asked to
    kKilled,       ///< by SIGKILL, which it sent to itself
    kFailed        ///< crashed, hung, or threw anything else
  };
  Kind kind = Kind::kFailed;
  std::string text;  ///< what the work returned, or the error
};

/// A forked process that does some work and returns text.
class Child {
 public:
  /// Expects to be called where there is one thread.
  Child(const std::function<std::string()>& work, std::chrono::seconds patience);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Ending wait();

 private:
  pid_t id_ = 0;
  int pipe_ = -1;
  std::chrono::steady_clock::time_point until_;
};

/// Threads of this process; a process that forks should have one.
int threads_here();

/// Where a run is broken off: before this step, counted over all trainings of the run.
struct Break {
  std::int64_t step = 1;
  bool is_kill = true;  ///< else the stop of Ctrl-C
};

/// By how many a run is done.
struct Parallelism {
  int workers = 1;
  int processes = 1;            ///< with so many workers each; here threads
  std::string divide = "auto";  ///< what they share, as resources.divide has it

  std::string text() const;
};

/// What a run left behind, by name: all that must be equal between equal runs.
using Remains = std::map<std::string, std::string>;

struct DocumentRun {
  Ending ending;
  // Of one that is done.
  Remains remains;
  int shards = 1;  ///< of its steps
  int fits = 1;    ///< that may run at once
};

/// Offers what a Break needs to the documents of a runtime.
void add_breaks(Runtime& runtime);

class DocumentRuns {
 public:
  static constexpr int kMostProcesses = 4;

  DocumentRuns(const Runtime& runtime, std::filesystem::path folder)
      : runtime_(runtime), folder_(std::move(folder)) {}

  DocumentRun run(nlohmann::json document, Parallelism by);
  /// Broken off at each of the breaks and resumed; nothing where it ended before the first.
  std::optional<DocumentRun> run_with_breaks(
      nlohmann::json document, const std::vector<std::pair<Parallelism, Break>>& breaks,
      Parallelism last);

 private:
  Ending start(const nlohmann::json& document, const std::filesystem::path& output, int processes,
               std::optional<Break> at) const;
  std::filesystem::path new_output();
  static void remove(const std::filesystem::path& output);

  const Runtime& runtime_;
  const std::filesystem::path folder_;
  int runs_ = 0;
};

/// Whether several processes may train a document with whatever they share.
bool is_shareable(const nlohmann::json& document);

/// Steps of all trainings of a run, as its history says.
std::int64_t steps_in(const Remains& remains);

/// The first thing in which two runs differ, in a few lines; empty: none.
std::string difference(const Remains& one, const Remains& other);

/// Only what a key of a document must show up in: weights, history, metrics.
Remains results_in(const Remains& remains);

}  // namespace treadle::testing
