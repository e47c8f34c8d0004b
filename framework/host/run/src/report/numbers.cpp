#include "report/numbers.h"

#include <cmath>

namespace treadle::report {
namespace {

/// The reason where it is undefined.
Json shown(const Number& number) {
  return number.is_undefined() ? as("unknown", number.why()) : Json(number);
}

/// Means over folds with their deviations.
Record over_folds(const CrossValidationResult& folds) {
  const auto moments = [&](const std::string& name, const Number& mean, const Number& deviation) {
    if (mean.is_known())
      return Json{{"mean", mean}, {"deviation", deviation}};
    const auto reason = folds.undefined.find(name);
    return reason == folds.undefined.end() ? shown(mean) : as("unknown", reason->second);
  };
  Record record{{"loss", moments("loss", folds.mean_loss, folds.std_loss)}};
  for (std::size_t i = 0; i < folds.mean_metrics.size(); ++i) {
    const MetricValue& mean = folds.mean_metrics[i];
    record[mean.name] =
        moments(mean.name, mean.value,
                i < folds.std_metrics.size() ? folds.std_metrics[i].value : Number(NAN));
  }
  return record;
}

/// Of these rows; of a training without them, its last loss.
Record numbers_of(const FitResult& training, const std::string& rows) {
  const Scores* const scores = rows == "test"          ? (training.test ? &*training.test : nullptr)
                               : rows == "prequential" ? training.validated()
                               : training.validation   ? &*training.validation
                                                       : nullptr;
  return scores != nullptr ? record_of(*scores) : record_of({training.final_loss, {}});
}

}  // namespace

Record record_of(const Scores& scores) {
  Record record{{"loss", shown(scores.loss)}};
  for (const MetricValue& metric : scores.metrics)
    record[metric.name] = shown(metric.value);
  return record;
}

Numbers read_numbers(const RunResult& result) {
  const std::optional<CrossValidationResult>& folds = result.cross_validation;
  Numbers numbers;
  if (folds && folds->evaluated_on() == "test")
    numbers.rows = "test";
  else if (result.training.prequential)
    numbers.rows = "prequential";
  else
    numbers.rows = folds || result.training.validation ? "validation" : "training";
  numbers.result = folds ? over_folds(*folds) : numbers_of(result.training, numbers.rows);
  if (result.training.test)
    numbers.test = record_of(*result.training.test);
  if (folds) {
    for (const FitResult& fold : folds->fold_results)
      numbers.folds.push_back(numbers_of(fold, numbers.rows));
  }
  numbers.label = "loss";
  if (result.training.transformed_target)
    numbers.label = List{"loss ", as("soft", "of the transformed target")};
  numbers.metrics = result.metrics();
  return numbers;
}

Json number_in(const Record& record, const std::string& name) {
  const auto found = record.find(name);
  return found == record.end() ? Json() : found->second;
}

}  // namespace treadle::report
