#include "report/numbers.h"

#include <algorithm>

#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;

/// Means over folds with their deviations.
Json over_folds(const Json& result) {
  const auto moments = [](const Json& mean, const Json& deviation) {
    return mean.is_null() ? Json() : Json{{"mean", mean}, {"deviation", deviation}};
  };
  Json record{{"loss", moments(at_path(result, {"mean_loss"}), at_path(result, {"std_loss"}))},
              {"metrics", Json::object()},
              {"undefined", at_path(result, {"undefined"})}};
  const Json& means = at_path(result, {"mean_metrics"});
  for (const auto& [name, mean] : means.items())
    record["metrics"][name] = moments(mean, at_path(result, {"std_metrics", name}));
  return record;
}

/// The record of these rows; without one of its own, a training has its numbers at its top.
Json record_of(const Json& training, const std::string& rows) {
  const Json& own = at_path(training, {rows});
  return own.is_object() ? own
                         : Json{{"loss", at_path(training, {"final_loss"})},
                                {"metrics", at_path(training, {"metrics"})},
                                {"undefined", at_path(training, {"undefined"})}};
}

}  // namespace

Numbers read_numbers(const Json& result) {
  const Json& folds = at_path(result, {"fold_results"});
  Numbers numbers;
  if (text_at_path(result, {"folds_evaluated_on"}) == "test")
    numbers.rows = "test";
  else if (at_path(result, {"prequential"}).is_object())
    numbers.rows = "prequential";
  else
    numbers.rows =
        folds.is_array() || at_path(result, {"validation"}).is_object() ? "validation" : "training";
  numbers.result = folds.is_array() ? over_folds(result) : record_of(result, numbers.rows);
  numbers.test = at_path(result, {"test"});
  for (const Json& fold : folds)
    numbers.folds.push_back(record_of(fold, numbers.rows));
  numbers.label = "loss";
  if (at_path(result, {"transformed_target"}) == true)
    numbers.label = List{"loss ", as("soft", "of the transformed target")};
  const Json& metrics = at_path(numbers.result, {"metrics"});
  for (const Json& metric : at_path(result, {"metric_list"})) {
    if (const std::string name = text_at_path(metric, {"name"}); metrics.contains(name))
      numbers.names.push_back(name);
  }
  for (const auto& [name, unused] : metrics.items()) {
    if (std::find(numbers.names.begin(), numbers.names.end(), name) == numbers.names.end())
      numbers.names.push_back(name);
  }
  return numbers;
}

bool is_of_one_class(const std::string& metric) {
  return metric.find('.') != std::string::npos;
}

Json number_in(const Json& record, const std::string& name) {
  const Json& number =
      name == "loss" ? at_path(record, {name}) : at_path(record, {"metrics", name});
  const Json& reason = at_path(record, {"undefined", name});
  return number.is_null() && reason.is_string() ? as("unknown", reason) : number;
}

}  // namespace treadle::report
