#include <string>

#include "report/sections/sections.h"

namespace treadle::report {
namespace {

/// "temperature 1.83", "threshold 0.41".
List fitted_numbers(const OutputsResult::Stage& stage) {
  List numbers;
  const Record record = record_of({{}, stage.learned});
  for (const MetricValue& value : stage.learned) {
    const std::string separator = numbers.empty() ? "" : ", ";
    append(numbers, {separator + value.name + " ", number_in(record, value.name)});
  }
  return numbers;
}

}  // namespace

Json outputs(const RunResult& result, const Numbers& numbers) {
  if (!result.outputs)
    return {};
  const OutputsResult& outputs = *result.outputs;
  List stages;
  for (const OutputsResult::Stage& stage : outputs.stages)
    stages.push_back(List{stage.name + (stage.target.empty() ? "" : " of " + stage.target),
                          fitted_numbers(stage)});
  const bool are_set_aside = outputs.rows_from == "set_aside";
  List text{"Learned from ", as("count", outputs.rows),
            are_set_aside ? " training rows that were set aside."
                          : " rows, each predicted by a fold that was not trained on it."};
  if (!outputs.not_evaluated.empty()) {
    std::string names;
    for (const std::string& name : outputs.not_evaluated)
      names += (names.empty() ? "" : ", ") + name;
    // Of several folds, all have something to learn from, but for the first of a walk.
    const bool have_trained = outputs.not_evaluated.size() > 1;
    text.push_back(" The numbers of " + names + " are without: " +
                   (have_trained ? "models that make the intervals were trained on their rows."
                                 : "nothing was left to learn from."));
  }
  const Record& with = numbers.test && !result.cross_validation ? *numbers.test : numbers.result;
  const Record without = record_of({{}, outputs.metrics_without});
  List rows;
  for (const MetricValue& metric : outputs.metrics_without) {
    if (!is_of_one_class(metric.name))
      rows.push_back(
          List{metric.name, number_in(with, metric.name), number_in(without, metric.name)});
  }
  return card("Outputs", {facts(std::move(stages)), table({"", "with", "without"}, std::move(rows)),
                          note(std::move(text))});
}

}  // namespace treadle::report
