#include "terminal/progress_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "terminal/result_text.h"

#include <treadle/core/components/state_dict.h>

namespace treadle::cli {
namespace {

constexpr std::int64_t kAllUpTo = 50;
constexpr std::int64_t kLines = 20;
constexpr std::size_t kNumberWidth = 9;
constexpr std::size_t kMostMetrics = 6;
constexpr std::size_t kMostRunningShown = 3;
constexpr std::string_view kBest = "  best";

bool is_of_one_class(std::string_view metric) {
  return metric.find('.') != std::string_view::npos;
}

std::size_t column_width(std::string_view title) {
  return std::max(kNumberWidth, columns_of(title));
}

/// "3/20"; "3" where nobody knows of how many.
std::string position(std::int64_t epoch, std::optional<std::int64_t> epochs) {
  return std::to_string(epoch) + (epochs ? "/" + std::to_string(*epochs) : std::string());
}

/// A dash for what is undefined; "nan" and "inf" say that a training came to that.
std::string shown(const Number& number) {
  if (number.is_known() || number.is_undefined())
    return number_text(number.value());
  return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
}

std::string rate_text(double steps_per_second) {
  char text[32];
  std::snprintf(text, sizeof text, steps_per_second < 10 ? "%.1f steps/s" : "%.0f steps/s",
                steps_per_second);
  return text;
}

void append(std::string& line, std::string_view part) {
  if (!line.empty())
    line += "  ";
  line += part;
}

}  // namespace

bool has_line(std::int64_t epoch, std::optional<std::int64_t> planned, std::int64_t trainings) {
  if (!planned) {
    std::int64_t every = 1;
    while (epoch / every > kLines)
      every *= 10;
    return epoch % every == 0;
  }
  const std::int64_t epochs = *planned;
  if (epoch <= 1 || epoch >= epochs || epochs * trainings <= kAllUpTo)
    return true;
  const std::int64_t lines = std::max<std::int64_t>(2, kLines / trainings);
  // The line at which this epoch would be, and the one before: they differ lines times.
  return epoch * lines / epochs != (epoch - 1) * lines / epochs;
}

EpochTable::EpochTable(const FitId& fit, const EpochSummary& first, std::size_t columns) {
  if (fit.count() > 1) {
    const std::string longest = "fold-" + std::to_string(fit.count());
    fit_width_ = std::max(columns_of(longest), columns_of(fit.path()));
  }
  epoch_width_ =
      std::max<std::size_t>(5, position(first.epochs.value_or(first.epoch), first.epochs).size());
  has_validation_ = first.val_loss.has_value();
  for (const MetricValue& metric : first.metrics) {
    if (!is_of_one_class(metric.name) && metrics_.size() < kMostMetrics)
      metrics_.push_back(metric.name);
  }
  for (const MetricValue& value : first.logged) {
    if (metrics_.size() + logged_.size() < kMostMetrics)
      logged_.push_back(value.name);
  }
  fit_into(columns);
}

bool EpochTable::lacks_columns_of(const EpochSummary& epoch) const {
  return !has_validation_ && epoch.val_loss.has_value();
}

std::size_t EpochTable::width() const {
  return columns_of(head()) + columns_of(kBest);
}

void EpochTable::fit_into(std::size_t columns) {
  if (width() > columns)
    has_rate_ = false;
  while (width() > columns && !logged_.empty())
    logged_.pop_back();
  while (width() > columns && !metrics_.empty())
    metrics_.pop_back();
}

std::string EpochTable::head() const {
  std::string line;
  if (fit_width_ > 0)
    line += left_aligned("", fit_width_) + "  ";
  line += right_aligned("epoch", epoch_width_) + "  " + right_aligned("training", kNumberWidth);
  if (has_validation_)
    line += "  " + right_aligned("validation", column_width("validation"));
  for (const std::string& metric : metrics_)
    line += "  " + right_aligned(metric, column_width(metric));
  for (const std::string& name : logged_)
    line += "  " + right_aligned(name, column_width(name));
  if (has_rate_)
    line += "  " + right_aligned("rate", kNumberWidth);
  return line + "  " + right_aligned("time", kNumberWidth);
}

std::string EpochTable::row(const FitId& fit, const EpochSummary& epoch) const {
  std::string line;
  if (fit_width_ > 0)
    line += left_aligned(fit.path(), fit_width_) + "  ";
  line += right_aligned(position(epoch.epoch, epoch.epochs), epoch_width_) + "  " +
          right_aligned(shown(epoch.train_loss), kNumberWidth);
  if (has_validation_) {
    line += "  " + right_aligned(epoch.val_loss ? shown(*epoch.val_loss) : "-",
                                 column_width("validation"));
  }
  const auto add = [&](const std::vector<MetricValue>& values, const std::string& name) {
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const MetricValue& value) { return value.name == name; });
    line += "  " + right_aligned(found == values.end() ? std::string("-") : shown(found->value),
                                 column_width(name));
  };
  for (const std::string& name : metrics_)
    add(epoch.metrics, name);
  for (const std::string& name : logged_)
    add(epoch.logged, name);
  if (has_rate_)
    line += "  " + right_aligned(number_text(epoch.learning_rate), kNumberWidth);
  line += "  " + right_aligned(seconds_text(epoch.seconds), kNumberWidth);
  // Without validation rows the best is by training loss, which chooses nothing.
  return epoch.best && epoch.val_loss ? line + std::string(kBest) : line;
}

std::string live_line(const LiveState& state, std::size_t columns) {
  std::string line;
  const bool several = state.trainings > 1;
  if (several) {
    append(line,
           std::to_string(state.finished) + " of " + std::to_string(state.trainings) + " done");
  }
  for (std::size_t i = 0; i < std::min(state.running.size(), kMostRunningShown); ++i) {
    const LiveTraining& training = state.running[i];
    append(line, (several ? training.name : "epoch") + " " +
                     position(training.progress.epoch, training.progress.epochs));
  }
  if (state.running.size() > kMostRunningShown)
    append(line, "+" + std::to_string(state.running.size() - kMostRunningShown));
  if (state.running.size() == 1 && state.running.front().progress.total_steps) {
    const StepProgress& progress = state.running.front().progress;
    append(line, std::to_string(
                     std::min<std::int64_t>(100, progress.step * 100 / *progress.total_steps)) +
                     " %");
  }
  if (state.steps_per_second)
    append(line, rate_text(*state.steps_per_second));
  if (!state.running.empty()) {
    const LiveTraining& first = state.running.front();
    if (first.loss)
      append(line, "loss " + number_text(*first.loss));
    if (first.metric)
      append(line, first.metric->name + " " + shown(first.metric->value));
  }
  if (state.seconds_left)
    append(line, clock_text(*state.seconds_left) + " left");
  return cut_to(line, columns);
}

namespace {

std::string objectives_text(const SearchProgress& search, const std::vector<double>& values) {
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), search.objectives.size()); ++i)
    text += (i == 0 ? "" : ", ") + search.objectives[i] + " " + number_text(values[i]);
  return text;
}

std::string params_text(const std::vector<std::pair<std::string, std::string>>& params) {
  std::string text;
  for (const auto& [name, value] : params)
    text += (text.empty() ? "" : ", ") + name + " " + value;
  return text;
}

}  // namespace

std::vector<std::string> live_search(const LiveState& state, std::size_t columns,
                                     std::size_t rows) {
  const SearchProgress& search = state.search->progress;
  const std::int64_t ended = search.complete + search.pruned + search.failed;
  std::string head = std::to_string(ended) + " of " + std::to_string(search.trials) + " trials";
  const std::pair<std::int64_t, const char*> counts[] = {{search.running, " running"},
                                                         {search.paused, " paused"},
                                                         {search.pruned, " pruned"},
                                                         {search.failed, " failed"}};
  for (const auto& [count, word] : counts) {
    if (count > 0)
      append(head, std::to_string(count) + word);
  }
  if (state.seconds_left)
    append(head, clock_text(*state.seconds_left) + " left");
  std::vector<std::string> lines{head};
  if (search.best_trial >= 0) {
    lines.push_back("best  trial " + std::to_string(search.best_trial) + "  " +
                    objectives_text(search, search.best_values) + "  " +
                    params_text(state.search->best_params));
  }
  for (const LiveTraining& training : state.running) {
    std::string line =
        training.name + "  " + position(training.progress.epoch, training.progress.epochs);
    if (training.loss)
      append(line, "loss " + number_text(*training.loss));
    if (training.metric)
      append(line, training.metric->name + " " + shown(training.metric->value));
    lines.push_back(std::move(line));
  }
  if (lines.size() > rows)
    lines.resize(rows);
  for (std::string& line : lines)
    line = cut_to(line, columns);
  return lines;
}

std::string trial_line(const TrialSummary& trial, const SearchProgress& search) {
  std::string line = "trial " + std::to_string(trial.number) + ": " + trial.state;
  if (!trial.values.empty())
    line += ", " + objectives_text(search, trial.values);
  if (trial.state == "pruned" || trial.state == "paused")
    line += " after epoch " + std::to_string(trial.epochs);
  if (!trial.error.empty())
    return line + " (" + trial.error + ")";
  line += "  " + params_text(trial.params);
  return trial.number == search.best_trial ? line + std::string(kBest) : line;
}

std::string clock_text(double seconds) {
  const long long whole = std::llround(std::clamp(seconds, 0.0, 3.6e9));
  char text[48];
  if (whole < 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  }
  return text;
}

std::string fit_line(const FitId& fit, const FitSummary& summary) {
  std::string line = fit.path() + ": " + std::to_string(summary.epochs) +
                     (summary.epochs == 1 ? " epoch" : " epochs");
  if (summary.best_epoch > 0 && summary.best_epoch != summary.epochs)
    line += ", the best was " + std::to_string(summary.best_epoch);
  // The metrics are those of the weights that are kept, so the loss must be theirs, too.
  line += ", loss " + shown(summary.best_epoch > 0 ? summary.best_loss : summary.final_loss);
  for (const MetricValue& metric : summary.metrics) {
    if (!is_of_one_class(metric.name))
      line += ", " + metric.name + " " + shown(metric.value);
  }
  if (!summary.stop_reason.empty())
    line += " (" + summary.stop_reason + ")";
  return line;
}

}  // namespace treadle::cli
