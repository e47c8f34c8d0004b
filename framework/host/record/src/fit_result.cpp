#include <treadle/host/record/fit_result.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <treadle/base/error.h>

#include "result_fields.h"

namespace treadle {
namespace {

constexpr std::string_view kLoss = "loss";

double seconds_of(const std::optional<EvaluationResult>& evaluation) {
  return evaluation ? evaluation->seconds : 0;
}

const MetricValue* find_metric(const std::vector<MetricValue>& metrics, std::string_view name) {
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [&](const MetricValue& metric) { return metric.name == name; });
  return found == metrics.end() ? nullptr : &*found;
}

}  // namespace

const Number* Scores::find(std::string_view name) const {
  if (name == kLoss)
    return &loss;
  const MetricValue* const metric = find_metric(metrics, name);
  return metric == nullptr ? nullptr : &metric->value;
}

const Number& Scores::at(std::string_view name) const {
  if (const Number* const found = find(name))
    return *found;
  std::vector<std::string> names{std::string(kLoss)};
  for (const MetricValue& metric : metrics)
    names.push_back(metric.name);
  throw UsageError("no metric is called " + quote_text(name) + "; known: " + quoted_list(names));
}

std::string_view FitResult::evaluated_on() const {
  return test ? "test" : prequential ? "prequential" : "validation";
}

const Scores* FitResult::evaluated() const {
  return test ? &*test : validated();
}

const Scores* FitResult::validated() const {
  if (prequential)
    return &*prequential;
  return validation ? &*validation : nullptr;
}

std::string_view CrossValidationResult::evaluated_on() const {
  return !fold_results.empty() && fold_results.front().test ? "test" : "validation";
}

FoldMoments moments_over_folds(const std::vector<Number>& values) {
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

CrossValidationResult summarize_folds(std::vector<FitResult> folds) {
  TREADLE_EXPECTS(!folds.empty(), "there is at least one fold");
  CrossValidationResult result;
  for (const FitResult& fold : folds) {
    result.total_time_seconds +=
        fold.training_time_seconds + seconds_of(fold.validation) + seconds_of(fold.test);
  }
  const auto over_folds = [&](const std::string& name) {
    std::vector<Number> values;
    std::string where;
    for (const FitResult& fold : folds) {
      const Scores* const scores = fold.evaluated();
      const Number* const value = scores == nullptr ? nullptr : scores->find(name);
      values.push_back(value == nullptr ? Number(NAN) : *value);
      if (values.back().is_undefined() && where.empty())
        where = fold.name + ": " + values.back().why();
    }
    FoldMoments moments = moments_over_folds(values);
    if (moments.undefined > 0) {
      result.undefined[name] = "in " + std::to_string(moments.undefined) + " of " +
                               std::to_string(values.size()) + " folds (" + where + ")";
    }
    return moments;
  };
  if (const Scores* const first = folds.front().evaluated()) {
    for (const MetricValue& metric : first->metrics) {
      const FoldMoments moments = over_folds(metric.name);
      result.mean_metrics.push_back({metric.name, moments.mean, metric.direction});
      result.std_metrics.push_back({metric.name, moments.deviation, metric.direction});
    }
  }
  const FoldMoments loss = over_folds(std::string(kLoss));
  result.mean_loss = loss.mean;
  result.std_loss = loss.deviation;
  result.fold_results = std::move(folds);
  return result;
}

nlohmann::json fields::rows_of(const ResultTable& table) {
  nlohmann::json rows = table.values;
  if (table.outputs) {
    for (nlohmann::json& row : rows) {
      if (!row.empty() && row.front().is_number())
        row.front() = static_cast<std::int64_t>(row.front().get<double>());
    }
  }
  return rows;
}

void fields::order_like_folds(CrossValidationResult& result) {
  const Scores* const first =
      result.fold_results.empty() ? nullptr : result.fold_results.front().evaluated();
  if (first == nullptr)
    return;
  for (std::vector<MetricValue>* const metrics : {&result.mean_metrics, &result.std_metrics}) {
    std::vector<MetricValue> ordered;
    for (const MetricValue& metric : first->metrics) {
      if (const MetricValue* const found = find_metric(*metrics, metric.name))
        ordered.push_back({metric.name, found->value, metric.direction});
    }
    for (MetricValue& metric : *metrics) {
      if (find_metric(ordered, metric.name) == nullptr)
        ordered.push_back(std::move(metric));
    }
    *metrics = std::move(ordered);
  }
}

nlohmann::json to_json(const FitResult& result) {
  nlohmann::json stored = nlohmann::json::object();
  fields::FieldWriter writer(stored);
  describe(writer, result);
  const Scores* const scores = result.validated();
  writer.metrics("metrics", scores != nullptr ? scores->metrics : std::vector<MetricValue>());
  return stored;
}

FitResult fit_result_from(const nlohmann::json& stored, const std::string& place) {
  return fields::read<FitResult>(stored, place);
}

nlohmann::json to_json(const EvaluationResult& result) {
  nlohmann::json stored = nlohmann::json::object();
  fields::FieldWriter writer(stored);
  evaluation_fields(writer, result, "validation_time_seconds");
  return stored;
}

nlohmann::json to_json(const ResultTable& table) {
  return fields::written(table);
}

nlohmann::json to_json(const PrequentialResult& result) {
  return fields::written(result);
}

nlohmann::json to_json(const StructureResult& result) {
  return fields::written(result);
}

nlohmann::json to_json(const ModelInfo& info) {
  return fields::written(info);
}

}  // namespace treadle
