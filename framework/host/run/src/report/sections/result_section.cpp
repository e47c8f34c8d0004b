#include <algorithm>
#include <utility>

#include "report/sections/sections.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;

/// "kept 7" where the weights of an epoch were selected.
Json kept_epoch(const Json& training) {
  return text_at_path(training, {"weights", "chosen"}) == "best"
             ? Json(List{"kept ", as("count", at_path(training, {"weights", "epoch"}))})
             : Json();
}

Json label_of(const Json& result, const std::string& metric) {
  for (const Json& one : at_path(result, {"metric_list"})) {
    const std::string better = text_at_path(one, {"better"});
    if (text_at_path(one, {"name"}) == metric && !better.empty()) {
      Json arrow{{"soft", better == "higher" ? "↑" : "↓"}, {"title", better + " is better"}};
      return List{metric + " ", std::move(arrow)};
    }
  }
  return metric;
}

/// The loss and each metric in a row, each record in a column.
List number_rows(const Json& result, const Numbers& numbers, const List& records) {
  const auto row = [&](Json label, const std::string& name) {
    List cells{std::move(label)};
    for (const Json& record : records)
      cells.push_back(number_in(record, name));
    return cells;
  };
  List rows;
  rows.emplace_back(row(numbers.label, "loss"));
  for (const std::string& name : numbers.names) {
    if (!is_of_one_class(name))
      rows.emplace_back(row(label_of(result, name), name));
  }
  return rows;
}

Json fold_notes(const ReportInput& input, const Numbers& numbers) {
  List text{"Deviation is the sample standard deviation over the folds."};
  if (numbers.rows == "test")
    text.emplace_back(" Each fold is measured on its test rows, which selected nothing.");
  const Json& fold = at_path(input.result, {"fold_results"}).front();
  if (const std::string by = text_at_path(fold, {"weights", "by"}); !by.empty())
    text.emplace_back(" Each fold is evaluated with its best weights by " + by + ".");
  if (const Json& time = at_path(input.result, {"total_time_seconds"}); time.is_number())
    append(text,
           {" Training and evaluation took ", as("seconds", time), " in total over the folds."});
  const bool is_refit =
      std::any_of(input.curves.begin(), input.curves.end(),
                  [](const TrainingCurve& curve) { return curve.fit == "final"; });
  const Json& epochs = at_path(input.result, {"total_epochs"});
  if (is_refit && epochs.is_number_integer()) {
    append(text, {" The model of this run was then trained on all ",
                  numbers.test.is_object() ? "other rows" : "rows", ", for ", as("count", epochs),
                  " epochs."});
  }
  return note(std::move(text));
}

/// The rows that selected the weights, and the rows that measure the model.
Json evaluation_note(const Json& result, const Numbers& numbers) {
  const Json& training = numbers.folds.empty() ? result : at_path(result, {"fold_results"}).front();
  const bool did_select = text_at_path(training, {"weights", "on"}) == "validation";
  std::string by = text_at_path(training, {"weights", "by"});
  if (!by.empty())
    by = " by " + by;
  if (const Json& rows = at_path(numbers.test, {"sample_count"}); rows.is_number_integer()) {
    return note(List{
        "The test rows (", as("count", rows),
        ") were not used in training or selection: their numbers measure the model. The "
        "validation rows " +
            (did_select ? "selected the weights" + by : "selected nothing in this run") + "."});
  }
  if (!did_select || numbers.rows == "test")
    return {};
  return note(
      "The validation rows selected the weights" + by +
      " that they evaluate, so their numbers are optimistic; \"test_fraction\" in \"validation\" "
      "sets rows aside for evaluation only.");
}

}  // namespace

Json headline(const Json& result, const Numbers& numbers) {
  constexpr std::size_t kMostTiles = 8;
  List tiles;
  const auto add = [&](Json label, Json value, Json detail = {}) {
    tiles.push_back(
        {{"label", std::move(label)}, {"value", std::move(value)}, {"detail", std::move(detail)}});
  };
  const auto add_integer = [&](const char* label, const Json& value, Json detail = {}) {
    if (value.is_number_integer())
      add(label, as("count", value), std::move(detail));
  };
  const bool is_tested = numbers.test.is_object();
  std::vector<std::string> names = numbers.names;
  std::erase_if(names, is_of_one_class);
  names.resize(std::min<std::size_t>(names.size(), is_tested ? 2 : 3));
  for (const std::string& name : names) {
    if (is_tested)
      add("test " + name, number_in(numbers.test, name));
  }
  for (const std::string& name : names)
    add(is_tested ? numbers.rows + " " + name : name, number_in(numbers.result, name));
  add(List{numbers.rows + " ", numbers.label}, number_in(numbers.result, "loss"));
  add_integer("epochs", at_path(result, {"total_epochs"}), kept_epoch(result));
  const Json& passed = at_path(result, {"time", "seconds"});
  const Json& trained = at_path(result, {"training_time_seconds"});
  if (passed.is_number() || trained.is_number())
    add(passed.is_number() ? "wall time" : "training time",
        as("seconds", passed.is_number() ? passed : trained));
  add_integer("parameters", at_path(result, {"model_info", "parameter_count"}));
  if (tiles.size() < kMostTiles)
    add_integer(is_tested ? "validation rows" : "rows evaluated on",
                at_path(result, {"validation", "sample_count"}));
  return {{"block", "tiles"}, {"tiles", std::move(tiles)}};
}

Json result_section(const ReportInput& input, const Numbers& numbers) {
  const bool has_folds = !numbers.folds.empty();
  List columns{"", has_folds                       ? "mean ± deviation"
                   : numbers.rows == "prequential" ? "mean of windows"
                                                   : numbers.rows};
  List records{numbers.result};
  List epochs{"epochs", ""};
  if (numbers.test.is_object()) {
    columns.emplace_back("test");
    records.push_back(numbers.test);
    epochs.emplace_back("");
  }
  append(records, numbers.folds);
  List rows = number_rows(input.result, numbers, records);
  if (!has_folds)
    return group(
        {card("Result", {table(columns, std::move(rows)), evaluation_note(input.result, numbers)}),
         model_card(input.result)});
  const Json& folds = at_path(input.result, {"fold_results"});
  for (std::size_t i = 0; i < folds.size(); ++i) {
    const std::string name = text_at_path(folds[i], {"name"});
    columns.emplace_back(name.empty() ? "fold-" + std::to_string(i + 1) : name);
    List trained{as("count", at_path(folds[i], {"total_epochs"}))};
    if (Json kept = kept_epoch(folds[i]); !kept.is_null())
      append(trained, {" ", as("soft", std::move(kept))});
    epochs.emplace_back(std::move(trained));
  }
  rows.emplace_back(std::move(epochs));
  return card("Result", {table(columns, std::move(rows)), fold_notes(input, numbers),
                         evaluation_note(input.result, numbers)});
}

Json baselines(const Json& result, const Numbers& numbers) {
  const Json& baselines = at_path(result, {"baselines"});
  if (!baselines.is_array() || baselines.empty())
    return {};
  const bool on_test = text_at_path(baselines.front(), {"evaluated_on"}) == "test";
  List columns{"", "model"};
  List records{on_test ? numbers.test : numbers.result};
  List sizes{"parameters", as("count", at_path(result, {"model_info", "parameter_count"}))};
  for (const Json& baseline : baselines) {
    columns.push_back(at_path(baseline, {"name"}));
    records.push_back(baseline);
    sizes.push_back(as("count", at_path(baseline, {"parameter_count"})));
  }
  List rows = number_rows(result, numbers, records);
  rows.emplace_back(std::move(sizes));
  return card("Baselines", {table(columns, std::move(rows)),
                            note(std::string("On the same ") + (on_test ? "test" : "validation") +
                                 " rows. Baselines with parameters were trained like the model.")});
}

}  // namespace treadle::report
