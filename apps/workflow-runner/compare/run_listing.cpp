#include "compare/run_listing.h"

#include <algorithm>
#include <cstddef>
#include <ctime>

#include "terminal/result_text.h"
#include "terminal/text_table.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

std::string local_time(std::optional<double> seconds) {
  if (!seconds)
    return "-";
  const auto time = static_cast<std::time_t>(*seconds);
  std::tm local{};
  localtime_r(&time, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  return text;
}

Json utc_time(std::optional<double> seconds) {
  if (!seconds)
    return {};
  const auto time = static_cast<std::time_t>(*seconds);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string epochs_text(const compare::RunRecord& run) {
  const std::string done = std::to_string(run.epochs);
  return run.state == compare::RunState::kFinished || run.planned_epochs == 0
             ? done
             : done + "/" + std::to_string(run.planned_epochs);
}

std::size_t processes_of(const compare::RunRecord& run) {
  return run.result ? std::max<std::size_t>(1, run.result->time.ranks.size()) : 1;
}

}  // namespace

std::string run_listing(const std::vector<compare::RunRecord>& runs, const Terminal& terminal) {
  if (runs.empty())
    return "no runs\n";
  const bool are_shared = std::any_of(runs.begin(), runs.end(), [](const compare::RunRecord& run) {
    return processes_of(run) > 1;
  });
  std::vector<Cells> rows;
  for (const compare::RunRecord& run : runs) {
    rows.push_back({shown_path(run.folder), run.name, local_time(run.started),
                    std::string(compare::state_word(run.state)),
                    run.metric.empty() ? "-" : run.metric + " " + value_text(run.metric_value),
                    epochs_text(run), run.seconds ? seconds_text(*run.seconds) : "-"});
    if (are_shared)
      rows.back().push_back(run.result ? std::to_string(processes_of(run)) : "-");
  }
  Cells head{"run", "name", "started", "state", "metric", "epochs", "time"};
  if (are_shared)
    head.emplace_back("processes");
  constexpr std::size_t kWords = 5;
  return table_text(head, rows, kWords, terminal);
}

Json run_listing_json(const std::vector<compare::RunRecord>& runs) {
  Json list = Json::array();
  for (const compare::RunRecord& run : runs) {
    list.push_back({{"folder", run.folder.string()},
                    {"name", run.name},
                    {"started_at", utc_time(run.started)},
                    {"state", compare::state_word(run.state)},
                    {"metric", run.metric.empty() ? Json() : Json(run.metric)},
                    {"value", run.metric_value},
                    {"epochs", run.epochs},
                    {"seconds", run.seconds ? Json(*run.seconds) : Json()}});
    if (processes_of(run) > 1)
      list.back()["processes"] = processes_of(run);
  }
  return {{"runs", std::move(list)}};
}

}  // namespace treadle::cli
