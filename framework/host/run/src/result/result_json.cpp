#include "result/result_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/quoted_text.h>

#include "events/event_log.h"
#include "result/json_path.h"

namespace treadle::internal {
namespace {

constexpr const char* kLossOfPart = "loss";

/// "residual_sample" of "residual_sample.3", the table of output 3; nothing for other names.
struct OutputName {
  std::string family;
  std::size_t output;
};
std::optional<OutputName> output_name(const std::string& name) {
  constexpr std::size_t kMostDigits = 9;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == name.size() ||
      name.size() - dot - 1 > kMostDigits ||
      name.find_first_not_of("0123456789", dot + 1) != std::string::npos)
    return std::nullopt;
  return OutputName{name.substr(0, dot), std::stoul(name.substr(dot + 1))};
}

nlohmann::json* find_table(nlohmann::json& tables, const std::string& name) {
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const nlohmann::json& table) {
    return table.at("name") == name;
  });
  return found == tables.end() ? nullptr : &*found;
}

/// Adds a table of one output to that of its family; false where it fits to none.
bool add_output(nlohmann::json& tables, const OutputName& name, nlohmann::json table) {
  if (!table.at("row_labels").empty() || table.at("column_labels").empty())
    return false;
  nlohmann::json columns = nlohmann::json::array({"output"});
  columns.insert(columns.end(), table.at("column_labels").begin(), table.at("column_labels").end());
  nlohmann::json* family = find_table(tables, name.family);
  if (family == nullptr && name.output == 0) {
    table["name"] = name.family;
    table["column_labels"] = columns;
    table["outputs"] = 0;
    const nlohmann::json rows = std::exchange(table["values"], nlohmann::json::array());
    tables.push_back(table);
    family = &tables.back();
    table["values"] = rows;
  }
  if (family == nullptr || family->value("outputs", nlohmann::json()) != name.output ||
      family->at("column_labels") != columns)
    return false;
  (*family)["outputs"] = name.output + 1;
  for (nlohmann::json& row : table.at("values")) {
    row.insert(row.begin(), name.output);
    (*family)["values"].push_back(std::move(row));
  }
  return true;
}

std::size_t numbers_in(const nlohmann::json& table) {
  const nlohmann::json& rows = table.at("values");
  return rows.empty() ? 0 : rows.size() * rows.front().size();
}

/// A name that came from a plugin, as a file.
std::string file_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return c >= 0x80 || (std::isalnum(c) == 0 && c != '_' && c != '-'); },
      '_');
  return name + ".csv";
}

std::string csv_text(const nlohmann::json& table) {
  const nlohmann::json& rows = table.at("values");
  const nlohmann::json& labels = table.at("row_labels");
  std::string text = labels.empty() ? "" : "label,";
  for (std::size_t i = 0; i < rows.front().size(); ++i) {
    const nlohmann::json& names = table.at("column_labels");
    text +=
        i < names.size() ? csv_field(names[i].get<std::string>()) : "column-" + std::to_string(i);
    text += i + 1 < rows.front().size() ? "," : "\n";
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!labels.empty())
      text += (row < labels.size() ? csv_field(labels[row].get<std::string>()) : "") + ",";
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

}  // namespace

nlohmann::json to_json(const engine::TrainingResult& result) {
  nlohmann::json record = {{"final_loss", result.final_loss},
                           {"best_loss", result.best_loss},
                           {"best_epoch", result.best_epoch},
                           {"total_epochs", result.total_epochs},
                           {"training_time_seconds", result.training_time_seconds},
                           {"stop_reason", result.stop_reason}};
  if (result.replayed_steps > 0)
    record["replayed_steps"] = result.replayed_steps;
  if (!result.why_not_captured.empty())
    record["not_captured"] = result.why_not_captured;
  if (result.skipped_steps > 0)
    record["skipped_steps"] = {{"count", result.skipped_steps}, {"first", result.skipped_at}};
  return record;
}

nlohmann::json to_json(const engine::ValidationResult& result) {
  nlohmann::json record{{"loss", result.loss},
                        {"metrics", metrics_to_json(result.metrics.values)},
                        {"metric_list", metric_list(result.metrics.values)},
                        {"sample_count", result.sample_count},
                        {"validation_time_seconds", result.validation_time_seconds},
                        {"tables", to_json(result.metrics.tables)}};
  nlohmann::json undefined = undefined_json(result.metrics.values);
  if (result.loss.is_undefined())
    undefined["loss"] = result.loss.why();
  if (!undefined.empty())
    record["undefined"] = std::move(undefined);
  return record;
}

nlohmann::json to_json(const AdaptationRecord& record) {
  const auto is_loss = [](const MetricValue& value) { return value.name == "loss"; };
  // The numbers of a window: the loss, which comes first, beside the metrics.
  const auto put_numbers = [&](const std::vector<MetricValue>& values, nlohmann::json& into) {
    into["metrics"] = nlohmann::json::object();
    for (const MetricValue& value : values)
      (is_loss(value) ? into["loss"] : into["metrics"][value.name]) = value.value;
  };
  const auto numbers = [&](const std::vector<MetricValue>& values) {
    nlohmann::json stored = nlohmann::json::object();
    put_numbers(values, stored);
    return values.empty() ? nlohmann::json() : stored;
  };
  const auto count = [](const std::optional<std::int64_t>& windows) {
    return windows ? nlohmann::json(*windows) : nlohmann::json();
  };
  nlohmann::json windows = nlohmann::json::array();
  std::int64_t rows = 0;
  for (const AdaptationWindow& window : record.windows) {
    nlohmann::json stored{
        {"first_row", window.first_row}, {"rows", window.rows}, {"task", window.task}};
    put_numbers(window.values, stored);
    windows.push_back(std::move(stored));
    rows += window.rows;
  }
  nlohmann::json changes = nlohmann::json::array();
  for (const ChangeEffect& effect : record.summary.changes) {
    nlohmann::json stored{{"row", effect.change.row},
                          {"task", effect.change.task},
                          {"window", effect.window ? nlohmann::json(*effect.window) : nullptr},
                          {"before", numbers(effect.before)},
                          {"after", numbers(effect.after)}};
    if (record.recovery.threshold)
      stored["windows_to_threshold"] = count(effect.windows_to_threshold);
    if (record.recovery.share)
      stored["windows_to_share"] = count(effect.windows_to_share);
    changes.push_back(std::move(stored));
  }
  nlohmann::json recovery{{"metric", record.recovery.metric}};
  if (record.recovery.threshold)
    recovery["threshold"] = *record.recovery.threshold;
  if (record.recovery.share)
    recovery["share"] = *record.recovery.share;
  std::vector<MetricValue> metrics = record.summary.means;
  std::erase_if(metrics, is_loss);
  nlohmann::json stored{{"sample_count", rows},
                        {"window_rows", record.window_rows},
                        {"windows", std::move(windows)},
                        {"changes", std::move(changes)},
                        {"recovery", std::move(recovery)},
                        {"variances", numbers(record.summary.variances)},
                        {"metric_list", metric_list(metrics)}};
  put_numbers(record.summary.means, stored);
  if (nlohmann::json undefined = undefined_json(record.summary.means); !undefined.empty())
    stored["undefined"] = std::move(undefined);
  return stored;
}

nlohmann::json test_record(const engine::ValidationResult& result) {
  nlohmann::json record = to_json(result);
  record["test_time_seconds"] = record.at("validation_time_seconds");
  record.erase("validation_time_seconds");
  return record;
}

nlohmann::json to_json(const std::vector<MetricTable>& tables) {
  nlohmann::json stored = nlohmann::json::array();
  for (const MetricTable& table : tables) {
    nlohmann::json one = to_json(table);
    const std::optional<OutputName> name = output_name(table.name);
    if (name && add_output(stored, *name, one))
      continue;
    if (find_table(stored, table.name) == nullptr)
      stored.push_back(std::move(one));
  }
  return stored;
}

void move_large_tables(nlohmann::json& tables, const std::filesystem::path& run,
                       const std::filesystem::path& folder) {
  for (nlohmann::json& table : tables) {
    if (numbers_in(table) <= kMostNumbersInResult)
      continue;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      throw StorageError(folder.string() + ": cannot be made for the tables of the result: " +
                         error.message() + "; make room or permit writing, then resume the run");
    }
    const std::filesystem::path file = folder / file_name(table.at("name").get<std::string>());
    write_file_atomically(file, csv_text(table));
    table["file"] = file.lexically_relative(run).generic_string();
    table["rows"] = table.at("values").size();
    table.erase("values");
  }
}

nlohmann::json metric_list(const std::vector<MetricValue>& metrics) {
  nlohmann::json list = nlohmann::json::array();
  for (const MetricValue& metric : metrics) {
    nlohmann::json one{{"name", metric.name}};
    if (metric.direction != Direction::kNone)
      one["better"] = metric.direction == Direction::kHigherIsBetter ? "higher" : "lower";
    list.push_back(std::move(one));
  }
  return list;
}

nlohmann::json weights_record(const engine::TrainingResult& training) {
  nlohmann::json record{{"epoch", training.total_epochs}, {"chosen", "last"}};
  if (training.selects_best) {
    record = {{"epoch", training.best_epoch},
              {"chosen", "best"},
              {"on", training.chosen_by == "train_loss" ? "training" : "validation"},
              {"by", training.chosen_by}};
  }
  if (training.has_average)
    record["averaged"] = true;
  return record;
}

nlohmann::json to_json(const MetricTable& table) {
  nlohmann::json rows = nlohmann::json::array();
  const at::Tensor values = table.values.contiguous();
  const double* data = values.data_ptr<double>();
  for (std::int64_t row = 0; row < values.size(0); ++row) {
    nlohmann::json cells = nlohmann::json::array();
    for (std::int64_t column = 0; column < values.size(1); ++column) {
      cells.push_back(Number(data[row * values.size(1) + column]));
    }
    rows.push_back(std::move(cells));
  }
  return {{"name", table.name},
          {"row_labels", table.row_labels},
          {"column_labels", table.column_labels},
          {"values", std::move(rows)}};
}

std::string_view judging_key(const nlohmann::json& fold) {
  return fold.contains("test")          ? "test"
         : fold.contains("prequential") ? "prequential"
                                        : "validation";
}

const nlohmann::json& judging_part(const nlohmann::json& fold) {
  return fold.at(judging_key(fold));
}

Number judged_number(const nlohmann::json& part, const std::string& name) {
  const nlohmann::json value =
      name == kLossOfPart ? part.at(name) : part.at("metrics").value(name, nlohmann::json());
  if (value.is_number())
    return value.get<double>();
  const auto reasons = part.find("undefined");
  return reasons != part.end() && reasons->contains(name)
             ? Number::undefined(reasons->at(name).get<std::string>())
             : Number(NAN);
}

FoldMoments moments_over_folds(std::span<const Number> values) {
  FoldMoments moments;
  double sum = 0;
  for (const Number& value : values) {
    if (value.is_undefined()) {
      ++moments.undefined;
    } else {
      sum += value;
    }
  }
  const auto count = static_cast<double>(values.size() - moments.undefined);
  if (count == 0) {
    moments.mean = moments.deviation = values.empty() ? weighted_mean(0, 0) : values.front();
    return moments;
  }
  moments.mean = sum / count;
  double squares = 0;
  for (const Number& value : values) {
    if (!value.is_undefined())
      squares += (value - moments.mean) * (value - moments.mean);
  }
  moments.deviation = count > 1 ? Number(std::sqrt(squares / (count - 1)))
                                : Number::undefined("one fold has a value");
  return moments;
}

nlohmann::json cross_validation_summary(const nlohmann::json& folds) {
  double seconds = 0;
  for (const nlohmann::json& fold : folds) {
    seconds += fold.at("training_time_seconds").get<double>();
    for (const auto& [part, key] : {std::pair("validation", "validation_time_seconds"),
                                    std::pair("test", "test_time_seconds")}) {
      if (fold.contains(part))
        seconds += fold.at(part).at(key).get<double>();
    }
  }
  nlohmann::json undefined = nlohmann::json::object();
  const auto over_folds = [&](const std::string& name) {
    std::vector<Number> values;
    std::string where;
    for (const nlohmann::json& fold : folds) {
      values.push_back(judged_number(judging_part(fold), name));
      if (values.back().is_undefined() && where.empty())
        where = fold.at("name").get<std::string>() + ": " + values.back().why();
    }
    FoldMoments moments = moments_over_folds(values);
    if (moments.undefined > 0) {
      undefined[name] = "in " + std::to_string(moments.undefined) + " of " +
                        std::to_string(values.size()) + " folds (" + where + ")";
    }
    return moments;
  };
  nlohmann::json means = nlohmann::json::object();
  nlohmann::json deviations = nlohmann::json::object();
  for (const auto& [name, ignored] : judging_part(folds.front()).at("metrics").items()) {
    const FoldMoments metric = over_folds(name);
    means[name] = Number(metric.mean);
    deviations[name] = Number(metric.deviation);
  }
  const FoldMoments loss = over_folds(kLossOfPart);
  nlohmann::json summary{{"mean_loss", Number(loss.mean)},
                         {"std_loss", Number(loss.deviation)},
                         {"mean_metrics", std::move(means)},
                         {"std_metrics", std::move(deviations)},
                         {"fold_results", folds},
                         {"total_time_seconds", seconds}};
  if (!undefined.empty())
    summary["undefined"] = std::move(undefined);
  return summary;
}

}  // namespace treadle::internal
