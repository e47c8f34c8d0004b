#include "events/run_log.h"

namespace treadle::internal {

RunLog::RunLog(const RunFolder& folder, const std::vector<RunObserver*>& listeners,
               std::vector<std::unique_ptr<RunObserver>> observers)
    : history_path_(folder.history().string()),
      history_(folder.history()),
      events_(folder.events()),
      owned_(std::move(observers)),
      dispatcher_(observers_) {
  observers_.add_file(history_writer_);
  observers_.add_file(events_);
  for (RunObserver* listener : listeners)
    observers_.add(*listener);
  for (const auto& observer : owned_)
    observers_.add(*observer);
}

void RunLog::add(RunObserver& observer) {
  drain();
  observers_.between_calls([&] { observers_.add(observer); });
}

void RunLog::remove(const RunObserver& observer) {
  dispatcher_.settle();
  observers_.between_calls([&] { observers_.remove(observer); });
}

void RunLog::note(const std::string& text) {
  notify([text](RunObserver& o) { o.noted(text); });
}

bool RunLog::is_first_of(const std::string& subject) {
  const std::lock_guard lock(mutex_);
  return noted_.insert(subject).second;
}

void RunLog::cut_back(const std::string& fit, std::int64_t epochs) {
  observers_.between_calls([&] {
    history_.cut_back(fit, epochs);
    events_.cut_back(fit, epochs);
  });
}

std::string RunLog::rows_of(const std::string& fit, std::int64_t epochs) {
  std::string rows;
  observers_.between_calls([&] { rows = history_.text_of(fit, epochs); });
  return rows;
}

std::string RunLog::saved_rows_of(const std::string& fit, std::int64_t epochs) {
  std::string rows;
  observers_.between_calls([&] {
    history_.sync();
    rows = history_.text_of(fit, epochs);
  });
  return rows;
}

void RunLog::restore(const std::string& fit, const std::string& rows, const std::string& place) {
  bool is_mended = false;
  observers_.between_calls([&] { is_mended = history_.restore(fit, rows); });
  if (is_mended) {
    note(history_path_ + ": the rows of " + fit + " were lost or changed, and are restored from " +
         place);
  }
}

void RunLog::take_over(const std::string& fit, const std::string& rows) {
  observers_.between_calls([&] { history_.restore(fit, rows); });
}

std::vector<EpochSummary> RunLog::epochs_of(const std::string& fit) {
  std::vector<TrainingCurve> curves = this->curves({fit});
  return curves.empty() ? std::vector<EpochSummary>() : std::move(curves.front().epochs);
}

void RunLog::finish(const std::vector<std::string>& fits) {
  observers_.between_calls([&] { history_.finish(fits); });
}

std::vector<TrainingCurve> RunLog::curves(const std::vector<std::string>& fits) {
  std::vector<TrainingCurve> curves;
  observers_.between_calls([&] { curves = history_.curves(fits); });
  return curves;
}

std::string RunLog::started_at() {
  std::string time;
  observers_.between_calls([&] { time = events_.started_at(); });
  return time;
}

}  // namespace treadle::internal
