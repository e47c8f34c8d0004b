#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <treadle/host/record/history_file.h>
#include <treadle/host/run/run_folder.h>

#include "events/event_dispatcher.h"
#include "events/event_log.h"
#include "events/run_observers.h"

namespace treadle::internal {

/// Writes history.csv as epochs end.
class HistoryWriter final : public RunObserver {
 public:
  explicit HistoryWriter(HistoryFile& file) : file_(file) {}

 private:
  void do_epoch_completed(const FitId& fit, const EpochSummary& epoch) override {
    file_.add(fit.path(), epoch);
  }

  HistoryFile& file_;
};

/// All observers of a run, its own files first: history.csv and events.jsonl. Thread-safe.
class RunLog {
 public:
  /// `observers` are the document's; `listeners` are not owned.
  RunLog(const RunFolder& folder, const std::vector<RunObserver*>& listeners,
         std::vector<std::unique_ptr<RunObserver>> observers);

  /// A further observer, of the events from now on. Not owned.
  void add(RunObserver& observer);
  /// When it has received all events so far.
  void remove(const RunObserver& observer);

  void notify(EventDispatcher::Call call) { dispatcher_.notify(std::move(call)); }
  void note(const std::string& text);
  /// True for the first call with this `subject`, so that a note which every training would make is
  /// made once.
  bool is_first_of(const std::string& subject);
  EventDispatcher& dispatcher() { return dispatcher_; }

  // The files. All events are in them after drain().
  void drain() { dispatcher_.drain(); }
  /// Drops what a fit did after `epochs` epochs: it will be done again.
  void cut_back(const std::string& fit, std::int64_t epochs);
  /// The history of a fit up to an epoch, as a file of its own.
  std::string rows_of(const std::string& fit, std::int64_t epochs);
  /// The same, and all of history.csv survives a power failure.
  std::string saved_rows_of(const std::string& fit, std::int64_t epochs);
  /// Puts rows_of() back where they were lost, which is noted; `place` is where they were kept.
  void restore(const std::string& fit, const std::string& rows, const std::string& place);
  /// The same for rows that another process has written.
  void take_over(const std::string& fit, const std::string& rows);
  /// The rows of a fit, oldest first.
  std::vector<EpochSummary> epochs_of(const std::string& fit);
  /// Puts history.csv into the order of `fits`; other rows are damage.
  void finish(const std::vector<std::string>& fits);
  std::vector<TrainingCurve> curves(const std::vector<std::string>& fits);
  std::string started_at();

 private:
  const std::string history_path_;
  HistoryFile history_;
  HistoryWriter history_writer_{history_};
  EventLog events_;
  std::vector<std::unique_ptr<RunObserver>> owned_;
  RunObservers observers_;
  std::mutex mutex_;
  std::set<std::string> noted_;  // subjects
  EventDispatcher dispatcher_;   // last: its thread uses the others
};

}  // namespace treadle::internal
