#include "result/fit_results.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/quoted_text.h>

namespace treadle::internal {
namespace {

constexpr std::string_view kLoss = "loss";

/// "residual_sample" of "residual_sample.3", the table of output 3; nothing for other names.
struct OutputName {
  std::string family;
  std::int64_t output;
};
std::optional<OutputName> output_name(const std::string& name) {
  constexpr std::size_t kMostDigits = 9;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == name.size() ||
      name.size() - dot - 1 > kMostDigits ||
      name.find_first_not_of("0123456789", dot + 1) != std::string::npos)
    return std::nullopt;
  return OutputName{name.substr(0, dot), std::stol(name.substr(dot + 1))};
}

ResultTable* find_table(std::vector<ResultTable>& tables, const std::string& name) {
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const ResultTable& table) { return table.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

ResultTable result_table(const MetricTable& table) {
  ResultTable stored;
  stored.name = table.name;
  stored.row_labels = table.row_labels;
  stored.column_labels = table.column_labels;
  const at::Tensor values = table.values.contiguous();
  const double* data = values.data_ptr<double>();
  for (std::int64_t row = 0; row < values.size(0); ++row) {
    stored.values.emplace_back(data, data + values.size(1));
    data += values.size(1);
  }
  return stored;
}

/// Adds a table of one output to that of its family; false where it fits to none.
bool add_output(std::vector<ResultTable>& tables, const OutputName& name,
                const ResultTable& table) {
  if (!table.row_labels.empty() || table.column_labels.empty())
    return false;
  std::vector<std::string> columns{"output"};
  columns.insert(columns.end(), table.column_labels.begin(), table.column_labels.end());
  ResultTable* family = find_table(tables, name.family);
  if (family == nullptr && name.output == 0)
    family = &tables.emplace_back(ResultTable{name.family, {}, columns, {}, 0, {}, 0});
  if (family == nullptr || family->outputs != name.output || family->column_labels != columns)
    return false;
  family->outputs = name.output + 1;
  for (const std::vector<Number>& values : table.values) {
    std::vector<Number>& row = family->values.emplace_back();
    row.emplace_back(static_cast<double>(name.output));
    row.insert(row.end(), values.begin(), values.end());
  }
  return true;
}

/// A name that came from a plugin, as a file.
std::string file_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return c >= 0x80 || (std::isalnum(c) == 0 && c != '_' && c != '-'); },
      '_');
  return name + ".csv";
}

std::string csv_text(const ResultTable& table) {
  const std::size_t columns = table.values.front().size();
  std::string text = table.row_labels.empty() ? "" : "label,";
  for (std::size_t i = 0; i < columns; ++i) {
    text += i < table.column_labels.size() ? csv_field(table.column_labels[i])
                                           : "column-" + std::to_string(i);
    text += i + 1 < columns ? "," : "\n";
  }
  const nlohmann::json rows = to_json(table).at("values");
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!table.row_labels.empty())
      text += (row < table.row_labels.size() ? csv_field(table.row_labels[row]) : "") + ",";
    std::string_view separator;
    for (const nlohmann::json& value : rows[row]) {
      text += separator;
      text += value.is_null() ? "" : value.dump();
      separator = ",";
    }
    text += "\n";
  }
  return text;
}

/// Core keeps the loss first among the numbers of a window.
Scores scores_of(const std::vector<MetricValue>& values) {
  Scores scores;
  for (const MetricValue& value : values) {
    if (value.name == kLoss) {
      scores.loss = value.value;
    } else {
      scores.metrics.push_back(value);
    }
  }
  return scores;
}

std::optional<Scores> scores_if_any(const std::vector<MetricValue>& values) {
  return values.empty() ? std::nullopt : std::optional(scores_of(values));
}

}  // namespace

FitResult fit_result(const engine::TrainingResult& training) {
  FitResult result;
  result.final_loss = training.final_loss;
  result.best_loss = training.best_loss;
  result.best_epoch = training.best_epoch;
  result.total_epochs = training.total_epochs;
  result.training_time_seconds = training.training_time_seconds;
  result.stop_reason = training.stop_reason;
  result.replayed_steps = training.replayed_steps;
  result.not_captured = training.why_not_captured;
  if (training.skipped_steps > 0)
    result.skipped_steps = {training.skipped_steps, training.skipped_at};
  result.weights = {training.total_epochs, false, "", "", training.has_average};
  if (training.selects_best) {
    const bool is_by_training = training.chosen_by == "train_loss";
    result.weights = {training.best_epoch, true, is_by_training ? "training" : "validation",
                      training.chosen_by, training.has_average};
  }
  return result;
}

EvaluationResult evaluation_result(const engine::ValidationResult& evaluated) {
  return {{evaluated.loss, evaluated.metrics.values},
          evaluated.sample_count,
          evaluated.validation_time_seconds,
          result_tables(evaluated.metrics.tables),
          std::nullopt};
}

PrequentialResult prequential_result(const AdaptationRecord& record) {
  PrequentialResult result;
  static_cast<Scores&>(result) = scores_of(record.summary.means);
  result.window_rows = record.window_rows;
  result.recovery = {record.recovery.metric, record.recovery.threshold, record.recovery.share};
  result.variances = scores_if_any(record.summary.variances);
  for (const AdaptationWindow& window : record.windows) {
    result.windows.push_back(
        {scores_of(window.values), window.first_row, window.rows, window.task});
    result.sample_count += window.rows;
  }
  for (const ChangeEffect& effect : record.summary.changes) {
    result.changes.push_back({effect.change.row, effect.change.task, effect.window,
                              scores_if_any(effect.before), scores_if_any(effect.after),
                              effect.windows_to_threshold, effect.windows_to_share});
  }
  return result;
}

StructureResult structure_result(const StructureRecord& record) {
  StructureResult result{record.structure, {}};
  for (const StructureRecord::Choice& choice : record.choices) {
    StructureResult::Choice& stored = result.choices.emplace_back();
    stored.name = choice.of.name;
    stored.node = choice.of.node;
    for (std::size_t i = 0; i < choice.weights.size(); ++i)
      stored.weights[choice.of.operations[i]] = choice.weights[i];
    if (choice.chosen)
      stored.chosen = choice.of.operations[*choice.chosen];
  }
  return result;
}

std::vector<ResultTable> result_tables(const std::vector<MetricTable>& tables) {
  std::vector<ResultTable> stored;
  for (const MetricTable& table : tables) {
    const std::optional<OutputName> name = output_name(table.name);
    ResultTable one = result_table(table);
    if (name && add_output(stored, *name, one))
      continue;
    if (find_table(stored, table.name) == nullptr)
      stored.push_back(std::move(one));
  }
  return stored;
}

void move_large_tables(std::vector<ResultTable>& tables, const std::filesystem::path& run,
                       const std::filesystem::path& folder) {
  for (ResultTable& table : tables) {
    if (table.values.empty() ||
        table.values.size() * table.values.front().size() <= kMostNumbersInResult)
      continue;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      throw StorageError(folder.string() + ": cannot be made for the tables of the result: " +
                         error.message() + "; make room or permit writing, then resume the run");
    }
    const std::filesystem::path file = folder / file_name(table.name);
    write_file_atomically(file, csv_text(table));
    table.file = file.lexically_relative(run).generic_string();
    table.rows = static_cast<std::int64_t>(table.values.size());
    table.values.clear();
  }
}

}  // namespace treadle::internal
