#include <treadle/host/compare/run_records.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <string_view>
#include <system_error>

#include <treadle/base/error.h>
#include <treadle/base/json_text.h>
#include <treadle/host/record/history_file.h>

#include "json_member.h"

namespace treadle::compare {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Null for a file that is not there, or not complete JSON.
Json json_of(const fs::path& path) {
  std::ifstream file(path);
  if (!file)
    return {};
  Json value = parse_json(file);
  return value.is_discarded() ? Json() : value;
}

/// Whether a process works on the run: it holds the lock of the folder. Asked only for runs that
/// have no result; a shared lock for an instant does not end anybody's run.
bool is_locked(const fs::path& folder) {
  const int file = ::open((folder / ".lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  const bool locked = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  return locked;
}

/// Of its last epoch: counts, and the first metric, else the loss.
void read_progress(const fs::path& folder, RunRecord& record) {
  const std::vector<HistoryRow> rows =
      HistoryFile::read(folder / "history.csv", HistoryFile::Damage::kIsPassedOver);
  if (rows.empty())
    return;
  const EpochSummary& last = rows.back().epoch;
  record.epochs = last.epoch;
  record.planned_epochs = last.epochs.value_or(0);
  record.metric = last.metrics.empty() ? "loss" : last.metrics.front().name;
  record.metric_value =
      last.metrics.empty() ? last.val_loss.value_or(last.train_loss) : last.metrics.front().value;
}

std::optional<double> time_in(const std::string& line) {
  const Json event = parse_json(line);
  const Json& time = event.is_discarded() ? Json() : member(event, "time");
  return time.is_number() ? std::optional(time.get<double>()) : std::nullopt;
}

/// When the first and the last event were.
void read_times(RunRecord& record) {
  std::ifstream file(record.folder / "events.jsonl");
  std::string line;
  std::optional<double> last;
  while (std::getline(file, line)) {
    const std::optional<double> time = time_in(line);
    if (!time)
      continue;
    if (!record.started)
      record.started = time;
    last = time;
  }
  if (last && record.started)
    record.seconds = *last - *record.started;
}

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "workflow.json", error);
}

}  // namespace

std::string_view state_word(RunState state) {
  switch (state) {
    case RunState::kFinished:
      return "finished";
    case RunState::kRunning:
      return "running";
    case RunState::kDamaged:
      return "damaged";
    case RunState::kStopped:
      break;
  }
  return "stopped";
}

RunRecord read_run(const fs::path& folder) {
  if (!is_run(folder)) {
    throw StorageError(folder.string() + ": is not the folder of a run: it has no workflow.json");
  }
  RunRecord record;
  record.folder = folder;
  record.document = json_of(folder / "workflow.json");
  if (!record.document.is_object()) {
    throw StorageError(
        (folder / "workflow.json").string() +
        ": is damaged: it is not a JSON object; restore the file, or delete the run");
  }
  const Json& name = member(record.document, "name");
  record.name = name.is_string() ? name.get<std::string>() : folder.filename().string();
  if (const Json stored = json_of(folder / "result.json"); stored.is_object())
    record.result = run_result_from(stored, (folder / "result.json").string());
  read_times(record);
  if (record.result) {
    const RunResult& result = *record.result;
    if (record.document.contains("search"))
      record.best = json_of(folder / "best.json");
    record.state = RunState::kFinished;
    record.epochs = result.training.total_epochs;
    if (!result.has_model() && result.cross_validation) {
      for (const FitResult& fold : result.cross_validation->fold_results)
        record.epochs = std::max(record.epochs, fold.total_epochs);
    }
    record.planned_epochs = record.epochs;
    if (result.time.seconds > 0)
      record.seconds = result.time.seconds;
    const std::vector<MetricValue> numbers = result_numbers(result);
    const MetricValue& main = numbers[numbers.size() > 1 ? 1 : 0];
    record.metric = main.name;
    record.metric_value = main.value;
    return record;
  }
  record.state = is_locked(folder) ? RunState::kRunning : RunState::kStopped;
  read_progress(folder, record);
  return record;
}

std::vector<RunRecord> runs_in(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  if (error) {
    throw StorageError(folder.string() + ": cannot be read: " + error.message() +
                       "; name the folder of the runs with --dir");
  }
  std::vector<RunRecord> runs;
  for (const fs::directory_entry& found : entry) {
    if (!is_run(found.path()))
      continue;
    try {
      runs.push_back(read_run(found.path()));
    } catch (const StorageError&) {
      RunRecord& damaged = runs.emplace_back();
      damaged.folder = found.path();
      damaged.name = found.path().filename().string();
      damaged.state = RunState::kDamaged;
    }
  }
  std::sort(runs.begin(), runs.end(), [](const RunRecord& a, const RunRecord& b) {
    return std::pair(a.started.value_or(0), a.folder) > std::pair(b.started.value_or(0), b.folder);
  });
  return runs;
}

std::vector<MetricValue> result_numbers(const RunResult& result) {
  std::vector<MetricValue> numbers{{"loss", result.loss(), Direction::kLowerIsBetter}};
  numbers.insert(numbers.end(), result.metrics().begin(), result.metrics().end());
  return numbers;
}

std::optional<MetricValue> window_variance(const RunResult& result) {
  const std::optional<PrequentialResult>& tested = result.training.prequential;
  if (!tested)
    return std::nullopt;
  const std::string& name = tested->recovery.metric;
  const Number* const variance = tested->variances ? tested->variances->find(name) : nullptr;
  return MetricValue{name + " variance", variance != nullptr ? *variance : Number(NAN),
                     Direction::kLowerIsBetter};
}

}  // namespace treadle::compare
