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

namespace treadle::internal {

/// What a journal has of a trial. Values are in the direction of the document.
struct JournaledTrial {
  /// Where one of its jobs ended.
  struct Job {
    bool is_paused = false;
    std::int64_t epoch = 0;  ///< the last one it was judged after
    double seconds = 0;      ///< of one worker
    std::int64_t number = 0;
  };

  nlohmann::json params;  ///< as SearchSpace::to_json() has them
  std::vector<IntermediateValue> intermediate;
  std::vector<Job> jobs;
  TrialState state = TrialState::kRunning;  ///< once it has ended
  std::vector<double> values;
  std::vector<double> constraints;
  std::string error;
};

/// How a trial stood when a job ended.
struct JobEnd {
  std::int64_t job = 0;
  std::int64_t trial = 0;
  TrialState state = TrialState::kComplete;
  std::int64_t epoch = 0;  ///< the last one it was judged after
  std::vector<double> values = {};
  std::vector<double> constraints = {};
  std::string error = {};
  double seconds = 0;  ///< of one worker, in this job
  double elapsed = 0;  ///< of the search
};

/// The last training of a search, with the document of a trial.
struct LastTraining {
  std::int64_t trial = 0;
  /// Where the search has a time budget: it has as long as was expected when it began, also behind
  /// the end of the budget. In seconds of StudyJournal::elapsed().
  std::optional<double> until = {};
};

/// search.journal of a run's folder: what its trials came to, line by line, in the format of
/// Optuna's journal storage, so that its dashboard and its tools read it:
///
///     JournalStorage(JournalFileStorage("search.journal"))
///
/// Paused trials are running ones there. What Optuna has no place for is in attributes called
/// "treadle:…". A search that goes on reads what it knows already; what is missing at the end of a
/// journal is trained again, with the same bits, so lines are not synced one by one.
///
/// Not thread-safe. All calls throw StorageError for what cannot be written.
class StudyJournal {
 public:
  /// `identity` is what studies must have in common to be the same: of another one, and for a line
  /// that is none, a StorageError says what to do. A last line that was cut off is taken back.
  StudyJournal(std::filesystem::path path, const std::string& name, const SearchSpace& space,
               const std::vector<bool>& maximizes, const nlohmann::json& identity);

  /// Of earlier processes, by number.
  const std::vector<JournaledTrial>& earlier() const { return trials_; }
  /// How many jobs those have ended.
  std::int64_t earlier_jobs() const { return jobs_; }
  /// Wall time that earlier processes have searched for, or trained last.
  double elapsed() const { return elapsed_; }
  /// How an earlier process ended the search early; null: it did not.
  const nlohmann::json& ended() const { return ended_; }
  /// Of this process or an earlier one; nothing before it has begun.
  const std::optional<LastTraining>& last_training() const { return last_training_; }
  /// Trials whose last training has failed.
  const std::vector<std::int64_t>& failed_last_trainings() const { return failed_last_; }

  // What the journal has already is not written again.
  void started(std::int64_t trial, const SearchSpace& space, const Point& point);
  void reported(std::int64_t trial, const IntermediateValue& value);
  void job_ended(const JobEnd& end);
  /// Wall time of the search so far, which a search that goes on has behind it.
  void searched_for(double elapsed);
  void search_ended(const nlohmann::json& how);
  void trains_last(const LastTraining& last);
  void last_training_failed(std::int64_t trial);
  /// Takes back that the search has ended, and its last training: what reads it next goes on.
  void reopen();

 private:
  void read(const nlohmann::json& identity);
  void apply(const nlohmann::json& line, const std::string& place);
  void apply_attributes(const nlohmann::json& attributes, JournaledTrial& trial,
                        const std::string& place);
  static void add_value(JournaledTrial& trial, const nlohmann::json& step, double value,
                        const std::string& place);
  JournaledTrial& trial_in(const nlohmann::json& line, const std::string& place);
  bool has_all_values(const JournaledTrial& trial) const;
  void append(int operation, nlohmann::json fields);

  const std::filesystem::path path_;
  const SearchSpace& space_;
  const std::size_t objectives_;
  const std::string worker_;
  std::vector<JournaledTrial> trials_;       // of earlier processes
  std::vector<std::int64_t> last_reported_;  // of all trials: the last epoch that is written
  nlohmann::json identity_;                  // of the journal; null: it is new
  nlohmann::json ended_;
  std::optional<LastTraining> last_training_;
  std::vector<std::int64_t> failed_last_;
  double elapsed_ = 0;
  std::int64_t jobs_ = 0;
  std::optional<AppendFile> file_;
};

}  // namespace treadle::internal
