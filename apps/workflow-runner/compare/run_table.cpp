#include "compare/run_table.h"

#include <algorithm>
#include <map>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/quoted_text.h>

#include <treadle/host/compare/run_settings.h>
#include "terminal/result_text.h"
#include "terminal/text_table.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

constexpr const char* kRunColumn = "run";
constexpr const char* kEpochsColumn = "epochs";
constexpr const char* kUpdatesColumn = "updates";
constexpr const char* kTimeColumn = "time";

/// A setting as a column: "loss" is a number of the result, and may be a key of the document.
std::string column_of(const std::string& key, const Cells& numbers) {
  return std::find(numbers.begin(), numbers.end(), key) == numbers.end() ? key
                                                                         : key + " (document)";
}

void sort_rows(RunTable& table, const std::string& sort, bool higher_is_better) {
  if (sort == kRunColumn) {
    std::stable_sort(table.rows.begin(), table.rows.end(),
                     [](const auto& a, const auto& b) { return a.run < b.run; });
    return;
  }
  Cells names = table.numbers;
  names.insert(names.end(), table.keys.begin(), table.keys.end());
  const auto found = std::find(names.begin(), names.end(), sort);
  if (found == names.end()) {
    const std::string suggestion = did_you_mean(sort, names);
    std::string known;
    for (const std::string& name : names)
      known += (known.empty() ? "" : ", ") + name;
    throw UsageError("--sort: no column is called " + quote_text(sort) +
                     (suggestion.empty() ? "; the columns are " + known : suggestion));
  }
  const auto column = static_cast<std::size_t>(found - names.begin());
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [&](const RunTable::Row& a, const RunTable::Row& b) {
                     const Json& left = a.values[column];
                     const Json& right = b.values[column];
                     if (left.is_null() || right.is_null())
                       return !left.is_null() && right.is_null();
                     return higher_is_better ? left > right : left < right;
                   });
}

/// The largest over its trainings; null where none has it.
Json largest(const compare::MeasuredRun& run,
             std::optional<double> compare::MeasuredTraining::*spent) {
  Json most;
  for (const compare::MeasuredTraining& training : run.trainings) {
    if (training.*spent && (most.is_null() || *(training.*spent) > most.get<double>()))
      most = *(training.*spent);
  }
  return most;
}

Json value_of(const compare::RunRecord& run, const compare::MeasuredRun& measured,
              const std::string& name, bool is_within_budget) {
  if (name == kEpochsColumn)
    return run.epochs;
  if (name == kUpdatesColumn) {
    const Json updates = largest(measured, &compare::MeasuredTraining::updates);
    return updates.is_null() ? updates : Json(updates.get<std::int64_t>());
  }
  if (name == kTimeColumn && is_within_budget)
    return largest(measured, &compare::MeasuredTraining::seconds);
  if (name == kTimeColumn)
    return run.seconds ? Json(*run.seconds) : Json();
  const auto found = std::find_if(measured.numbers.begin(), measured.numbers.end(),
                                  [&](const MetricValue& one) { return one.name == name; });
  return found == measured.numbers.end() ? Json() : Json(found->value);
}

}  // namespace

RunTable run_table(const std::vector<compare::RunRecord>& runs,
                   const std::vector<compare::MeasuredRun>& measured, const compare::Budget& budget,
                   const std::string& sort) {
  RunTable table;
  const bool is_within_budget = budget.unit != compare::Budget::Unit::kNone;
  std::vector<compare::Settings> settings;
  std::map<std::string, Direction> directions;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    settings.push_back(compare::trained_settings_of(runs[i]));
    for (const MetricValue& one : measured[i].numbers) {
      if (directions.emplace(one.name, one.direction).second)
        table.numbers.push_back(one.name);
    }
  }
  table.numbers.emplace_back(is_within_budget ? kUpdatesColumn : kEpochsColumn);
  table.numbers.emplace_back(kTimeColumn);
  const compare::DifferingSettings differing = compare::differing_settings(std::move(settings));
  for (const std::string& key : differing.keys)
    table.keys.push_back(column_of(key, table.numbers));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    RunTable::Row& row = table.rows.emplace_back();
    row.run = measured[i].name;
    for (const std::string& name : table.numbers)
      row.values.push_back(value_of(runs[i], measured[i], name, is_within_budget));
    row.values.insert(row.values.end(), differing.values[i].begin(), differing.values[i].end());
  }
  if (!sort.empty()) {
    const auto found = directions.find(sort);
    sort_rows(table, sort,
              found != directions.end() && found->second == Direction::kHigherIsBetter);
  }
  return table;
}

std::string RunTable::text(const Terminal& terminal) const {
  Cells head{kRunColumn};
  std::vector<Cells> lines;
  for (const Row& row : rows)
    lines.push_back({row.run});
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (compare::is_of_one_class(numbers[i]))
      continue;
    head.push_back(numbers[i]);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const Json& value = rows[r].values[i];
      lines[r].push_back(numbers[i] == kTimeColumn && value.is_number()
                             ? seconds_text(value.get<double>())
                             : value_text(value));
    }
  }
  Cells whole_head = head;
  std::vector<Cells> whole = lines;
  whole_head.insert(whole_head.end(), keys.begin(), keys.end());
  std::vector<Cells> settings;  // a line for each key, a column for each run
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Cells& line = settings.emplace_back(Cells{keys[i]});
    for (std::size_t r = 0; r < rows.size(); ++r) {
      line.push_back(setting_text(rows[r].values[numbers.size() + i]));
      whole[r].push_back(line.back());
    }
  }
  // Beside the numbers as long as a line holds them, else below, where paths are read downwards.
  if (keys.empty() || table_width(whole_head, whole) <= terminal.width())
    return table_text(whole_head, whole, 1, terminal);
  Cells runs{"setting"};
  for (const Row& row : rows)
    runs.push_back(row.run);
  return table_text(head, lines, 1, terminal) + "\n" + terminal.bold("Settings") + "\n" +
         table_text(runs, settings, 1, terminal);
}

std::string RunTable::csv() const {
  std::string text = kRunColumn;
  for (const std::string& name : numbers)
    text += "," + csv_field(name);
  for (const std::string& key : keys)
    text += "," + csv_field(key);
  text += "\n";
  for (const Row& row : rows) {
    text += csv_field(row.run);
    for (const Json& value : row.values)
      text += "," + csv_value(value);
    text += "\n";
  }
  return text;
}

Json RunTable::json() const {
  Json list = Json::array();
  for (const Row& row : rows) {
    Json metrics = Json::object();
    Json settings = Json::object();
    for (std::size_t i = 0; i < numbers.size(); ++i)
      metrics[numbers[i]] = row.values[i];
    for (std::size_t i = 0; i < keys.size(); ++i)
      settings[keys[i]] = row.values[numbers.size() + i];
    list.push_back(
        {{"run", row.run}, {"metrics", std::move(metrics)}, {"settings", std::move(settings)}});
  }
  return list;
}

}  // namespace treadle::cli
