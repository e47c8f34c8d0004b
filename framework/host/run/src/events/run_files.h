#pragma once

#include <filesystem>
#include <istream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/core/run_observer.h>
#include <treadle/host/run/report.h>

namespace treadle::internal {

class HistoryLine;

/// history.csv: one row an epoch of each training. Rows arrive in whatever order parallel folds
/// finish their epochs; finish() puts them in the order of trainings.
class HistoryFile final : public RunObserver {
 public:
  explicit HistoryFile(std::filesystem::path path);

  /// Drops the rows of `fit` after its epoch `epochs`: a resumed training writes them again.
  void cut_back(const std::string& fit, std::int64_t epochs);
  /// The rows of `fit` up to its epoch `epochs`, as a file of their own: what a checkpoint keeps.
  std::string text_of(const std::string& fit, std::int64_t epochs) const;
  /// Puts back what text_of() gave, where the file has other rows of `fit`; says whether it had.
  bool restore(const std::string& fit, const std::string& text);
  /// Rewrites the file in the order of `fits`; rows of others are damage.
  void finish(const std::vector<std::string>& fits);
  /// Makes the rows so far survive a power failure.
  void sync();
  /// The rows of a file, by training, in the order of their first rows; the file is left as it is.
  static std::vector<ReportInput::Curve> read(const std::filesystem::path& path);
  /// All rows, by training, for the report.
  std::vector<ReportInput::Curve> curves(const std::vector<std::string>& fits) const;

 private:
  struct Row {
    std::string fit;
    EpochSummary summary;
  };
  struct Unopened {};
  HistoryFile(std::filesystem::path path, Unopened) : path_(std::move(path)) {}

  void do_epoch_completed(const FitId& fit, const EpochSummary& summary) override;
  enum class Damage { kIsPassedOver, kIsAnError };
  /// Reads the rows; false when the last line was cut off.
  bool load(std::istream& file, Damage damage);
  Row row_of(const HistoryLine& line, std::size_t columns) const;
  void adopt_columns(const HistoryFile& other);
  void drop_empty_columns();
  void rewrite();
  std::string header() const;
  std::string line(const Row& row) const;

  std::filesystem::path path_;
  std::vector<Row> rows_;
  std::vector<std::pair<std::string, Direction>> metrics_;
  std::vector<std::string> logged_;
  bool has_decisions_ = false;
  std::unique_ptr<AppendFile> file_;
};

/// The summary under the names that history.csv has for its values, and without their directions,
/// which it does not keep.
EpochSummary as_in_history(EpochSummary summary);

/// events.jsonl: everything that happened, as it happened, one JSON object a line.
class EventLog final : public RunObserver {
 public:
  explicit EventLog(const std::filesystem::path& path);

  /// When the run first began, however often it was resumed: "2026-05-04T10:11:12Z"; empty when the
  /// log does not say.
  std::string started_at() const;

  /// Drops what `fit` did after `epochs` epochs.
  void cut_back(const std::string& fit, std::int64_t epochs);

 private:
  void do_run_started(const std::string& name, const std::string& folder) override;
  void do_fit_started(const FitId& fit) override;
  void do_epoch_completed(const FitId& fit, const EpochSummary& summary) override;
  void do_checkpoint_saved(const FitId& fit, const std::string& path) override;
  void do_fit_completed(const FitId& fit, const FitSummary& summary) override;
  void do_noted(const std::string& text) override;
  void do_run_completed(const std::string& folder) override;
  void write(const char* event, const nlohmann::json& content);

  std::filesystem::path path_;
  std::unique_ptr<AppendFile> file_;
};

/// The observers of a run. One call at a time; an observer that throws is reported to the others
/// once and not called again.
class RunObservers {
 public:
  void add(RunObserver& observer) { observers_.push_back({&observer, false}); }

  /// Does something while no observer is being called.
  template <typename Work>
  void between_calls(Work&& work) {
    const std::lock_guard lock(mutex_);
    work();
  }

  template <typename Call>
  void notify(Call&& call) {
    const std::lock_guard lock(mutex_);
    for (Listener& listener : observers_) {
      if (listener.failed)
        continue;
      try {
        call(*listener.observer);
      } catch (const Error& error) {
        // The run's own files are observers too: what they cannot write is an error of the run.
        if (error.kind() == ErrorKind::kStorage)
          throw;
        drop(listener, error.what());
      } catch (const std::exception& error) {
        drop(listener, error.what());
      }
    }
  }

 private:
  struct Listener {
    RunObserver* observer;
    bool failed;
  };
  void drop(Listener& listener, const std::string& reason);

  std::mutex mutex_;
  std::vector<Listener> observers_;
};

nlohmann::json metrics_to_json(const std::vector<MetricValue>& metrics);

}  // namespace treadle::internal
