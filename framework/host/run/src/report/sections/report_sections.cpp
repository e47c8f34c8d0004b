#include "report/sections/report_sections.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <treadle/host/catalog/workflow_document.h>

#include "events/event_log.h"
#include "report/report_html.h"
#include "report/sections/report_adaptation.h"
#include "report/sections/report_forecasts.h"
#include "report/sections/report_metrics.h"
#include "report/sections/report_model.h"
#include "report/sections/report_residuals.h"
#include "result/json_path.h"

namespace treadle::report {
namespace {

using internal::at_path;
using internal::text_at_path;
using Json = nlohmann::json;

constexpr std::size_t kMostTiles = 8;
constexpr std::size_t kMostHistoryRows = 600;
constexpr std::size_t kMostPointsPerCurve = 1200;

std::string result_loss(const ReportInput& input) {
  if (is_cross_validation(input)) {
    return mean_and_deviation(at_path(input.result, {"mean_loss"}),
                              at_path(input.result, {"std_loss"}));
  }
  const Json& tested = at_path(input.result, {"prequential", "loss"});
  const Json& validation =
      tested.is_number() ? tested : at_path(input.result, {"validation", "loss"});
  return html::number(validation.is_number() ? validation : at_path(input.result, {"final_loss"}));
}

std::vector<std::string> overall_names(const ReportInput& input) {
  std::vector<std::string> names = metric_names(input);
  std::erase_if(names, is_of_one_class);
  return names;
}

std::string tile(std::string_view value, std::string_view label, bool is_main = false) {
  return std::string(is_main ? "<div class=\"tile main\"><span>" : "<div class=\"tile\"><span>") +
         std::string(label) + "</span><b>" + std::string(value) + "</b></div>\n";
}

std::string pretty_json(const std::string& text) {
  return "<pre>" + html::escape(text) + "</pre>";
}

/// The last epoch that was the best so far; the number of epochs when none was, or none was
/// validated: the best by training loss does not measure a model.
std::size_t best_epoch(const TrainingCurve& curve) {
  for (std::size_t i = curve.epochs.size(); i > 0; --i) {
    if (curve.epochs[i - 1].best && curve.epochs[i - 1].val_loss)
      return i - 1;
  }
  return curve.epochs.size();
}

/// Which epochs of a curve are kept when there are more than fit: every n-th, the best, the last.
std::vector<std::size_t> kept_epochs(const TrainingCurve& curve, std::size_t most) {
  const std::size_t count = curve.epochs.size();
  const std::size_t stride = std::max<std::size_t>(1, (count + most - 1) / most);
  const std::size_t best = best_epoch(curve);
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % stride == 0 || i + 1 == count || i == best)
      kept.push_back(i);
  }
  return kept;
}

const MetricValue* find_metric(const EpochSummary& epoch, std::string_view name) {
  const auto found = std::find_if(epoch.metrics.begin(), epoch.metrics.end(),
                                  [&](const MetricValue& metric) { return metric.name == name; });
  return found == epoch.metrics.end() ? nullptr : &*found;
}

/// What the models showed, in the order of the first rows.
std::vector<std::string> logged_names(const ReportInput& input) {
  std::vector<std::string> names;
  for (const TrainingCurve& curve : input.curves) {
    if (curve.epochs.empty())
      continue;
    for (const MetricValue& value : curve.epochs.front().logged) {
      if (std::find(names.begin(), names.end(), value.name) == names.end())
        names.push_back(value.name);
    }
  }
  return names;
}

/// As history.csv calls it.
std::string logged_column(const std::string& name) {
  return "log." + name;
}

Json logged_number(const EpochSummary& epoch, std::string_view name) {
  const auto found = std::find_if(epoch.logged.begin(), epoch.logged.end(),
                                  [&](const MetricValue& value) { return value.name == name; });
  return found == epoch.logged.end() ? Json() : Json(found->value);
}

std::string direction_of(const ReportInput& input, std::string_view name) {
  for (const TrainingCurve& curve : input.curves) {
    if (curve.epochs.empty())
      continue;
    const MetricValue* metric = find_metric(curve.epochs.front(), name);
    if (metric != nullptr && metric->direction == Direction::kHigherIsBetter)
      return " <span class=\"spread\" title=\"higher is better\">↑</span>";
    if (metric != nullptr && metric->direction == Direction::kLowerIsBetter)
      return " <span class=\"spread\" title=\"lower is better\">↓</span>";
  }
  return {};
}

std::string history(const ReportInput& input, const std::vector<std::string>& names) {
  std::size_t total = 0;
  for (const TrainingCurve& curve : input.curves)
    total += curve.epochs.size();
  const bool several = input.curves.size() > 1;
  std::vector<std::string> head;
  if (several)
    head.emplace_back("training");
  head.insert(head.end(), {"epoch", "training loss", "validation loss"});
  for (const std::string& name : names)
    head.push_back(html::escape(name));
  const std::vector<std::string> logged = logged_names(input);
  for (const std::string& name : logged)
    head.push_back(html::escape(logged_column(name)));
  head.emplace_back("learning rate");
  const bool any_decided =
      std::any_of(input.curves.begin(), input.curves.end(), [](const TrainingCurve& curve) {
        return std::any_of(curve.epochs.begin(), curve.epochs.end(),
                           [](const EpochSummary& epoch) { return !epoch.decisions.empty(); });
      });
  if (any_decided)
    head.emplace_back("decided");

  std::vector<std::vector<std::string>> rows;
  for (const TrainingCurve& curve : input.curves) {
    const std::size_t best = best_epoch(curve);
    for (std::size_t i : kept_epochs(curve, kMostHistoryRows / input.curves.size() + 1)) {
      const EpochSummary& epoch = curve.epochs[i];
      std::vector<std::string> row;
      if (several)
        row.push_back(html::escape(curve.fit));
      row.push_back(std::to_string(epoch.epoch) + (i == best ? " (best)" : ""));
      row.push_back(html::number(Json(epoch.train_loss)));
      row.push_back(html::number(epoch.val_loss ? Json(*epoch.val_loss) : Json()));
      for (const std::string& name : names) {
        const MetricValue* metric = find_metric(epoch, name);
        row.push_back(html::number(metric != nullptr ? Json(metric->value) : Json()));
      }
      for (const std::string& name : logged)
        row.push_back(html::number(logged_number(epoch, name)));
      row.push_back(html::number(epoch.learning_rate));
      if (any_decided) {
        std::string decided;
        for (const std::string& decision : epoch.decisions)
          decided += (decided.empty() ? "" : "; ") + html::escape(decision);
        row.push_back(std::move(decided));
      }
      rows.push_back(std::move(row));
    }
  }
  std::string note;
  if (rows.size() < total) {
    note = "<p class=\"note\">" + std::to_string(rows.size()) + " of " + std::to_string(total) +
           " epochs are shown; history.csv beside this file has all.</p>";
  }
  return html::folded_card("Epochs", note + html::scrolling(html::table("wide", head, rows), true));
}

/// "peak_memory_bytes" is written as "peak memory", in MiB.
std::vector<std::string> environment_row(std::string_view key, const Json& value) {
  constexpr std::string_view kBytes = "_bytes";
  std::string text = html::fact(value);
  if (key.ends_with(kBytes) && value.is_number()) {
    key.remove_suffix(kBytes.size());
    text = html::count(value.get<std::int64_t>() >> 20) + " MiB";
  }
  std::string words(key);
  std::replace(words.begin(), words.end(), '_', ' ');
  return {html::escape(words), text};
}

std::string environment_card(const Json& environment) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::vector<std::string>> plugins;
  for (const auto& [key, value] : environment.items()) {
    if (key != "plugins") {
      rows.push_back(environment_row(key, value));
    } else if (value.is_array()) {
      for (const Json& plugin : value) {
        plugins.push_back({html::escape(text_at_path(plugin, {"id"})),
                           html::escape(text_at_path(plugin, {"version"})),
                           "<span class=\"mono\">" +
                               html::escape(text_at_path(plugin, {"build_id"}).substr(0, 16)) +
                               "</span>"});
      }
    }
  }
  std::string text = html::table("text facts", {}, rows);
  if (!plugins.empty()) {
    text += "<details class=\"inner\"><summary>" + std::to_string(plugins.size()) +
            (plugins.size() == 1 ? " plugin" : " plugins") + "</summary>" +
            html::scrolling(html::table("text", {"plugin", "version", "build"}, plugins)) +
            "</details>";
  }
  return html::card("Environment", rows.empty() && plugins.empty() ? "" : text);
}

std::string note_of(const std::string& text) {
  return text.empty() ? text : "<p class=\"note\">" + text + "</p>";
}

/// Behind what validation came to, in a table whose rows are the loss and the metrics.
void add_test_column(const ReportInput& input, const std::vector<std::string>& names,
                     std::vector<std::string>& head, std::vector<std::vector<std::string>>& rows) {
  constexpr std::ptrdiff_t kBehindValidation = 2;
  const Json& test = test_of(input);
  if (!test.is_object())
    return;
  head.insert(head.begin() + kBehindValidation, "test");
  const auto add = [](std::vector<std::string>& row, const Json& value) {
    row.insert(row.begin() + kBehindValidation, html::number(value));
  };
  add(rows.front(), at_path(test, {"loss"}));
  for (std::size_t i = 0; i < names.size(); ++i)
    add(rows[i + 1], at_path(test, {"metrics", names[i]}));
}

}  // namespace

std::string subtitle(const ReportInput& input) {
  std::vector<std::string> parts;
  const auto add = [&](std::string text) {
    if (!text.empty())
      parts.push_back(std::move(text));
  };
  add(html::escape(text_at_path(input.result, {"started_at"})));
  add(html::escape(text_at_path(input.result, {"task"})));
  if (is_cross_validation(input))
    add(std::to_string(at_path(input.result, {"fold_results"}).size()) + "-fold cross-validation");
  const Json& architecture = at_path(input.result, {"model_info", "architecture"});
  add(architecture.is_object() ? html::escape(text_at_path(architecture, {"use"}))
                               : architecture_text(architecture));
  std::string text;
  for (const std::string& part : parts)
    text += (text.empty() ? "" : " · ") + part;
  return text;
}

std::string headline(const ReportInput& input) {
  const Json& result = input.result;
  std::vector<std::string> tiles;
  std::vector<std::string> names = overall_names(input);
  const bool is_tested = test_of(input).is_object();
  names.resize(std::min<std::size_t>(names.size(), is_tested ? 2 : 3));
  if (is_tested) {
    for (const std::string& name : names) {
      tiles.push_back(tile(html::number(at_path(test_of(input), {"metrics", name})),
                           "test " + html::escape(name), tiles.empty()));
    }
  }
  for (const std::string& name : names) {
    tiles.push_back(
        tile(metric_value(input, name),
             (is_tested ? std::string(judged_by(input)) + " " : "") + html::escape(name),
             tiles.empty()));
  }
  tiles.push_back(tile(result_loss(input), std::string(judged_by(input)) + " " + loss_label(result),
                       tiles.empty()));
  const Json& epochs = at_path(result, {"total_epochs"});
  if (epochs.is_number_integer()) {
    std::string text = html::count(epochs);
    if (were_chosen(result))
      text += " <small>kept " + html::count(at_path(result, {"weights", "epoch"})) + "</small>";
    tiles.push_back(tile(text, "epochs"));
  }
  const Json& passed = at_path(result, {"time", "seconds"});
  const Json& trained = at_path(result, {"training_time_seconds"});
  if (passed.is_number()) {
    tiles.push_back(tile(html::seconds(passed), "wall time"));
  } else if (trained.is_number()) {
    tiles.push_back(tile(html::seconds(trained), "training time"));
  }
  const Json& parameters = at_path(result, {"model_info", "parameter_count"});
  if (parameters.is_number_integer())
    tiles.push_back(tile(html::count(parameters), "parameters"));
  const Json& evaluated_rows = at_path(result, {"validation", "sample_count"});
  if (evaluated_rows.is_number_integer() && tiles.size() < kMostTiles)
    tiles.push_back(
        tile(html::count(evaluated_rows), is_tested ? "validation rows" : "rows evaluated on"));
  std::string text = "<div class=\"tiles\">";
  for (const std::string& one : tiles)
    text += one;
  return text + "</div>\n";
}

std::string metric_table(const ReportInput& input) {
  const std::vector<std::string> names = overall_names(input);
  std::vector<std::vector<std::string>> rows;
  if (!is_cross_validation(input)) {
    const bool is_validated = at_path(input.result, {"validation"}).is_object();
    const bool is_tested_first = at_path(input.result, {"prequential"}).is_object();
    std::vector<std::string> head{"", is_tested_first ? "mean of windows"
                                      : is_validated  ? "validation"
                                                      : "training"};
    rows.push_back({loss_label(input.result), result_loss(input)});
    for (const std::string& name : names)
      rows.push_back({html::escape(name) + direction_of(input, name), metric_value(input, name)});
    add_test_column(input, names, head, rows);
    return html::side_by_side(
        html::card("Result", html::table("", head, rows) + note_of(evaluation_note(input))) +
        model_card(input));
  }

  const Json& folds = at_path(input.result, {"fold_results"});
  std::vector<std::string> head{"", "mean ± deviation"};
  for (std::size_t i = 0; i < folds.size(); ++i) {
    const std::string name = text_at_path(folds[i], {"name"});
    head.push_back(name.empty() ? "fold-" + std::to_string(i + 1) : html::escape(name));
  }
  const std::string_view part = judged_by(input);
  const bool are_tested = part == "test";
  const auto fold_value = [&](const Json& fold, std::string_view key) -> const Json& {
    const Json& evaluated = at_path(fold, {part, "metrics", key});
    return evaluated.is_null() ? at_path(fold, {"metrics", key}) : evaluated;
  };
  rows.push_back({loss_label(input.result), result_loss(input)});
  for (const Json& fold : folds) {
    const Json& loss = at_path(fold, {part, "loss"});
    rows.back().push_back(html::number(loss.is_null() ? at_path(fold, {"final_loss"}) : loss));
  }
  for (const std::string& name : names) {
    rows.push_back({html::escape(name) + direction_of(input, name), metric_value(input, name)});
    for (const Json& fold : folds)
      rows.back().push_back(html::number(fold_value(fold, name)));
  }
  add_test_column(input, names, head, rows);
  rows.push_back({"epochs", ""});
  for (const Json& fold : folds) {
    rows.back().push_back(html::count(at_path(fold, {"total_epochs"})) +
                          (were_chosen(fold)
                               ? " <span class=\"spread\">kept " +
                                     html::count(at_path(fold, {"weights", "epoch"})) + "</span>"
                               : ""));
  }
  std::string note = "Deviation is the sample standard deviation over the folds.";
  if (are_tested)
    note += " Each fold is judged by its test rows, which chose nothing.";
  if (const std::string by = text_at_path(folds.front(), {"weights", "by"}); !by.empty())
    note += " Each fold is evaluated with its best weights by " + html::escape(by) + ".";
  if (const Json& time = at_path(input.result, {"total_time_seconds"}); time.is_number())
    note += " Training and evaluation took " + html::seconds(time) + ", added up over the folds.";
  const bool is_refit =
      std::any_of(input.curves.begin(), input.curves.end(),
                  [](const TrainingCurve& curve) { return curve.fit == "final"; });
  if (is_refit && at_path(input.result, {"total_epochs"}).is_number_integer()) {
    note += " The model of this run was then trained on all " +
            std::string(test_of(input).is_object() ? "other " : "") + "rows, for " +
            html::count(at_path(input.result, {"total_epochs"})) + " epochs.";
  }
  return html::card("Result", html::scrolling(html::table("wide", head, rows)) + note_of(note) +
                                  note_of(evaluation_note(input)));
}

std::string baseline_table(const ReportInput& input) {
  const Json& baselines = at_path(input.result, {"baselines"});
  if (!baselines.is_array() || baselines.empty())
    return {};
  const std::vector<std::string> names = overall_names(input);
  const std::string_view part = text_at_path(baselines.front(), {"evaluated_on"}) == "test"
                                    ? std::string_view("test")
                                    : std::string_view("validation");
  const bool has_folds = is_cross_validation(input);
  const auto of_run = [&](std::string_view name) -> const Json& {
    if (has_folds)
      return name.empty() ? at_path(input.result, {"mean_loss"})
                          : at_path(input.result, {"mean_metrics", name});
    return name.empty() ? at_path(input.result, {part, "loss"})
                        : at_path(input.result, {part, "metrics", name});
  };
  std::vector<std::string> head{"", "model"};
  std::vector<std::vector<std::string>> rows{{loss_label(input.result), html::number(of_run(""))}};
  for (const std::string& name : names)
    rows.push_back({html::escape(name) + direction_of(input, name), html::number(of_run(name))});
  rows.push_back(
      {"parameters", html::count(at_path(input.result, {"model_info", "parameter_count"}))});
  for (const Json& baseline : baselines) {
    head.push_back(html::escape(text_at_path(baseline, {"name"})));
    rows.front().push_back(html::number(at_path(baseline, {"loss"})));
    for (std::size_t i = 0; i < names.size(); ++i)
      rows[i + 1].push_back(html::number(at_path(baseline, {"metrics", names[i]})));
    rows.back().push_back(html::count(at_path(baseline, {"parameter_count"})));
  }
  return html::card("Baselines",
                    html::scrolling(html::table("wide", head, rows)) +
                        note_of("On the same " + std::string(part) +
                                " rows. Baselines with parameters were trained as the model was."));
}

std::string curves(const ReportInput& input) {
  const bool has_epochs =
      std::any_of(input.curves.begin(), input.curves.end(),
                  [](const TrainingCurve& curve) { return !curve.epochs.empty(); });
  if (!has_epochs)
    return {};
  std::vector<std::string> names;
  for (const std::string& name : overall_names(input)) {
    const bool is_followed =
        std::any_of(input.curves.begin(), input.curves.end(), [&](const TrainingCurve& curve) {
          return !curve.epochs.empty() && find_metric(curve.epochs.front(), name) != nullptr;
        });
    if (is_followed)
      names.push_back(name);
  }
  std::vector<std::string> drawn = names;
  for (const std::string& name : logged_names(input))
    drawn.push_back(logged_column(name));
  constexpr std::string_view kNoScript =
      "This chart needs JavaScript; the table of epochs has its numbers.";
  std::string text;
  if (input.curves.size() > 1) {
    text +=
        "<div class=\"chips fits needs-script\" id=\"fit-chips\" hidden>"
        "<span class=\"note\">Show</span></div>\n";
  }
  text += "<div class=\"pair\">";
  text += html::chart_card(
      input.curves.size() > 1 ? "Loss <small class=\"spread\">dashed: training</small>" : "Loss",
      "loss-chart",
      "<button class=\"chip\" id=\"log-scale\" type=\"button\">Scale: "
      "linear</button>",
      kNoScript);
  if (!drawn.empty()) {
    std::string picker = "<select class=\"chip\" id=\"metric-picker\" aria-label=\"metric\">";
    for (const std::string& name : drawn)
      picker += "<option>" + html::escape(name) + "</option>";
    text += html::chart_card(names.empty() ? "Logged" : "Metric", "metric-chart",
                             picker + "</select>", kNoScript);
  } else {
    text += html::chart_card("Learning rate", "rate-chart", "", kNoScript);
  }
  text += "</div>\n";
  return text + history(input, names);
}

/// What a run did with a device that is not the CPU; empty on a CPU.
std::string device_card(const Json& device) {
  if (!device.is_object())
    return {};
  const auto at = [&](std::string_view key) -> const Json& { return at_path(device, {key}); };
  const auto copies = [&](std::string_view count, std::string_view bytes) {
    return html::count(at(count)) + ", " + html::bytes(at(bytes));
  };
  std::vector<std::vector<std::string>> rows{
      {"device", html::escape(text_at_path(device, {"name"}))},
      {"peak memory", html::bytes(at("memory_peak_bytes"))},
      {"reserved memory", html::bytes(at("memory_reserved_bytes"))},
      {"copies to the device", copies("copies_to_device", "bytes_to_device")},
      {"copies to the host", copies("copies_to_host", "bytes_to_host")},
      {"waits of the host",
       html::count(at("waits")) + ", " + html::seconds(at("seconds_waiting"))}};
  const Json& busy = at("busy_seconds");
  if (busy.is_number() && busy > 0) {
    rows.push_back({"busy with steps", html::seconds(busy)});
    rows.push_back({"idle between steps",
                    html::seconds(at("idle_seconds")) + ", " + html::share(at("idle_fraction"))});
  }
  return html::card("Device", html::table("text facts", {}, rows));
}

std::string background(const ReportInput& input) {
  std::string text;
  const Json& choices = at_path(input.result, {"choices"});
  if (choices.is_array() && !choices.empty()) {
    std::string list = "<ul class=\"plain\">";
    for (const Json& choice : choices)
      list += "<li>" + html::fact(choice) + "</li>";
    text += html::card("What was decided for you", list + "</ul>");
  }
  const Json& environment = at_path(input.result, {"environment"});
  const bool is_model_shown = !is_cross_validation(input);
  text += html::side_by_side((is_model_shown ? "" : model_card(input)) +
                             device_card(at_path(input.result, {"device"})) +
                             (environment.is_object() ? environment_card(environment) : ""));
  if (input.document.is_object())
    text += html::folded_card("Configuration", pretty_json(write_workflow(input.document)));
  const Json& extensions = at_path(input.result, {"extensions"});
  if (extensions.is_object() && !extensions.empty()) {
    text += html::folded_card(
        "Extensions", pretty_json(extensions.dump(2, ' ', false, Json::error_handler_t::replace)));
  }
  return text;
}

Json chart_data(const ReportInput& input) {
  Json curves = Json::array();
  for (const TrainingCurve& curve : input.curves) {
    if (curve.epochs.empty())
      continue;
    Json stored{{"fit", curve.fit},
                {"epochs", Json::array()},
                {"train_loss", Json::array()},
                {"val_loss", Json::array()},
                {"learning_rate", Json::array()},
                {"best", Json::array()},
                {"metrics", Json::object()}};
    const std::size_t best = best_epoch(curve);
    for (std::size_t i : kept_epochs(curve, kMostPointsPerCurve)) {
      const EpochSummary& epoch = curve.epochs[i];
      stored["epochs"].push_back(epoch.epoch);
      stored["train_loss"].push_back(Json(epoch.train_loss));
      stored["val_loss"].push_back(epoch.val_loss ? Json(*epoch.val_loss) : Json());
      stored["learning_rate"].push_back(epoch.learning_rate);
      stored["best"].push_back(i == best);
      for (const MetricValue& first : curve.epochs.front().metrics) {
        if (is_of_one_class(first.name))
          continue;
        const MetricValue* metric = find_metric(epoch, first.name);
        stored["metrics"][first.name].push_back(metric != nullptr ? Json(metric->value) : Json());
      }
      for (const MetricValue& first : curve.epochs.front().logged) {
        stored["metrics"][logged_column(first.name)].push_back(logged_number(epoch, first.name));
      }
    }
    curves.push_back(std::move(stored));
  }
  Json data = forecast_data(input);
  data["curves"] = std::move(curves);
  data["residuals"] = residual_data(input);
  if (Json windows = adaptation_data(input); !windows.is_null())
    data["adaptation"] = std::move(windows);
  return data;
}

}  // namespace treadle::report
