#include "terminal/result_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/time_text.h>

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

/// The loss of transformed targets has other units than the metrics beside it.
std::string loss_name(bool is_transformed) {
  return is_transformed ? "loss (transformed target)" : "loss";
}

Row number_row(const std::string& name, const Number& value, std::string_view undefined = {},
               const Number* deviation = nullptr) {
  std::string text = right_aligned(number_text(value.value()), 9);
  if (deviation != nullptr && deviation->is_known())
    text += " ± " + number_text(deviation->value());
  const std::string_view why = undefined.empty() ? std::string_view(value.why()) : undefined;
  if (!why.empty())
    text += "  undefined: " + std::string(why);
  return {name, text};
}

std::vector<Row> score_rows(const Scores& scores, bool is_transformed) {
  std::vector<Row> rows{number_row(loss_name(is_transformed), scores.loss)};
  for (const MetricValue& metric : scores.metrics)
    rows.push_back(number_row(metric.name, metric.value));
  return rows;
}

std::vector<Row> fold_rows(const CrossValidationResult& folds, bool is_transformed) {
  const auto why = [&](const std::string& name) -> std::string_view {
    const auto found = folds.undefined.find(name);
    return found == folds.undefined.end() ? std::string_view() : found->second;
  };
  std::vector<Row> rows{
      number_row(loss_name(is_transformed), folds.mean_loss, why("loss"), &folds.std_loss)};
  for (std::size_t i = 0; i < folds.mean_metrics.size(); ++i) {
    const MetricValue& mean = folds.mean_metrics[i];
    rows.push_back(
        number_row(mean.name, mean.value, why(mean.name),
                   i < folds.std_metrics.size() ? &folds.std_metrics[i].value : nullptr));
  }
  return rows;
}

std::string cell_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return std::to_string(static_cast<long long>(value));
  return number_text(value);
}

std::string confusion_text(const ResultTable& table, const Terminal& terminal) {
  const std::vector<std::vector<Number>>& values = table.values;
  const std::vector<std::string>& names = table.row_labels;
  const std::vector<std::string>& columns = table.column_labels;
  if (values.empty() || values.size() > kMostClasses || names.size() != values.size() ||
      columns.size() != values.size())
    return {};
  std::size_t name_width = 6;
  std::size_t cell_width = 5;
  for (std::size_t i = 0; i < values.size(); ++i) {
    name_width = std::max(name_width, columns_of(names[i]));
    cell_width = std::max(cell_width, columns_of(columns[i]));
  }
  std::string text = "\n  " + left_aligned("actual", name_width) + "  predicted\n  ";
  std::string head(name_width, ' ');
  for (const std::string& column : columns)
    head += "  " + right_aligned(column, cell_width);
  text += terminal.dim(head) + "\n";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += "  " + left_aligned(names[i], name_width);
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

/// Which weights the model holds.
std::string kept_weights(const ChosenWeights& weights) {
  const std::string holds = weights.are_average ? "averaged weights of " : "weights of ";
  if (!weights.are_best)
    return holds + "the last epoch";
  return holds + "epoch " + std::to_string(weights.epoch) + ", the best" +
         (weights.by.empty() ? "" : " by " + weights.by);
}

/// Whether a training's weights were chosen by its validation rows.
bool did_validation_choose(const FitResult& training) {
  return training.weights.on == "validation";
}

/// The results on the test rows, with a title; empty without any. Those of an ensemble have those
/// of the best trial beside them.
std::string test_table(const RunResult& result, const Terminal& terminal) {
  const FitResult& training = result.training;
  if (!training.test)
    return {};
  const std::string rows =
      std::to_string(training.test->sample_count) + " rows that neither trained nor chose)\n";
  const EnsembleResult* const ensemble =
      result.search && result.search->ensemble && !result.search->ensemble->best_trial_test.empty()
          ? &*result.search->ensemble
          : nullptr;
  if (ensemble == nullptr) {
    return "Test (on " + rows +
           aligned(score_rows(*training.test, training.transformed_target), terminal);
  }
  std::vector<Row> lines;
  for (const MetricValue& metric : training.test->metrics) {
    lines.push_back(number_row(metric.name, metric.value));
    for (const MetricValue& alone : ensemble->best_trial_test) {
      if (alone.name == metric.name)
        lines.back().second += "  (best trial alone " + number_text(alone.value.value()) + ")";
    }
  }
  return "Test (the ensemble, on " + rows + aligned(lines, terminal);
}

std::string windows_text(const std::optional<std::int64_t>& windows, const std::string& level) {
  if (!windows)
    return ", never at " + level;
  return ", " + std::to_string(*windows) + (*windows == 1 ? " window to " : " windows to ") + level;
}

/// How a model that went on learning followed each change of its task; nothing without any.
std::string changes_table(const std::optional<PrequentialResult>& tested,
                          const Terminal& terminal) {
  if (!tested || tested->changes.empty())
    return {};
  const PrequentialResult::Recovery& recovery = tested->recovery;
  const auto number_in = [&](const std::optional<Scores>& window) {
    const Number* const found = window ? window->find(recovery.metric) : nullptr;
    return found != nullptr ? number_text(found->value()) : "-";
  };
  std::vector<Row> rows;
  for (const PrequentialResult::Change& change : tested->changes) {
    std::string text = number_in(change.before) + " before, " + number_in(change.after);
    if (recovery.threshold)
      text += windows_text(change.windows_to_threshold, "the threshold");
    if (recovery.share)
      text += windows_text(change.windows_to_share, "the share of before");
    rows.emplace_back(change.task + " (row " + std::to_string(change.row) + ")", text);
  }
  return "Changes (" + recovery.metric + " of the window before and of the one with the change)\n" +
         aligned(rows, terminal);
}

/// The results of the baselines, one line each; empty without any.
std::string baseline_table(const std::vector<BaselineResult>& baselines, const Terminal& terminal) {
  if (baselines.empty())
    return {};
  std::vector<Row> rows;
  for (const BaselineResult& baseline : baselines) {
    std::string text = "loss " + number_text(baseline.loss.value());
    for (const MetricValue& metric : baseline.metrics)
      text += ", " + metric.name + " " + number_text(metric.value.value());
    rows.emplace_back(baseline.name, text);
  }
  return "Baselines (on the same " + baselines.front().evaluated_on + " rows)\n" +
         aligned(rows, terminal);
}

/// Why a search that asks for an ensemble has none.
std::string why_no_ensemble(const SearchResult& search) {
  const std::size_t trials = search.trials.size();
  const auto complete =
      std::count_if(search.trials.begin(), search.trials.end(),
                    [](const SearchResult::Trial& trial) { return trial.state == "complete"; });
  if (trials == 1)
    return "only one trial";
  if (complete < 2) {
    return "of " + std::to_string(trials) + " trials, " + (complete == 0 ? "none" : "only one") +
           " was trained to its end";
  }
  return search.ended.reason == "time"
             ? "no other trial makes the best one better, or there was no time to train one"
             : "no other trial makes the best one better";
}

/// The ensemble in place of the best trial, or why there is none; empty where none was requested.
std::string ensemble_text(const SearchResult& search) {
  if (!search.wants_ensemble)
    return {};
  if (!search.ensemble)
    return "No ensemble: " + why_no_ensemble(search) + "\n";
  return "Ensemble of " + std::to_string(search.ensemble->members.size()) +
         " trials, which predicts in place of the best one: " + search.ensemble->objective + " " +
         number_text(search.ensemble->validation.value()) + " of the validation rows\n";
}

std::string front_text(const std::vector<std::int64_t>& trials) {
  constexpr std::size_t kMostListed = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(trials.size(), kMostListed); ++i)
    text += (text.empty() ? "" : ", ") + std::to_string(trials[i]);
  if (trials.size() > kMostListed)
    text += " and " + std::to_string(trials.size() - kMostListed) + " more";
  return "Pareto front: trials " + (text.empty() ? "none" : text) + "\n";
}

/// The values of the best trial; nothing without a search.
std::string search_table(const SearchResult& search, const Terminal& terminal) {
  const SearchResult::Trial* const best = search.find(search.best_trial);
  if (best == nullptr)
    return {};
  std::map<std::string, int> states;
  for (const SearchResult::Trial& trial : search.trials)
    ++states[trial.state];
  std::string others;
  for (const auto& [state, count] : states) {
    if (state != "complete")
      others += (others.empty() ? ", of which " : ", ") + std::to_string(count) + " " + state;
  }
  std::vector<Row> rows;
  for (const auto& [name, value] : best->params.items())
    rows.emplace_back(name, value.is_number_float() ? scalar_text(value) : value.dump());
  std::string values;
  for (std::size_t i = 0; i < search.objectives.size() && i < best->values.size(); ++i) {
    values += (i == 0 ? ": " : ", ") + search.objectives[i].name + " " +
              number_text(best->values[i].value());
  }
  return "Search (trial " + std::to_string(search.best_trial) + ", the best of " +
         std::to_string(search.trials.size()) + others + values + ")\n" + aligned(rows, terminal) +
         (search.pareto_trials ? front_text(*search.pareto_trials) : "") +
         (search.ended.reason == "time" ? "Ended early: " + search.ended.text + "\n" : "") +
         ensemble_text(search);
}

/// How to use idle workers: one training uses one of them unless its steps are cut into shards.
std::string idle_hint(const TimeResult& time, double idle_share) {
  constexpr double kMuch = 0.3;
  constexpr double kFewestSeconds = 5;  // a shorter run is mostly its beginning
  if (idle_share < kMuch || time.workers <= 1 || time.shards != 1 || time.seconds < kFewestSeconds)
    return {};
  return "  A training uses one worker. \"resources\": {\"shards\": 2} shares each step between "
         "two.\n";
}

/// "Processes: 3 on 2 hosts; …": how long they waited for each other in steps, or, where each had
/// fits of its own, how busy they were.
std::string ranks_line(const std::vector<RankTime>& ranks) {
  std::set<std::string_view> hosts;
  bool has_exchanged = false;
  for (const RankTime& rank : ranks) {
    hosts.insert(rank.host);
    has_exchanged = has_exchanged || rank.exchange_seconds > 0;
  }
  const auto share = [&](const RankTime& rank) {
    return print("%.1f %%", 100 * (has_exchanged ? rank.waiting_share : rank.budget_used));
  };
  const auto worst = has_exchanged ? std::max_element(ranks.begin(), ranks.end(),
                                                      [](const RankTime& a, const RankTime& b) {
                                                        return a.waiting_share < b.waiting_share;
                                                      })
                                   : std::min_element(ranks.begin(), ranks.end(),
                                                      [](const RankTime& a, const RankTime& b) {
                                                        return a.budget_used < b.budget_used;
                                                      });
  const std::string extreme = has_exchanged ? "the most" : "the least";
  return "Processes: " + std::to_string(ranks.size()) + " on " + std::to_string(hosts.size()) +
         (hosts.size() == 1 ? " host" : " hosts") + "; rank 0 spent " + share(ranks.front()) +
         " of its time " + (has_exchanged ? "in exchanges" : "at work") +
         (worst == ranks.begin() ? ", " + extreme + " of all"
                                 : ", rank " + std::to_string(worst - ranks.begin()) + " " +
                                       extreme + ": " + share(*worst)) +
         "\n";
}

/// "0_1 gated, 0_2 skip": the choices of a structure search, without those left out.
std::string structure_text(const StructureResult& structure) {
  std::string text;
  for (const StructureResult::Choice& choice : structure.choices) {
    if (choice.chosen)
      text += (text.empty() ? "" : ", ") + choice.name + " " + *choice.chosen;
  }
  return text;
}

std::string words(std::string key) {
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

}  // namespace

std::string number_text(double x) {
  if (!std::isfinite(x))
    return "-";
  const double size = std::abs(x);
  if (size != 0 && (size < 1e-3 || size >= 1e5))
    return print("%.2e", x);
  return size >= 1000 ? print("%.1f", x) : print("%.4f", x);
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

std::string result_table(const RunResult& result, const Terminal& terminal) {
  const FitResult& training = result.training;
  std::string head = "Result";
  std::vector<Row> rows;
  if (result.cross_validation) {
    const CrossValidationResult& folds = *result.cross_validation;
    const bool are_tested = folds.evaluated_on() == "test";
    const std::size_t count = folds.fold_results.size();
    head += " (mean ± deviation over " + std::string(are_tested ? "the test rows of " : "") +
            std::to_string(count) + (count == 1 ? " fold" : " folds") +
            (!are_tested && count > 0 && did_validation_choose(folds.fold_results.front())
                 ? ", whose rows also chose the weights)"
                 : ")");
    rows = fold_rows(folds, training.transformed_target);
  } else {
    if (training.prequential) {
      head += " (means over " + std::to_string(training.prequential->windows.size()) +
              " windows, " + std::to_string(training.prequential->sample_count) +
              " rows tested before they were trained on)";
    } else if (training.validation) {
      head += " (on " + std::to_string(training.validation->sample_count) + " validation rows" +
              (did_validation_choose(training) ? ", which also chose the weights)" : ")");
    }
    rows = score_rows({result.loss(), result.metrics()}, training.transformed_target);
  }
  if (result.has_model()) {
    rows.emplace_back("epochs", right_aligned(std::to_string(training.total_epochs), 9));
    rows.emplace_back("model", kept_weights(training.weights));
  } else {
    rows.emplace_back("model", "none, as \"refit\" is false");
  }
  for (const StructureResult& structure : training.structures)
    rows.emplace_back(structure.structure, structure_text(structure) + " (architecture.json)");
  if (result.cross_validation) {
    rows.emplace_back(
        "time of all folds",
        right_aligned(seconds_text(result.cross_validation->total_time_seconds), 9) + ", added up");
  } else {
    rows.emplace_back("training time",
                      right_aligned(seconds_text(training.training_time_seconds), 9));
  }
  // First what no choice has made better.
  return test_table(result, terminal) + head + "\n" + aligned(rows, terminal) +
         changes_table(training.prequential, terminal) +
         baseline_table(result.baselines, terminal) +
         (result.search ? search_table(*result.search, terminal) : "");
}

std::string pipeline_table(const PipelineResult& result, const Terminal& terminal) {
  std::vector<Row> rows;
  for (const StageResult& stage : result.stages) {
    std::string text = stage.kind;
    if (stage.reused)
      text += ", taken over";
    if (stage.rows)
      text += ", " + std::to_string(*stage.rows) + " rows";
    for (const MetricValue& metric : stage.metrics)
      text += ", " + metric.name + " " + number_text(metric.value.value());
    text += "  " + shown_path(stage.folder);
    rows.emplace_back(stage.stage, std::move(text));
  }
  return "Stages\n" + aligned(rows, terminal);
}

/// "Device far:0: …" of a run that was not on a CPU.
std::string device_line(const DeviceResult& device) {
  std::string text = "Device " + device.name + ": ";
  if (device.busy_seconds > 0)
    text += print("%.1f %% idle during epochs, ", 100 * device.idle_fraction);
  const auto count = [](std::int64_t value) { return std::to_string(value); };
  const auto bytes = [](std::int64_t value) { return bytes_text(static_cast<double>(value)); };
  return text + "peak memory " + bytes(device.memory_peak_bytes) + ", reserved " +
         bytes(device.memory_reserved_bytes) + "\n  " + count(device.copies_to_device) +
         " copies to the device (" + bytes(device.bytes_to_device) + "), " +
         count(device.copies_to_host) + " to the host (" + bytes(device.bytes_to_host) + "), " +
         count(device.waits) + " waits (" + seconds_text(device.seconds_waiting) + ")\n";
}

std::string time_table(const RunResult& result, const Terminal& terminal) {
  const TimeResult& time = result.time;
  if (time.phases.empty())
    return {};
  std::string head = "Wall time (" + seconds_text(time.seconds) + " with " +
                     std::to_string(time.workers) + (time.workers == 1 ? " worker" : " workers") +
                     print(", %.0f %% used", 100 * time.budget_used);
  if (time.training_rows_per_second > 0)
    head += print(", %.0f training rows/s", time.training_rows_per_second);
  double all = 0;
  for (const auto& [phase, seconds] : time.phases)
    all += seconds;
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
  for (const char* phase : {"loading", "data", "forward", "backward", "update", "exchange",
                            "replay", "waiting", "metrics", "saving", "idle"}) {
    const auto seconds = time.phases.find(phase);
    if (seconds == time.phases.end() || all <= 0)
      continue;
    const std::string share = print("%.1f %%", 100 * seconds->second / all);
    const std::size_t width = std::max(std::string_view(phase).size(), share.size());
    if (names.size() + 2 + width > terminal.width())
      end_line();
    names += "  " + right_aligned(phase, width);
    shares += "  " + right_aligned(share, width);
  }
  end_line();
  if (const auto idle = time.phases.find("idle"); idle != time.phases.end() && all > 0)
    text += idle_hint(time, idle->second / all);
  return text + (result.device ? device_line(*result.device) : "") +
         (time.ranks.empty() ? "" : ranks_line(time.ranks)) + "\n";
}

std::string evaluation_table(const EvaluationResult& result, const Terminal& terminal) {
  std::string text =
      "Result (on " + std::to_string(result.sample_count) + " rows)\n" +
      aligned(score_rows(result, result.transformed_target.value_or(false)), terminal);
  for (const ResultTable& table : result.tables) {
    if (table.name == "confusion_matrix")
      text += confusion_text(table, terminal);
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
