#include "report/sections/report_metrics.h"

#include <algorithm>

#include "report/report_html.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;
using Json = nlohmann::json;

const Json& result_metrics(const ReportInput& input) {
  if (is_cross_validation(input))
    return at_path(input.result, {"mean_metrics"});
  const Json& validation = at_path(input.result, {"validation", "metrics"});
  return validation.is_object() ? validation : at_path(input.result, {"metrics"});
}

}  // namespace

std::string_view judged_by(const ReportInput& input) {
  if (text_at_path(input.result, {"folds_evaluated_on"}) == "test")
    return "test";
  if (at_path(input.result, {"prequential"}).is_object())
    return "prequential";
  return is_cross_validation(input) || at_path(input.result, {"validation"}).is_object()
             ? "validation"
             : "training";
}

bool is_cross_validation(const ReportInput& input) {
  return at_path(input.result, {"fold_results"}).is_array();
}

std::vector<std::string> metric_names(const ReportInput& input) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  const Json& metrics = result_metrics(input);
  for (const Json& metric : at_path(input.result, {"metric_list"})) {
    if (const std::string name = text_at_path(metric, {"name"}); metrics.contains(name))
      add(name);
  }
  for (const TrainingCurve& curve : input.curves) {
    if (curve.epochs.empty())
      continue;
    for (const MetricValue& metric : curve.epochs.front().metrics)
      add(metric.name);
  }
  if (metrics.is_object()) {
    for (const auto& [name, unused] : metrics.items())
      add(name);
  }
  return names;
}

bool is_of_one_class(std::string_view name) {
  return name.find('.') != std::string_view::npos;
}

const Json& test_of(const ReportInput& input) {
  return at_path(input.result, {"test"});
}

std::string evaluation_note(const ReportInput& input) {
  const Json& training =
      is_cross_validation(input) ? at_path(input.result, {"fold_results"}).front() : input.result;
  const bool did_choose = text_at_path(training, {"weights", "on"}) == "validation";
  std::string by = text_at_path(training, {"weights", "by"});
  if (!by.empty())
    by = " by " + html::escape(by);
  if (const Json& rows = at_path(test_of(input), {"sample_count"}); rows.is_number_integer()) {
    return "The test rows (" + html::count(rows) +
           ") were not used in training or selection: their numbers measure the model. The "
           "validation rows " +
           (did_choose ? "chose the weights" + by : "chose nothing in this run") + ".";
  }
  if (!did_choose || judged_by(input) == "test")
    return {};
  return "The validation rows chose the weights" + by +
         " that they evaluate, so their numbers are optimistic; \"test_fraction\" in "
         "\"validation\" sets rows aside for evaluation only.";
}

std::string mean_and_deviation(const Json& mean, const Json& deviation) {
  std::string text = html::number(mean);
  if (deviation.is_number())
    text += " <small class=\"spread\">± " + html::number(deviation) + "</small>";
  return text;
}

std::string metric_value(const ReportInput& input, const std::string& name) {
  const Json& value = at_path(result_metrics(input), {name});
  return is_cross_validation(input)
             ? mean_and_deviation(value, at_path(input.result, {"std_metrics", name}))
             : html::number(value);
}

}  // namespace treadle::report
