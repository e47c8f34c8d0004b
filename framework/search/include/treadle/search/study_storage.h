#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/component.h>

namespace treadle {

/// What a job of a study came to, as a storage keeps it.
struct StoredResult {
  std::int64_t sequence = 0;  ///< from 1, in the order in which jobs ended in the storage
  std::int64_t job = 0;
  std::string worker;     ///< who made it
  nlohmann::json result;  ///< what the worker gave
};

/// Where processes that work on one study meet: a database, or a file. Named in the document's
/// search, or after `tune --join`.
///
/// All of them decide on the same jobs, since a study is a function of its results. What they share
/// is who does which job, and what it came to. A worker takes a job for a time (a lease), which it
/// prolongs while it works. When it dies, its lease passes and another worker takes the job; when
/// it was only slow, its result comes too late and is not kept. So each job has one result,
/// whatever happens to workers.
///
/// All processes must agree about when a lease has passed: by the clock of the server, or of the
/// one machine they are on (CLOCK_BOOTTIME, and the id of the boot), never by the wall clocks of
/// several.
///
/// A lease that has passed is still its worker's until another one takes the job: the worker may
/// prolong it, and its result counts.
///
/// Each call is atomic and survives a kill of the process and of the storage once it has returned.
/// Throws StorageError for what cannot be reached, read or written, after having tried again for a
/// while where that may help (locked, restarting). One call at a time; objects in several processes
/// and threads may be of the same place. An object is not used on both sides of a fork.
///
/// Studies and workers are called by UTF-8 without NUL. A worker's name is its alone.
class StudyStorage : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.storage/0";

  ~StudyStorage() override;

  /// The names of the studies it has, sorted.
  std::vector<std::string> studies();
  /// Makes a study, unless there is one of this name. Returns the description it has: the given
  /// one, or that of whoever came first.
  nlohmann::json create(const std::string& study, const nlohmann::json& description);
  /// Nothing where there is no such study.
  std::optional<nlohmann::json> description(const std::string& study);

  /// Takes a job for `seconds`. True where it has no result and nobody has it, whoever had it has
  /// let the lease pass, or `worker` has it already.
  bool claim(const std::string& study, std::int64_t job, const std::string& worker, double seconds);
  /// Prolongs the lease: it passes `seconds` from now. False where `worker` does not have the job
  /// any more: another one has taken it, it was given back, or it has a result.
  bool renew(const std::string& study, std::int64_t job, const std::string& worker, double seconds);
  /// Gives a job back without a result: others may take it at once. Nothing where `worker` does not
  /// have it.
  void release(const std::string& study, std::int64_t job, const std::string& worker);
  /// Keeps the result of a job. False, and nothing is kept, where `worker` does not have the job
  /// any more: another one has taken it, it was given back, or it has a result.
  bool finish(const std::string& study, std::int64_t job, const std::string& worker,
              const nlohmann::json& result);
  /// The results behind a sequence number, in their order; 0: all.
  std::vector<StoredResult> results(const std::string& study, std::int64_t after);

  /// Says how the study was ended early; null takes that back. Returns what stands: of several
  /// workers the first counts.
  nlohmann::json end(const std::string& study, const nlohmann::json& how);
  /// What end() was told; null: nothing, or it was taken back.
  nlohmann::json ended(const std::string& study);

 private:
  // Studies exist where a call but the first three names one: the framework has created them.
  virtual std::vector<std::string> do_studies() = 0;
  virtual nlohmann::json do_create(const std::string& study, const nlohmann::json& description) = 0;
  virtual std::optional<nlohmann::json> do_description(const std::string& study) = 0;
  virtual bool do_claim(const std::string& study, std::int64_t job, const std::string& worker,
                        double seconds) = 0;
  virtual bool do_renew(const std::string& study, std::int64_t job, const std::string& worker,
                        double seconds) = 0;
  virtual void do_release(const std::string& study, std::int64_t job,
                          const std::string& worker) = 0;
  virtual bool do_finish(const std::string& study, std::int64_t job, const std::string& worker,
                         const nlohmann::json& result) = 0;
  virtual std::vector<StoredResult> do_results(const std::string& study, std::int64_t after) = 0;
  virtual nlohmann::json do_end(const std::string& study, const nlohmann::json& how) = 0;
  virtual nlohmann::json do_ended(const std::string& study) = 0;
};

}  // namespace treadle
