#include "terminal/result_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "records/json_member.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostClasses = 12;

template <typename... Values>
std::string print(const char* format, Values... values) {
  char text[64];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

using Row = std::pair<std::string, std::string>;

std::string aligned(const std::vector<Row>& rows, const Terminal& terminal) {
  std::size_t names = 0;
  for (const auto& [name, unused] : rows)
    names = std::max(names, columns_of(name));
  std::string text;
  for (const auto& [name, value] : rows)
    text += "  " + left_aligned(name, names) + "  " + terminal.bold(value) + "\n";
  return text;
}

/// The metrics in the document's order; those that nobody listed by name.
std::vector<std::string> ordered_names(const Json& metrics, const Json& list) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  };
  for (const Json& metric : list) {
    const Json& name = member(metric, "name");
    if (name.is_string() && metrics.contains(name.get<std::string>()))
      add(name.get<std::string>());
  }
  for (const auto& [name, unused] : metrics.items())
    add(name);
  return names;
}

/// The loss of transformed targets has other units than the metrics beside it.
std::string loss_name(const Json& result) {
  return member(result, "transformed_target") == true ? "loss (transformed target)" : "loss";
}

/// `result` has the metrics' order and the loss's units, `undefined` why numbers are undefined.
std::vector<Row> metric_rows(const Json& result, const Json& loss, const Json& metrics,
                             const Json& loss_deviation, const Json& deviations,
                             const Json& undefined) {
  const auto value_text = [&](const std::string& name, const Json& value, const Json& deviation) {
    std::string text = right_aligned(number_text(value), 9);
    if (deviation.is_number())
      text += " ± " + number_text(deviation);
    if (const Json& why = member(undefined, name); why.is_string())
      text += "  undefined: " + why.get<std::string>();
    return text;
  };
  std::vector<Row> rows{{loss_name(result), value_text("loss", loss, loss_deviation)}};
  if (metrics.is_object()) {
    for (const std::string& name : ordered_names(metrics, member(result, "metric_list")))
      rows.emplace_back(name, value_text(name, member(metrics, name), member(deviations, name)));
  }
  return rows;
}

std::string cell_text(const Json& value) {
  if (value.is_number() && value.get<double>() == std::floor(value.get<double>()) &&
      std::abs(value.get<double>()) < 1e15)
    return std::to_string(value.get<long long>());
  return number_text(value);
}

std::string confusion_text(const Json& stored, const Terminal& terminal) {
  const Json& values = member(stored, "values");
  const Json& names = member(stored, "row_labels");
  const Json& columns = member(stored, "column_labels");
  if (!values.is_array() || values.empty() || values.size() > kMostClasses ||
      names.size() != values.size() || columns.size() != values.size())
    return {};
  std::size_t name_width = 6;
  std::size_t cell_width = 5;
  for (std::size_t i = 0; i < values.size(); ++i) {
    name_width = std::max(name_width, columns_of(names[i].get<std::string>()));
    cell_width = std::max(cell_width, columns_of(columns[i].get<std::string>()));
  }
  std::string text = "\n  " + left_aligned("actual", name_width) + "  predicted\n  ";
  std::string head(name_width, ' ');
  for (const Json& column : columns)
    head += "  " + right_aligned(column.get<std::string>(), cell_width);
  text += terminal.dim(head) + "\n";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += "  " + left_aligned(names[i].get<std::string>(), name_width);
    for (std::size_t j = 0; j < values[i].size(); ++j) {
      const std::string cell = right_aligned(cell_text(values[i][j]), cell_width);
      text += "  " + (i == j ? terminal.green(cell) : cell);
    }
    text += "\n";
  }
  return text;
}

bool is_scalar_list(const Json& value) {
  return value.is_array() && std::none_of(value.begin(), value.end(), [](const Json& element) {
           return element.is_structured();
         });
}

/// A number to be read; whoever computes with it takes that of the file or of --json.
std::string scalar_text(const Json& value) {
  if (value.is_number_float())
    return print("%.6g", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string list_text(const Json& values) {
  constexpr std::size_t kMostListed = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), kMostListed); ++i)
    text += (text.empty() ? "" : ", ") + scalar_text(values[i]);
  if (values.size() > kMostListed)
    text += " and " + std::to_string(values.size() - kMostListed) + " more";
  return text.empty() ? "none" : text;
}

/// Which weights the model holds, as "weights" of a result records it.
std::string kept_weights(const Json& weights) {
  const Json& epoch = member(weights, "epoch");
  if (!epoch.is_number_integer())
    return {};
  const std::string holds =
      member(weights, "averaged") == true ? "averaged weights of " : "weights of ";
  if (member(weights, "chosen") != "best")
    return holds + "the last epoch";
  const Json& by = member(weights, "by");
  return holds + "epoch " + epoch.dump() + ", the best" +
         (by.is_string() ? " by " + by.get<std::string>() : "");
}

/// Whether a training's weights were chosen by its validation rows.
bool did_validation_choose(const Json& training) {
  return member(member(training, "weights"), "on") == "validation";
}

/// What the test rows came to, under a name of its own; nothing without any. `result` has the
/// metrics' order and the loss's units.
std::string test_table(const Json& result, const Terminal& terminal) {
  const Json& test = member(result, "test");
  if (!test.is_object())
    return {};
  return "Test (on " + cell_text(member(test, "sample_count")) +
         " rows that neither trained nor chose)\n" +
         aligned(metric_rows(result, member(test, "loss"), member(test, "metrics"), Json(), Json(),
                             member(test, "undefined")),
                 terminal);
}

/// How a model that went on learning followed each change of its task; nothing without any.
std::string changes_table(const Json& result, const Terminal& terminal) {
  const Json& tested = member(result, "prequential");
  const Json& changes = member(tested, "changes");
  if (!changes.is_array() || changes.empty())
    return {};
  const std::string metric = member(member(tested, "recovery"), "metric").get<std::string>();
  const auto number_in = [&](const Json& window) {
    return number_text(metric == "loss" ? member(window, metric)
                                        : member(member(window, "metrics"), metric));
  };
  std::vector<Row> rows;
  for (const Json& change : changes) {
    std::string text =
        number_in(member(change, "before")) + " before, " + number_in(member(change, "after"));
    for (const auto& [key, level] : {std::pair("windows_to_threshold", "the threshold"),
                                     std::pair("windows_to_share", "the share of before")}) {
      if (!change.contains(key))
        continue;
      const Json& windows = member(change, key);
      text += windows.is_null()
                  ? std::string(", never at ") + level
                  : ", " + windows.dump() + (windows == 1 ? " window to " : " windows to ") + level;
    }
    rows.emplace_back(
        scalar_text(member(change, "task")) + " (row " + member(change, "row").dump() + ")", text);
  }
  return "Changes (" + metric + " of the window before and of the one with the change)\n" +
         aligned(rows, terminal);
}

/// What the forecasts to beat came to, one line each; nothing without any.
std::string baseline_table(const Json& result, const Terminal& terminal) {
  const Json& baselines = member(result, "baselines");
  if (!baselines.is_array() || baselines.empty())
    return {};
  std::vector<Row> rows;
  for (const Json& baseline : baselines) {
    std::string text = "loss " + number_text(member(baseline, "loss"));
    const Json& metrics = member(baseline, "metrics");
    if (metrics.is_object()) {
      for (const std::string& name : ordered_names(metrics, member(result, "metric_list")))
        text += ", " + name + " " + number_text(member(metrics, name));
    }
    rows.emplace_back(scalar_text(member(baseline, "name")), text);
  }
  return "Baselines (on the same " + scalar_text(member(baselines.front(), "evaluated_on")) +
         " rows)\n" + aligned(rows, terminal);
}

/// Why a search that asks for an ensemble has none.
std::string why_no_ensemble(const Json& search) {
  const Json& trials = search.at("trials");
  const auto complete = std::count_if(trials.begin(), trials.end(), [](const Json& trial) {
    return member(trial, "state") == "complete";
  });
  if (trials.size() == 1)
    return "there was one trial";
  if (complete < 2) {
    return "of " + std::to_string(trials.size()) + " trials, " +
           (complete == 0 ? "none" : "only one") + " was trained to its end";
  }
  return member(member(search, "ended"), "reason") == "time"
             ? "no other trial makes the best one better, or there was no time to train one"
             : "no other trial makes the best one better";
}

/// What predicts in place of the best trial; empty where no ensemble was asked for.
std::string ensemble_text(const Json& search) {
  if (!search.contains("ensemble"))
    return {};
  const Json& ensemble = search.at("ensemble");
  if (!ensemble.is_object())
    return "No ensemble: " + why_no_ensemble(search) + "\n";
  return "Ensemble of " + std::to_string(member(ensemble, "members").size()) +
         " trials, which predicts in place of the best one: " +
         scalar_text(member(ensemble, "objective")) + " " +
         number_text(member(ensemble, "validation")) + " of the validation rows\n";
}

/// The values of the best trial; nothing without a search.
std::string search_table(const Json& result, const Terminal& terminal) {
  const Json& search = member(result, "search");
  const Json& trials = member(search, "trials");
  const Json& number = member(search, "best_trial");
  if (!trials.is_array() || !number.is_number_integer() || number < 0 || number >= trials.size())
    return {};
  const Json& best = trials[number.get<std::size_t>()];
  std::map<std::string, int> states;
  for (const Json& trial : trials)
    ++states[member(trial, "state").get<std::string>()];
  std::string others;
  for (const auto& [state, count] : states) {
    if (state != "complete")
      others += (others.empty() ? ", of which " : ", ") + std::to_string(count) + " " + state;
  }
  std::vector<Row> rows;
  for (const auto& [name, value] : member(best, "params").items())
    rows.emplace_back(name, value.is_number_float() ? scalar_text(value) : value.dump());
  std::string values;
  const Json& objectives = member(search, "objectives");
  for (std::size_t i = 0; i < objectives.size() && i < member(best, "values").size(); ++i) {
    values += (i == 0 ? ": " : ", ") + scalar_text(member(objectives[i], "name")) + " " +
              number_text(member(best, "values")[i]);
  }
  std::string front;
  if (const Json& pareto = member(search, "pareto_trials"); pareto.is_array()) {
    front = "Pareto front: trials " + list_text(pareto) + "\n";
  }
  const Json& ended = member(search, "ended");
  if (member(ended, "reason") == "time")
    front += "Ended early: " + scalar_text(member(ended, "text")) + "\n";
  front += ensemble_text(search);
  return "Search (trial " + number.dump() + ", the best of " + std::to_string(trials.size()) +
         others + values + ")\n" + aligned(rows, terminal) + front;
}

/// What a run with idle workers can do about it: one training uses one of them unless its steps are
/// cut into shards.
std::string idle_hint(const Json& time, double idle_share) {
  constexpr double kMuch = 0.3;
  constexpr double kFewestSeconds = 5;  // a shorter run is mostly its beginning
  if (idle_share < kMuch || member(time, "workers") <= 1 || member(time, "shards") != 1 ||
      member(time, "seconds") < kFewestSeconds)
    return {};
  return "  A training uses one worker. \"resources\": {\"shards\": 2} shares each step between "
         "two.\n";
}

/// "0_1 gated, 0_2 skip": what a search of the structure chose, without what is left out.
std::string structure_text(const Json& structure) {
  std::string text;
  for (const Json& choice : member(structure, "choices")) {
    if (const Json& chosen = member(choice, "chosen"); chosen.is_string()) {
      text += (text.empty() ? "" : ", ") + scalar_text(member(choice, "name")) + " " +
              chosen.get<std::string>();
    }
  }
  return text;
}

std::string words(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

}  // namespace

std::string number_text(const Json& value) {
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    return "-";
  const double x = value.get<double>();
  const double size = std::abs(x);
  if (size != 0 && (size < 1e-3 || size >= 1e5))
    return print("%.2e", x);
  return size >= 1000 ? print("%.1f", x) : print("%.4f", x);
}

std::string seconds_text(double seconds) {
  if (seconds < 1)
    return print("%.2f s", seconds);
  if (seconds < 59.95)
    return print("%.1f s", seconds);
  const long long whole = std::llround(seconds);
  if (whole < 3600)
    return print("%lld:%02lld min", whole / 60, whole % 60);
  return print("%lld:%02lld:%02lld h", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string fine_seconds_text(double seconds) {
  return seconds > 0 && seconds < 0.00995 ? print("%.1f ms", seconds * 1e3) : seconds_text(seconds);
}

std::string bytes_text(double bytes) {
  constexpr std::array<std::string_view, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024)
    return print("%.0f bytes", bytes);
  std::size_t unit = 0;
  double amount = bytes / 1024;
  while (amount >= 1024 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  return print("%.1f ", amount) + std::string(kUnits[unit]);
}

std::string result_table(const Json& result, const Terminal& terminal) {
  const Json& folds = member(result, "fold_results");
  std::string head = "Result";
  std::vector<Row> rows;
  if (folds.is_array()) {
    const bool are_tested = member(result, "folds_evaluated_on") == "test";
    head += " (mean ± deviation over " + std::string(are_tested ? "the test rows of " : "") +
            std::to_string(folds.size()) + (folds.size() == 1 ? " fold" : " folds") +
            (!are_tested && !folds.empty() && did_validation_choose(folds.front())
                 ? ", whose rows also chose the weights)"
                 : ")");
    rows = metric_rows(result, member(result, "mean_loss"), member(result, "mean_metrics"),
                       member(result, "std_loss"), member(result, "std_metrics"),
                       member(result, "undefined"));
  } else {
    const Json& tested = member(result, "prequential");
    const Json& validation = tested.is_object() ? tested : member(result, "validation");
    const Json& count = member(validation, "sample_count");
    if (tested.is_object()) {
      head += " (means over " + std::to_string(member(tested, "windows").size()) + " windows, " +
              count.dump() + " rows tested before they were trained on)";
    } else if (count.is_number_integer())
      head += " (on " + count.dump() + " validation rows" +
              (did_validation_choose(result) ? ", which also chose the weights)" : ")");
    const Json& metrics = member(validation, "metrics");
    rows = metric_rows(
        result, validation.is_object() ? member(validation, "loss") : member(result, "final_loss"),
        metrics.is_object() ? metrics : member(result, "metrics"), Json(), Json(),
        member(validation, "undefined"));
  }
  if (const Json& epochs = member(result, "total_epochs"); epochs.is_number())
    rows.emplace_back("epochs", right_aligned(cell_text(epochs), 9));
  if (const std::string kept = kept_weights(member(result, "weights")); !kept.empty())
    rows.emplace_back("model", kept);
  else if (member(result, "model_path") == "")
    rows.emplace_back("model", "none, as \"refit\" is false");
  for (const Json& structure : member(result, "structures"))
    rows.emplace_back(scalar_text(member(structure, "structure")),
                      structure_text(structure) + " (architecture.json)");
  if (const Json& sum = member(result, "total_time_seconds"); sum.is_number()) {
    rows.emplace_back("time of all folds",
                      right_aligned(seconds_text(sum.get<double>()), 9) + ", added up");
  } else if (const Json& time = member(result, "training_time_seconds"); time.is_number()) {
    rows.emplace_back("training time", right_aligned(seconds_text(time.get<double>()), 9));
  }
  return head + "\n" + aligned(rows, terminal) + changes_table(result, terminal) +
         test_table(result, terminal) + baseline_table(result, terminal) +
         search_table(result, terminal);
}

std::string pipeline_table(const Json& result, const Terminal& terminal) {
  std::vector<Row> rows;
  for (const Json& stage : member(result, "stages")) {
    std::string text = scalar_text(member(stage, "kind"));
    if (member(stage, "reused") == true)
      text += ", taken over";
    if (const Json& count = member(stage, "rows"); count.is_number())
      text += ", " + count.dump() + " rows";
    if (const Json& metrics = member(stage, "metrics"); metrics.is_object()) {
      for (const auto& [name, value] : metrics.items())
        text += ", " + name + " " + number_text(value);
    }
    text += "  " + shown_path(scalar_text(member(stage, "folder")));
    rows.emplace_back(scalar_text(member(stage, "stage")), std::move(text));
  }
  return "Stages\n" + aligned(rows, terminal);
}

/// "Device far:0: …" of a run that was not on a CPU.
std::string device_line(const Json& device) {
  if (!device.is_object())
    return {};
  const auto number = [&](const char* key) {
    const Json& value = member(device, key);
    return value.is_number() ? value.get<double>() : 0.0;
  };
  const std::string name = member(device, "name").is_string()
                               ? member(device, "name").get<std::string>()
                               : std::string("without a name");
  std::string text = "Device " + name + ": ";
  if (number("busy_seconds") > 0)
    text += print("%.1f %% idle during epochs, ", 100 * number("idle_fraction"));
  text += "peak memory " + bytes_text(number("memory_peak_bytes")) + ", reserved " +
          bytes_text(number("memory_reserved_bytes")) + "\n";
  return text + print("  %.0f copies to the device (", number("copies_to_device")) +
         bytes_text(number("bytes_to_device")) +
         print("), %.0f to the host (", number("copies_to_host")) +
         bytes_text(number("bytes_to_host")) + print("), %.0f waits (", number("waits")) +
         seconds_text(number("seconds_waiting")) + ")\n";
}

std::string time_table(const Json& result, const Terminal& terminal) {
  const Json& time = member(result, "time");
  const Json& phases = member(time, "phases");
  const Json& passed = member(time, "seconds");
  const Json& workers = member(time, "workers");
  if (!phases.is_object() || !passed.is_number() || !workers.is_number_integer())
    return {};
  std::string head = "Wall time (" + seconds_text(passed.get<double>()) + " with " +
                     workers.dump() + (workers == 1 ? " worker" : " workers");
  if (const Json& used = member(time, "budget_used"); used.is_number())
    head += print(", %.0f %% used", 100 * used.get<double>());
  const Json& rows = member(time, "training_rows_per_second");
  if (rows.is_number() && rows > 0)
    head += print(", %.0f training rows/s", rows.get<double>());
  double all = 0;
  for (const auto& [phase, seconds] : phases.items())
    all += seconds.is_number() ? seconds.get<double>() : 0;
  std::string text = head + ")\n";
  std::string names;
  std::string shares;
  const auto end_line = [&] {
    if (!names.empty())
      text += terminal.dim(names) + "\n" + shares + "\n";
    names.clear();
    shares.clear();
  };
  // In the order in which a run comes by them, and what is left at the end.
  for (const char* phase : {"loading", "data", "forward", "backward", "update", "replay", "waiting",
                            "metrics", "saving", "idle"}) {
    const Json& seconds = member(phases, phase);
    if (!seconds.is_number() || all <= 0)
      continue;
    const std::string share = print("%.1f %%", 100 * seconds.get<double>() / all);
    const std::size_t width = std::max(std::string_view(phase).size(), share.size());
    if (names.size() + 2 + width > terminal.width())
      end_line();
    names += "  " + right_aligned(phase, width);
    shares += "  " + right_aligned(share, width);
  }
  end_line();
  const Json& idle = member(phases, "idle");
  if (idle.is_number() && all > 0)
    text += idle_hint(time, idle.get<double>() / all);
  return text + device_line(member(result, "device")) + "\n";
}

std::string evaluation_table(const Json& validation, const Terminal& terminal) {
  const Json& count = member(validation, "sample_count");
  std::string text = "Result";
  if (count.is_number_integer())
    text += " (on " + count.dump() + " rows)";
  text += "\n" +
          aligned(metric_rows(validation, member(validation, "loss"), member(validation, "metrics"),
                              Json(), Json(), member(validation, "undefined")),
                  terminal);
  const Json& tables = member(validation, "tables");
  if (tables.is_array()) {
    for (const Json& stored : tables) {
      if (member(stored, "name") == "confusion_matrix")
        text += confusion_text(stored, terminal);
    }
  }
  return text;
}

std::string facts_text(const Json& facts, std::size_t indent) {
  const std::string margin(indent, ' ');
  std::string text;
  for (const auto& [key, value] : facts.items()) {
    // A path stays as it is.
    const bool is_path = key.find('.') != std::string::npos;
    const std::string name = facts.is_array() ? "-" : (is_path ? key : words(key)) + ":";
    if (is_scalar_list(value)) {
      text += margin + name + " " + list_text(value) + "\n";
    } else if (!value.is_structured()) {
      text += margin + name + " " + scalar_text(value) + "\n";
    } else if (facts.is_array()) {
      // The first fact of an object stands behind its dash.
      std::string lines = facts_text(value, indent + 2);
      if (lines.size() > indent)
        lines[indent] = '-';
      text += lines;
    } else {
      text += margin + name + "\n" + facts_text(value, indent + 2);
    }
  }
  return text;
}

}  // namespace treadle::cli
