#include <algorithm>
#include <utility>

#include "report/sections/sections.h"

namespace treadle::report {
namespace {

/// "kept 7" where the weights of an epoch were selected.
Json kept_epoch(const FitResult& training) {
  return training.weights.are_best ? Json(List{"kept ", as("count", training.weights.epoch)})
                                   : Json();
}

Json label_of(const MetricValue& metric) {
  if (metric.direction == Direction::kNone)
    return metric.name;
  const bool is_higher = metric.direction == Direction::kHigherIsBetter;
  Json arrow{{"soft", is_higher ? "↑" : "↓"},
             {"title", is_higher ? "higher is better" : "lower is better"}};
  return List{metric.name + " ", std::move(arrow)};
}

/// The loss and each metric in a row, each record in a column.
List number_rows(const Numbers& numbers, const std::vector<Record>& records) {
  const auto row = [&](Json label, const std::string& name) {
    List cells{std::move(label)};
    for (const Record& record : records)
      cells.push_back(number_in(record, name));
    return cells;
  };
  List rows;
  rows.emplace_back(row(numbers.label, "loss"));
  for (const MetricValue& metric : numbers.metrics) {
    if (!is_of_one_class(metric.name))
      rows.emplace_back(row(label_of(metric), metric.name));
  }
  return rows;
}

Json fold_notes(const ReportInput& input, const Numbers& numbers) {
  List text{"Deviation is the sample standard deviation over the folds."};
  if (numbers.rows == "test")
    text.emplace_back(" Each fold is measured on its test rows, which selected nothing.");
  const CrossValidationResult& folds = *input.result.cross_validation;
  if (const std::string& by = folds.fold_results.front().weights.by; !by.empty())
    text.emplace_back(" Each fold is evaluated with its best weights by " + by + ".");
  if (folds.total_time_seconds > 0) {
    append(text, {" Training and evaluation took ", as("seconds", folds.total_time_seconds),
                  " in total over the folds."});
  }
  const bool is_refit =
      std::any_of(input.curves.begin(), input.curves.end(),
                  [](const TrainingCurve& curve) { return curve.fit == "final"; });
  if (is_refit && input.result.has_model()) {
    append(text,
           {" The model of this run was then trained on all ", numbers.test ? "other rows" : "rows",
            ", for ", as("count", input.result.training.total_epochs), " epochs."});
  }
  return note(std::move(text));
}

/// The rows that selected the weights, and the rows that measure the model.
Json evaluation_note(const RunResult& result, const Numbers& numbers) {
  const FitResult& training =
      numbers.folds.empty() ? result.training : result.cross_validation->fold_results.front();
  const bool did_select = training.weights.on == "validation";
  const std::string by = training.weights.by.empty() ? "" : " by " + training.weights.by;
  if (result.training.test) {
    return note(List{
        "The test rows (", as("count", result.training.test->sample_count),
        ") were not used in training or selection: their numbers measure the model. The "
        "validation rows " +
            (did_select ? "selected the weights" + by : "selected nothing in this run") + "."});
  }
  if (!did_select || numbers.rows == "test")
    return {};
  return note("The validation rows also selected the weights" + by +
              ", so their numbers are optimistic; \"test_fraction\" in \"validation\" "
              "sets rows aside for evaluation only.");
}

double most_waiting(const std::vector<RankTime>& ranks) {
  double most = 0;
  for (const RankTime& rank : ranks)
    most = std::max(most, rank.waiting_share);
  return most;
}

}  // namespace

Json headline(const RunResult& result, const Numbers& numbers) {
  constexpr std::size_t kMostTiles = 8;
  List tiles;
  const auto add = [&](Json label, Json value, Json detail = {}) {
    tiles.push_back(
        {{"label", std::move(label)}, {"value", std::move(value)}, {"detail", std::move(detail)}});
  };
  const bool is_tested = numbers.test.has_value();
  std::vector<std::string> names;
  for (const MetricValue& metric : numbers.metrics) {
    if (!is_of_one_class(metric.name))
      names.push_back(metric.name);
  }
  names.resize(std::min<std::size_t>(names.size(), is_tested ? 2 : 3));
  for (const std::string& name : names) {
    if (is_tested)
      add("test " + name, number_in(*numbers.test, name));
  }
  for (const std::string& name : names)
    add(is_tested ? numbers.rows + " " + name : name, number_in(numbers.result, name));
  add(List{numbers.rows + " ", numbers.label}, number_in(numbers.result, "loss"));
  const FitResult& training = result.training;
  if (result.has_model())
    add("epochs", as("count", training.total_epochs), kept_epoch(training));
  if (result.time.seconds > 0)
    add("wall time", as("seconds", result.time.seconds));
  else if (result.has_model())
    add("training time", as("seconds", training.training_time_seconds));
  if (!training.model_info.name.empty())
    add("parameters", as("count", training.model_info.parameter_count));
  if (tiles.size() < kMostTiles && !result.time.ranks.empty()) {
    const double waiting = most_waiting(result.time.ranks);
    add("processes", as("count", result.time.ranks.size()),
        waiting > 0 ? Json(List{as("share", waiting), " waiting"}) : Json());
  }
  if (tiles.size() < kMostTiles && training.validation) {
    add(is_tested ? "validation rows" : "rows evaluated on",
        as("count", training.validation->sample_count));
  }
  return {{"block", "tiles"}, {"tiles", std::move(tiles)}};
}

Json result_section(const ReportInput& input, const Numbers& numbers) {
  const bool has_folds = !numbers.folds.empty();
  List columns{"", has_folds                       ? "mean ± deviation"
                   : numbers.rows == "prequential" ? "mean of windows"
                                                   : numbers.rows};
  std::vector<Record> records{numbers.result};
  List epochs{"epochs", ""};
  if (numbers.test) {
    columns.emplace_back("test");
    records.push_back(*numbers.test);
    epochs.emplace_back("");
  }
  records.insert(records.end(), numbers.folds.begin(), numbers.folds.end());
  List rows = number_rows(numbers, records);
  if (!has_folds)
    return group(
        {card("Result", {table(columns, std::move(rows)), evaluation_note(input.result, numbers)}),
         model_card(input.result)});
  for (const FitResult& fold : input.result.cross_validation->fold_results) {
    columns.emplace_back(fold.name);
    List trained{as("count", fold.total_epochs)};
    if (Json kept = kept_epoch(fold); !kept.is_null())
      append(trained, {" ", as("soft", std::move(kept))});
    epochs.emplace_back(std::move(trained));
  }
  rows.emplace_back(std::move(epochs));
  return card("Result", {table(columns, std::move(rows)), fold_notes(input, numbers),
                         evaluation_note(input.result, numbers)});
}

Json baselines(const RunResult& result, const Numbers& numbers) {
  if (result.baselines.empty())
    return {};
  const bool on_test = result.baselines.front().evaluated_on == "test";
  List columns{"", "model"};
  std::vector<Record> records{on_test && numbers.test ? *numbers.test : numbers.result};
  List sizes{"parameters", as("count", result.training.model_info.parameter_count)};
  for (const BaselineResult& baseline : result.baselines) {
    columns.emplace_back(baseline.name);
    records.push_back(record_of(baseline));
    sizes.push_back(as("count", baseline.parameter_count));
  }
  List rows = number_rows(numbers, records);
  rows.emplace_back(std::move(sizes));
  return card("Baselines", {table(columns, std::move(rows)),
                            note(std::string("On the same ") + (on_test ? "test" : "validation") +
                                 " rows. Baselines with parameters were trained like the model.")});
}

}  // namespace treadle::report
