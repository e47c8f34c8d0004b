#include "run_comparison.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <boost/math/distributions/students_t.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>

#include "result_text.h"

namespace treadle::cli {
namespace {

using Json = nlohmann::json;
using Cells = std::vector<std::string>;

constexpr std::size_t kWidestCell = 32;
constexpr std::string_view kBetween = "  ";
constexpr const char* kRunColumn = "run";
constexpr const char* kEpochs = "epochs";
constexpr const char* kTime = "time";

/// A table in as many pieces as the terminal's width makes necessary; each begins with the first
/// column.
std::string table_text(const Cells& head, const std::vector<Cells>& rows, std::size_t left_columns,
                       const Terminal& terminal) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < head.size(); ++i) {
    widths.push_back(columns_of(head[i]));
    for (const Cells& row : rows)
      widths.back() = std::max(widths.back(), columns_of(row[i]));
  }
  std::string text;
  for (std::size_t begin = 1; begin < head.size();) {
    std::size_t total = widths[0] + kBetween.size() + widths[begin];
    std::size_t end = begin + 1;
    while (end < head.size() && total + kBetween.size() + widths[end] <= terminal.width())
      total += kBetween.size() + widths[end++];
    const auto line = [&](const Cells& cells) {
      std::string said = left_aligned(cells[0], widths[0]);
      for (std::size_t i = begin; i < end; ++i) {
        said += kBetween;
        said += i < left_columns ? left_aligned(cells[i], widths[i])
                                 : right_aligned(cells[i], widths[i]);
      }
      said.erase(said.find_last_not_of(' ') + 1);
      return said;
    };
    text += (text.empty() ? "" : "\n") + terminal.dim(line(head)) + "\n";
    for (const Cells& row : rows)
      text += line(row) + "\n";
    begin = end;
  }
  return text;
}

std::string local_time(std::optional<double> seconds) {
  if (!seconds)
    return "-";
  const auto time = static_cast<std::time_t>(*seconds);
  std::tm local{};
  localtime_r(&time, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
  return text;
}

Json utc_time(std::optional<double> seconds) {
  if (!seconds)
    return {};
  const auto time = static_cast<std::time_t>(*seconds);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string epochs_text(const RunRecord& run) {
  const std::string done = std::to_string(run.epochs);
  return run.state == RunState::kFinished || run.planned_epochs == 0
             ? done
             : done + "/" + std::to_string(run.planned_epochs);
}

std::string value_text(const Json& value) {
  if (value.is_null())
    return "-";
  if (value.is_number_float())
    return number_text(value);
  return cut_to(value.is_string() ? value.get<std::string>() : value.dump(), kWidestCell);
}

/// A setting as it was written: 0.001 rather than 1.0e-03.
std::string setting_text(const Json& value) {
  return value.is_null()     ? "-"
         : value.is_string() ? cut_to(value.get<std::string>(), kWidestCell)
                             : cut_to(value.dump(), kWidestCell);
}

std::string csv_field(const Json& value) {
  const std::string text = value.is_null()     ? ""
                           : value.is_string() ? value.get<std::string>()
                                               : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (const char c : text)
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

bool is_of_one_class(std::string_view name) {
  return name.find('.') != std::string_view::npos;
}

using Settings = std::map<std::string, Json>;

/// The values of a document by their paths; a list is one value.
void flatten(const Json& value, const std::string& path, Settings& settings) {
  if (!value.is_object()) {
    settings[path] = value;
    return;
  }
  for (const auto& [key, inner] : value.items())
    flatten(inner, path.empty() ? key : path + "." + key, settings);
}

Settings settings_of(const RunRecord& run) {
  Json document = run.document;
  // The run's own name, and what is nobody's setting.
  for (const char* key : {"treadle", "name", "extensions", "$schema"})
    document.erase(key);
  Settings settings;
  flatten(document, "", settings);
  return settings;
}

/// A setting as a column: "loss" is a number of the result, and may be a key of the document.
std::string column_of(const std::string& key, const Cells& numbers) {
  return std::find(numbers.begin(), numbers.end(), key) == numbers.end() ? key
                                                                         : key + " (document)";
}

std::vector<std::string> differing_keys(const std::vector<Settings>& all) {
  std::set<std::string> keys;
  for (const Settings& one : all) {
    for (const auto& [key, value] : one)
      keys.insert(key);
  }
  std::vector<std::string> differing;
  for (const std::string& key : keys) {
    const auto value_in = [&](const Settings& settings) {
      const auto found = settings.find(key);
      return found == settings.end() ? Json() : found->second;
    };
    if (std::any_of(all.begin(), all.end(),
                    [&](const Settings& one) { return value_in(one) != value_in(all.front()); }))
      differing.push_back(key);
  }
  return differing;
}

void sort_rows(Comparison& comparison, const std::string& sort, bool higher_is_better) {
  if (sort == kRunColumn) {
    std::stable_sort(comparison.rows.begin(), comparison.rows.end(),
                     [](const auto& a, const auto& b) { return a.run < b.run; });
    return;
  }
  Cells names = comparison.numbers;
  names.insert(names.end(), comparison.keys.begin(), comparison.keys.end());
  const auto found = std::find(names.begin(), names.end(), sort);
  if (found == names.end()) {
    const std::string suggestion = did_you_mean(sort, names);
    std::string known;
    for (const std::string& name : names)
      known += (known.empty() ? "" : ", ") + name;
    throw UsageError("--sort: no column is called " + quote_text(sort) +
                     (suggestion.empty() ? "; the columns are " + known : suggestion));
  }
  const auto column = static_cast<std::size_t>(found - names.begin());
  std::stable_sort(comparison.rows.begin(), comparison.rows.end(),
                   [&](const Comparison::Row& a, const Comparison::Row& b) {
                     const Json& left = a.values[column];
                     const Json& right = b.values[column];
                     if (left.is_null() || right.is_null())
                       return !left.is_null() && right.is_null();
                     return higher_is_better ? left > right : left < right;
                   });
}

Json number_of(const RunRecord& run, const std::vector<ResultNumber>& numbers,
               const std::string& name) {
  if (name == kEpochs)
    return run.epochs;
  if (name == kTime)
    return run.seconds ? Json(*run.seconds) : Json();
  const auto found = std::find_if(numbers.begin(), numbers.end(),
                                  [&](const ResultNumber& one) { return one.name == name; });
  return found == numbers.end() ? Json() : found->value;
}

/// What a run is judged by when it is one of several of the same method.
std::vector<ResultNumber> judged_numbers(const RunRecord& run) {
  if (run.result.is_null())
    return {};
  std::vector<ResultNumber> numbers = result_numbers(run.result);
  if (const std::optional<ResultNumber> variance = window_variance(run.result))
    numbers.push_back(*variance);
  numbers.push_back({kTime, run.seconds ? Json(*run.seconds) : Json(), ""});
  return numbers;
}

Method::Spread spread_of(const std::vector<double>& values) {
  constexpr double kUpperTail = 0.975;  // 95 % between it and the lower one
  Method::Spread spread;
  spread.n = static_cast<std::int64_t>(values.size());
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values)
    sum += value;
  spread.mean = values.empty() ? std::numeric_limits<double>::quiet_NaN() : sum / n;
  if (values.size() < 2)
    return spread;
  double squares = 0;
  for (const double value : values)
    squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / (n - 1));
  const double half = boost::math::quantile(boost::math::students_t(n - 1), kUpperTail) *
                      *spread.deviation / std::sqrt(n);
  spread.interval = {spread.mean - half, spread.mean + half};
  return spread;
}

std::map<std::string, std::vector<std::size_t>> best_methods(const MethodComparison& comparison) {
  std::map<std::string, std::vector<std::size_t>> best;
  for (std::size_t i = 0; i < comparison.numbers.size(); ++i) {
    const ResultNumber& number = comparison.numbers[i];
    if (number.better.empty())
      continue;
    const double sign = number.better == "higher" ? 1 : -1;
    double top = -std::numeric_limits<double>::infinity();
    for (std::size_t method = 0; method < comparison.methods.size(); ++method) {
      const double mean = sign * comparison.methods[method].spreads[i].mean;
      if (!std::isfinite(mean) || mean < top)
        continue;
      if (mean > top)
        best[number.name].clear();
      top = mean;
      best[number.name].push_back(method);
    }
  }
  return best;
}

std::string label_of(std::size_t method) {
  return "method " + std::to_string(method + 1);
}

}  // namespace

std::string run_listing(const std::vector<RunRecord>& runs, const Terminal& terminal) {
  if (runs.empty())
    return "no runs\n";
  std::vector<Cells> rows;
  for (const RunRecord& run : runs) {
    rows.push_back({shown_path(run.folder), run.name, local_time(run.started),
                    std::string(state_word(run.state)),
                    run.metric.empty() ? "-" : run.metric + " " + value_text(run.metric_value),
                    epochs_text(run), run.seconds ? seconds_text(*run.seconds) : "-"});
  }
  constexpr std::size_t kWords = 5;
  return table_text({"run", "name", "started", "state", "metric", "epochs", "time"}, rows, kWords,
                    terminal);
}

Json run_listing_json(const std::vector<RunRecord>& runs) {
  Json list = Json::array();
  for (const RunRecord& run : runs) {
    list.push_back({{"folder", run.folder.string()},
                    {"name", run.name},
                    {"started_at", utc_time(run.started)},
                    {"state", state_word(run.state)},
                    {"metric", run.metric.empty() ? Json() : Json(run.metric)},
                    {"value", run.metric_value},
                    {"epochs", run.epochs},
                    {"seconds", run.seconds ? Json(*run.seconds) : Json()}});
  }
  return {{"runs", std::move(list)}};
}

Comparison compare_runs(const std::vector<RunRecord>& runs, const std::string& sort) {
  Comparison comparison;
  std::vector<std::vector<ResultNumber>> results;
  std::vector<Settings> settings;
  std::map<std::string, std::string> better;
  for (const RunRecord& run : runs) {
    results.push_back(run.result.is_null() ? std::vector<ResultNumber>()
                                           : result_numbers(run.result));
    settings.push_back(settings_of(run));
    for (const ResultNumber& one : results.back()) {
      if (better.emplace(one.name, one.better).second)
        comparison.numbers.push_back(one.name);
    }
  }
  comparison.numbers.insert(comparison.numbers.end(), {kEpochs, kTime});
  const std::vector<std::string> keys = differing_keys(settings);
  for (const std::string& key : keys)
    comparison.keys.push_back(column_of(key, comparison.numbers));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Comparison::Row& row = comparison.rows.emplace_back();
    row.run = shown_path(runs[i].folder);
    for (const std::string& name : comparison.numbers)
      row.values.push_back(number_of(runs[i], results[i], name));
    for (const std::string& key : keys) {
      const auto found = settings[i].find(key);
      row.values.push_back(found == settings[i].end() ? Json() : found->second);
    }
  }
  if (!sort.empty()) {
    const auto direction = better.find(sort);
    sort_rows(comparison, sort, direction != better.end() && direction->second == "higher");
  }
  return comparison;
}

std::string Comparison::text(const Terminal& terminal) const {
  // A number of every class makes no table that anybody can read; --csv and --json have them.
  std::vector<std::size_t> shown;
  Cells head{kRunColumn};
  for (std::size_t i = 0; i < numbers.size() + keys.size(); ++i) {
    const bool is_number = i < numbers.size();
    if (is_number && is_of_one_class(numbers[i]))
      continue;
    shown.push_back(i);
    head.push_back(is_number ? numbers[i] : keys[i - numbers.size()]);
  }
  std::vector<Cells> cells;
  for (const Row& row : rows) {
    Cells& line = cells.emplace_back(Cells{row.run});
    for (const std::size_t i : shown) {
      const Json& value = row.values[i];
      line.push_back(i >= numbers.size()                        ? setting_text(value)
                     : numbers[i] == kTime && value.is_number() ? seconds_text(value.get<double>())
                                                                : value_text(value));
    }
  }
  return table_text(head, cells, 1, terminal);
}

std::string Comparison::csv() const {
  std::string text = kRunColumn;
  for (const std::string& name : numbers)
    text += "," + csv_field(name);
  for (const std::string& key : keys)
    text += "," + csv_field(key);
  text += "\n";
  for (const Row& row : rows) {
    text += csv_field(row.run);
    for (const Json& value : row.values)
      text += "," + csv_field(value);
    text += "\n";
  }
  return text;
}

Json Comparison::json() const {
  Json list = Json::array();
  for (const Row& row : rows) {
    Json metrics = Json::object();
    Json settings = Json::object();
    for (std::size_t i = 0; i < numbers.size(); ++i)
      metrics[numbers[i]] = row.values[i];
    for (std::size_t i = 0; i < keys.size(); ++i)
      settings[keys[i]] = row.values[numbers.size() + i];
    list.push_back(
        {{"run", row.run}, {"metrics", std::move(metrics)}, {"settings", std::move(settings)}});
  }
  return {{"runs", std::move(list)}};
}

MethodComparison compare_methods(const std::vector<RunRecord>& runs) {
  MethodComparison comparison;
  std::vector<Settings> settings;  // one for each method
  std::vector<std::vector<const RunRecord*>> members;
  for (const RunRecord& run : runs) {
    Settings own = settings_of(run);
    own.erase("seed");
    const auto found = std::find(settings.begin(), settings.end(), own);
    if (found == settings.end()) {
      settings.push_back(std::move(own));
      members.push_back({&run});
    } else {
      members[static_cast<std::size_t>(found - settings.begin())].push_back(&run);
    }
    for (ResultNumber& one : judged_numbers(run)) {
      const auto is_same = [&](const ResultNumber& known) { return known.name == one.name; };
      if (std::none_of(comparison.numbers.begin(), comparison.numbers.end(), is_same))
        comparison.numbers.push_back({one.name, Json(), one.better});
    }
  }
  comparison.keys = differing_keys(settings);
  for (std::size_t i = 0; i < members.size(); ++i) {
    Method& method = comparison.methods.emplace_back();
    for (const std::string& key : comparison.keys) {
      const auto found = settings[i].find(key);
      method.settings.push_back(found == settings[i].end() ? Json() : found->second);
    }
    std::map<std::string, std::vector<double>> values;
    for (const RunRecord* run : members[i]) {
      method.runs.push_back(shown_path(run->folder));
      for (const ResultNumber& one : judged_numbers(*run)) {
        if (one.value.is_number())
          values[one.name].push_back(one.value.get<double>());
      }
    }
    for (const ResultNumber& number : comparison.numbers)
      method.spreads.push_back(spread_of(values[number.name]));
  }
  comparison.best = best_methods(comparison);
  return comparison;
}

std::string MethodComparison::text(const Terminal& terminal) const {
  Cells head{"method", "runs"};
  head.insert(head.end(), keys.begin(), keys.end());
  const std::size_t words = head.size();
  for (const ResultNumber& number : numbers) {
    if (!is_of_one_class(number.name))
      head.insert(head.end(), {number.name, "deviation", "95 % interval"});
  }
  std::vector<Cells> cells;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const Method& method = methods[i];
    Cells& line = cells.emplace_back(Cells{label_of(i), std::to_string(method.runs.size())});
    for (const Json& setting : method.settings)
      line.push_back(setting_text(setting));
    for (std::size_t at = 0; at < numbers.size(); ++at) {
      if (is_of_one_class(numbers[at].name))
        continue;
      const Method::Spread& spread = method.spreads[at];
      const std::string few =
          spread.n == static_cast<std::int64_t>(method.runs.size())
              ? ""
              : " (of " + std::to_string(spread.n) + (spread.n == 1 ? " run)" : " runs)");
      line.push_back(number_text(Json(spread.mean)) + few);
      line.push_back(spread.deviation ? number_text(Json(*spread.deviation)) : "-");
      line.push_back(spread.interval ? number_text(Json(spread.interval->first)) + " to " +
                                           number_text(Json(spread.interval->second))
                                     : "-");
    }
  }
  std::string said = table_text(head, cells, words, terminal);
  if (methods.size() < 2)
    return said;
  for (const ResultNumber& number : numbers) {
    const auto found = best.find(number.name);
    if (found == best.end() || is_of_one_class(number.name))
      continue;
    said += "best " + number.name + ": ";
    for (std::size_t i = 0; i < found->second.size(); ++i)
      said += (i == 0 ? "" : ", ") + label_of(found->second[i]);
    said += "\n";
  }
  return said;
}

Json MethodComparison::json() const {
  Json list = Json::array();
  for (const Method& method : methods) {
    Json settings = Json::object();
    for (std::size_t i = 0; i < keys.size(); ++i)
      settings[keys[i]] = method.settings[i];
    Json metrics = Json::object();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const Method::Spread& spread = method.spreads[i];
      metrics[numbers[i].name] = {
          {"n", spread.n},
          {"mean", spread.n > 0 ? Json(spread.mean) : Json()},
          {"std", spread.deviation ? Json(*spread.deviation) : Json()},
          {"interval",
           spread.interval ? Json({spread.interval->first, spread.interval->second}) : Json()}};
    }
    list.push_back({{"runs", method.runs},
                    {"settings", std::move(settings)},
                    {"metrics", std::move(metrics)}});
  }
  return {{"methods", std::move(list)}, {"best", best}};
}

}  // namespace treadle::cli
