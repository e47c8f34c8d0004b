#include "events/event_log.h"

#include <chrono>
#include <ctime>
#include <fstream>
#include <vector>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;

/// By name; null where one is not known.
nlohmann::json metrics_to_json(const std::vector<MetricValue>& metrics) {
  nlohmann::json values = nlohmann::json::object();
  for (const MetricValue& metric : metrics)
    values[metric.name] = metric.value;
  return values;
}

/// The bytes up to the last line's end: a crash cut off the rest.
std::uint64_t whole_lines(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t whole = 0;
  std::string line;
  while (std::getline(file, line) && !file.eof())
    whole += line.size() + 1;
  return whole;
}

}  // namespace

EventLog::EventLog(const fs::path& path) : path_(path), file_(std::make_unique<AppendFile>(path)) {
  file_->truncate_to(whole_lines(path));
}

std::string EventLog::started_at() const {
  std::ifstream file(path_);
  std::string line;
  std::getline(file, line);
  const nlohmann::json first = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!first.is_object() || !first.contains("time") || !first.at("time").is_number())
    return "";
  const auto seconds = static_cast<std::time_t>(first.at("time").get<double>());
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

void EventLog::cut_back(const std::string& fit, std::int64_t epochs) {
  std::ifstream file(path_);
  std::string line;
  std::string kept;
  while (std::getline(file, line)) {
    const nlohmann::json event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!event.is_object())
      continue;  // cut off by a crash, or damaged
    const auto of_fit = event.find("fit");
    const auto epoch = event.find("epoch");
    if (of_fit != event.end() && *of_fit == fit && epoch != event.end() &&
        epoch->is_number_integer() && *epoch > epochs)
      continue;
    kept += line + "\n";
  }
  file.close();
  write_file_atomically(path_, kept);
  file_ = std::make_unique<AppendFile>(path_);
}

void EventLog::write(const char* event, const nlohmann::json& content) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  nlohmann::ordered_json line;
  line["time"] = std::chrono::duration<double>(now).count();
  line["event"] = event;
  for (const auto& [key, value] : content.items())
    line[key] = value;
  file_->append_line(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void EventLog::do_run_started(const std::string& name, const std::string& folder) {
  write("run_started", {{"name", name}, {"folder", folder}});
}

void EventLog::do_fit_started(const FitId& fit) {
  write("fit_started", {{"fit", fit.path()}, {"index", fit.index()}, {"count", fit.count()}});
}

void EventLog::do_epoch_completed(const FitId& fit, const EpochSummary& s) {
  nlohmann::json content{{"fit", fit.path()},
                         {"epoch", s.epoch},
                         {"step", s.step},
                         {"learning_rate", Number(s.learning_rate)},
                         {"train_loss", s.train_loss},
                         {"val_loss", s.val_loss ? nlohmann::json(*s.val_loss) : nlohmann::json()},
                         {"metrics", metrics_to_json(s.metrics)},
                         {"best", s.best},
                         {"seconds", s.seconds}};
  if (!s.logged.empty())
    content["logged"] = metrics_to_json(s.logged);
  if (!s.decisions.empty())
    content["decisions"] = s.decisions;
  write("epoch_completed", content);
}

void EventLog::do_checkpoint_saved(const FitId& fit, const std::string& path) {
  write("checkpoint_saved", {{"fit", fit.path()}, {"path", path}});
}

void EventLog::do_fit_completed(const FitId& fit, const FitSummary& s) {
  write("fit_completed", {{"fit", fit.path()},
                          {"best_epoch", s.best_epoch},
                          {"epochs", s.epochs},
                          {"final_loss", s.final_loss},
                          {"best_loss", s.best_loss},
                          {"stop_reason", s.stop_reason},
                          {"metrics", metrics_to_json(s.metrics)},
                          {"seconds", s.seconds}});
}

void EventLog::do_trial_changed(const TrialSummary& trial, const SearchProgress& search) {
  nlohmann::json content{{"trial", trial.number}, {"state", trial.state}};
  for (const auto& [name, value] : trial.params)
    content["params"][name] = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  for (const double value : trial.values)
    content["values"].push_back(Number(value));
  if (!trial.error.empty())
    content["error"] = trial.error;
  if (search.best_trial >= 0)
    content["best_trial"] = search.best_trial;
  write("trial_changed", content);
}

void EventLog::do_noted(const std::string& text) {
  write("noted", {{"text", text}});
}

void EventLog::do_run_completed(const std::string& folder) {
  write("run_completed", {{"folder", folder}});
}

}  // namespace treadle::internal
