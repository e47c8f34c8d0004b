#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/atomic_file.h>
#include <treadle/search/search_space.h>
#include <treadle/search/tuner.h>

#include "search/study/job_result.h"

namespace treadle::internal {

/// A trial of a journal.
struct JournaledTrial {
  /// The end of one of its jobs.
  struct Job {
    bool is_paused = false;
    std::int64_t epoch = 0;  ///< the last one after which the pruner evaluated it
    double seconds = 0;      ///< of one worker
    std::int64_t number = 0;
  };

  nlohmann::json params;  ///< in the form of SearchSpace::to_json()
  std::vector<Job> jobs = {};
  JobResult end = {.state = TrialState::kRunning};  ///< of the last job; kRunning: it has none
};

/// The last training of a search, with the document of this trial.
struct LastTraining {
  std::int64_t trial = 0;
  /// Its end, if the search has a time budget: it gets the time expected when it began, even beyond
  /// the budget. In seconds of StudyJournal::elapsed().
  std::optional<double> until = {};
};

/// search.journal of a run's folder: the trials of a search, line by line, in the format of
/// Optuna's journal storage, so that its dashboard and its tools read it:
///
///     JournalStorage(JournalFileStorage("search.journal"))
///
/// Paused trials are running ones in this format, and its values are in the direction of the
/// document; here they are minimized. Attributes called "treadle:…" have the rest. A search that
/// continues reads the known results; those that are missing at the end of a journal are trained
/// again, with the same bits, so lines are not synced one by one.
///
/// Not thread-safe. All calls throw StorageError if the file cannot be written.
class StudyJournal {
 public:
  /// `maximizes`: of each objective, whether the document maximizes it. `identity` is equal for all
  /// processes of a study. Throws StorageError, with the remedy, for the journal of another
  /// identity and for a line of no journal. An incomplete last line is removed. Borrows `space`.
  StudyJournal(std::filesystem::path path, const std::string& name, const SearchSpace& space,
               std::vector<bool> maximizes, const nlohmann::json& identity);

  // Of earlier processes.
  /// The points of the trials, by number.
  std::vector<Point> points() const;
  /// The end of a trial's job that `earlier` others of this trial precede. Nothing: the journal
  /// lacks it. `inherited` are the values that the trial took over from another one.
  std::optional<JobResult> find_end(std::int64_t trial, std::size_t earlier,
                                    const std::vector<IntermediateValue>& inherited) const;
  /// Whether job `job` may cancel a paused trial with `earlier` jobs: either an earlier process did
  /// so, or none has ended as many jobs.
  bool may_cancel(std::int64_t trial, std::size_t earlier, std::int64_t job) const;
  /// Wall time of searching, and of the last training.
  double elapsed() const { return elapsed_; }

  // Of this process or an earlier one.
  /// How the search was ended early, in the form of ended_by_time(); null: it was not.
  const nlohmann::json& ended() const { return ended_; }
  /// Nothing: none has begun.
  const std::optional<LastTraining>& last_training() const { return last_training_; }
  /// The trials whose last trainings failed.
  const std::vector<std::int64_t>& failed_last_trainings() const { return failed_last_; }

  // Lines that the journal already has are not written again.
  void started(std::int64_t trial, const Point& point);
  void reported(std::int64_t trial, const IntermediateValue& value);
  /// The journal must lack the end. `elapsed` is the wall time of the search so far.
  void job_ended(std::int64_t job, const JobResult& result, double elapsed);
  void searched_for(double elapsed);
  void search_ended(const nlohmann::json& how);
  void last_training_began(const LastTraining& last);
  void last_training_failed(std::int64_t trial);
  /// Removes the end of the search and its last training, so that the next process continues it.
  void reopen();

 private:
  void read(const nlohmann::json& identity);
  void apply(const nlohmann::json& line, const std::string& place);
  void apply_attributes(const nlohmann::json& attributes, JournaledTrial& trial,
                        const std::string& place);
  void add_value(JournaledTrial& trial, const nlohmann::json& step, double value,
                 const std::string& place);
  JournaledTrial& trial_in(const nlohmann::json& line, const std::string& place);
  bool has_all_values(const JournaledTrial& trial) const;
  double sign_of(std::size_t objective) const { return maximizes_[objective] ? -1.0 : 1.0; }
  void set_attribute(const char* key, nlohmann::json value);
  void set_attribute(std::int64_t trial, const char* key, nlohmann::json value);
  void append(int operation, nlohmann::json fields);

  const std::filesystem::path path_;
  const SearchSpace& space_;
  const std::vector<bool> maximizes_;
  const std::string worker_;
  std::vector<JournaledTrial> trials_;       // of earlier processes
  std::vector<std::int64_t> last_reported_;  // of all trials: the last epoch that is written
  nlohmann::json identity_;                  // of the journal; null: it is new
  nlohmann::json ended_;
  std::optional<LastTraining> last_training_;
  std::vector<std::int64_t> failed_last_;
  double elapsed_ = 0;
  std::int64_t jobs_ = 0;  // that earlier processes have ended
  std::optional<AppendFile> file_;
};

}  // namespace treadle::internal
