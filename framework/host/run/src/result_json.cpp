#include "result_json.h"

#include <cmath>

#include <treadle/core/module_state.h>

namespace treadle::internal {
namespace {

/// JSON has no NaN: null stands for it.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

/// Sums in a fixed order; NaN (null) in any fold makes the mean NaN.
struct Moments {
  nlohmann::json mean;
  nlohmann::json deviation;
};

Moments moments(const std::vector<nlohmann::json>& values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const nlohmann::json& value : values)
    sum += value.is_number() ? value.get<double>() : NAN;
  const double mean = sum / count;
  double squares = 0;
  for (const nlohmann::json& value : values) {
    const double distance = (value.is_number() ? value.get<double>() : NAN) - mean;
    squares += distance * distance;
  }
  return {number(mean), number(count > 1 ? std::sqrt(squares / (count - 1)) : NAN)};
}

}  // namespace

nlohmann::json to_json(const TrainingResult& result) {
  return {{"final_loss", number(result.final_loss)},
          {"best_loss", number(result.best_loss)},
          {"best_epoch", result.best_epoch},
          {"total_epochs", result.total_epochs},
          {"training_time_seconds", result.training_time_seconds},
          {"stop_reason", result.stop_reason}};
}

nlohmann::json to_json(const ValidationResult& result) {
  nlohmann::json tables = nlohmann::json::array();
  for (const MetricTable& table : result.metrics.tables)
    tables.push_back(to_json(table));
  return {{"loss", number(result.loss)},
          {"metrics", metrics_to_json(result.metrics.values)},
          {"sample_count", result.sample_count},
          {"validation_time_seconds", result.validation_time_seconds},
          {"tables", std::move(tables)}};
}

nlohmann::json to_json(const MetricTable& table) {
  nlohmann::json rows = nlohmann::json::array();
  const at::Tensor values = table.values.contiguous();
  const double* data = values.data_ptr<double>();
  for (std::int64_t row = 0; row < values.size(0); ++row) {
    nlohmann::json cells = nlohmann::json::array();
    for (std::int64_t column = 0; column < values.size(1); ++column) {
      cells.push_back(number(data[row * values.size(1) + column]));
    }
    rows.push_back(std::move(cells));
  }
  return {{"name", table.name},
          {"row_labels", table.row_labels},
          {"column_labels", table.column_labels},
          {"values", std::move(rows)}};
}

nlohmann::json model_info(const Ingredients& ingredients, Trial& trial) {
  std::int64_t count = 0;
  for (const at::Tensor& parameter : distinct_parameters(trial.model()))
    count += parameter.numel();
  nlohmann::json inputs = nlohmann::json::object();
  for (const PortSpec& port : trial.model_spec().inputs)
    inputs[port.name] = port.shape;
  nlohmann::json outputs = nlohmann::json::object();
  for (const OutputSpec& port : trial.model_spec().outputs) {
    outputs[port.name] = std::vector<std::int64_t>{port.width};
  }
  const ResolvedWorkflow& workflow = ingredients.workflow();
  return {{"name", workflow.name},
          {"version", "1"},
          {"architecture", workflow.resolved.at("model")},
          {"parameter_count", count},
          {"input_shape", std::move(inputs)},
          {"output_shape", std::move(outputs)}};
}

nlohmann::json cross_validation_summary(const nlohmann::json& folds) {
  std::vector<nlohmann::json> losses;
  double seconds = 0;
  for (const nlohmann::json& fold : folds) {
    losses.push_back(fold.at("validation").at("loss"));
    seconds += fold.at("training_time_seconds").get<double>() +
               fold.at("validation").at("validation_time_seconds").get<double>();
  }
  const Moments loss = moments(losses);
  nlohmann::json means = nlohmann::json::object();
  nlohmann::json deviations = nlohmann::json::object();
  for (const auto& [name, ignored] : folds.front().at("metrics").items()) {
    std::vector<nlohmann::json> values;
    for (const nlohmann::json& fold : folds)
      values.push_back(fold.at("metrics").value(name, nlohmann::json()));
    const Moments metric = moments(values);
    means[name] = metric.mean;
    deviations[name] = metric.deviation;
  }
  return {{"mean_loss", loss.mean},
          {"std_loss", loss.deviation},
          {"mean_metrics", std::move(means)},
          {"std_metrics", std::move(deviations)},
          {"fold_results", folds},
          {"total_time_seconds", seconds}};
}

}  // namespace treadle::internal
