#include "run_records.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include <treadle/base/error.h>

namespace treadle::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const Json& value_at(const Json& value, std::string_view key) {
  static const Json kMissing;
  const auto found = value.is_object() ? value.find(key) : value.end();
  return found == value.end() ? kMissing : *found;
}

/// Null for a file that is not there, or not complete JSON.
Json json_of(const fs::path& path) {
  std::ifstream file(path);
  if (!file)
    return {};
  Json value = Json::parse(file, nullptr, /*allow_exceptions=*/false);
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

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');)
    fields.push_back(field);
  return fields;
}

template <typename Number>
std::optional<Number> parsed(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return number;
}

/// The last complete line of history.csv, by the names of its columns.
class LastEpoch {
 public:
  explicit LastEpoch(const fs::path& folder) {
    std::ifstream file(folder / "history.csv");
    std::string line;
    if (!std::getline(file, line))
      return;
    names_ = fields_of(line);
    while (std::getline(file, line) && !file.eof()) {
      std::vector<std::string> fields = fields_of(line);
      if (fields.size() == names_.size())
        fields_ = std::move(fields);
    }
  }

  std::int64_t count(std::string_view name) const {
    return parsed<std::int64_t>(text(name)).value_or(0);
  }

  /// The first metric, else the loss.
  void add_metric_to(RunRecord& record) const {
    constexpr std::string_view kLastLoss = "val_loss";
    const auto loss = std::find(names_.begin(), names_.end(), kLastLoss);
    if (fields_.empty() || loss == names_.end())
      return;
    const auto first = loss + 1;
    const bool has_metric = first != names_.end() && *first != "best" && *first != "decisions" &&
                            !first->starts_with("log.") && !text(*first).empty();
    record.metric = has_metric ? *first : "loss";
    const std::string value = has_metric                ? text(*first)
                              : text(kLastLoss).empty() ? text("train_loss")
                                                        : text(kLastLoss);
    if (const auto number = parsed<double>(value))
      record.metric_value = *number;
  }

 private:
  std::string text(std::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    const auto index = static_cast<std::size_t>(found - names_.begin());
    return index < fields_.size() ? fields_[index] : std::string();
  }

  std::vector<std::string> names_;
  std::vector<std::string> fields_;
};

std::optional<double> time_in(const std::string& line) {
  const Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const Json& time = event.is_discarded() ? Json() : value_at(event, "time");
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
  const Json& name = value_at(record.document, "name");
  record.name = name.is_string() ? name.get<std::string>() : folder.filename().string();
  record.result = json_of(folder / "result.json");
  read_times(record);
  if (record.result.is_object()) {
    record.state = RunState::kFinished;
    record.epochs = record.planned_epochs = record.result.value("total_epochs", std::int64_t{0});
    const Json& passed = value_at(value_at(record.result, "time"), "seconds");
    if (passed.is_number())
      record.seconds = passed.get<double>();
    const std::vector<ResultNumber> numbers = result_numbers(record.result);
    const ResultNumber& main = numbers[numbers.size() > 1 ? 1 : 0];
    record.metric = main.name;
    record.metric_value = main.value;
    return record;
  }
  record.state = is_locked(folder) ? RunState::kRunning : RunState::kStopped;
  const LastEpoch last(folder);
  record.epochs = last.count("epoch");
  record.planned_epochs = last.count("epochs");
  last.add_metric_to(record);
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

std::vector<ResultNumber> result_numbers(const Json& result) {
  const Json& folds = value_at(result, "mean_loss");
  const Json& tested = value_at(value_at(result, "prequential"), "loss");
  const Json& validation =
      tested.is_number() ? tested : value_at(value_at(result, "validation"), "loss");
  std::vector<ResultNumber> numbers{{"loss",
                                     folds.is_number()        ? folds
                                     : validation.is_number() ? validation
                                                              : value_at(result, "final_loss"),
                                     "lower"}};
  const Json& metrics = value_at(result, "metrics");
  for (const Json& metric : value_at(result, "metric_list")) {
    const Json& name = value_at(metric, "name");
    if (name.is_string() && metrics.contains(name.get<std::string>())) {
      numbers.push_back({name.get<std::string>(), value_at(metrics, name.get<std::string>()),
                         metric.value("better", "")});
    }
  }
  return numbers;
}

std::optional<ResultNumber> window_variance(const Json& result) {
  const Json& tested = value_at(result, "prequential");
  const Json& metric = value_at(value_at(tested, "recovery"), "metric");
  if (!metric.is_string())
    return std::nullopt;
  const std::string name = metric.get<std::string>();
  const Json& variances = value_at(tested, "variances");
  return ResultNumber{name + " variance",
                      value_at(name == "loss" ? variances : value_at(variances, "metrics"), name),
                      "lower"};
}

}  // namespace treadle::cli
