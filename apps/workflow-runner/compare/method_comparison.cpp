#include "compare/method_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "records/run_settings.h"
#include "terminal/result_text.h"
#include "terminal/text_table.h"

// From runs to statements: runs are grouped by their documents; each number of a group has a
// spread; each two groups are tested.
//
// The test depends on what the runs share. Runs of two methods that were judged on the same rows
// are pairs. If all pairs have one split, the differences are independent given that split: a
// paired t test, over seeds. If there are several splits, as folds or a split for each seed, their
// training rows overlap, and differences are averaged within a split and tested with the correction
// of Nadeau and Bengio. Splits of different data sets, drawn anew for each seed, do not overlap.
// Without pairs, runs are two samples.

namespace treadle::cli {
namespace {

using Json = nlohmann::json;
using Design = PairComparison::Design;

constexpr const char* kTime = "time";

/// The runs of a method by what makes them one.
struct Group {
  Settings settings;
  Method method;
};

std::vector<Group> grouped(const std::vector<RunRecord>& runs,
                           const std::vector<MeasuredRun>& measured) {
  std::vector<Group> groups;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    Settings settings = settings_of(runs[run]);
    settings.erase("seed");
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& group) { return group.settings == settings; });
    if (found == groups.end())
      found = groups.insert(groups.end(), Group{std::move(settings), {}});
    Method& method = found->method;
    const bool repeats =
        std::any_of(method.runs.begin(), method.runs.end(), [&](std::size_t other) {
          return measured[run].seed && measured[run].seed == measured[other].seed &&
                 runs[run].result.is_object() == runs[other].result.is_object();
        });
    (repeats ? method.repeats : method.runs).push_back(run);
  }
  return groups;
}

std::vector<double> values_of(const Method& method, const std::vector<MeasuredRun>& measured,
                              const std::string& number) {
  std::vector<double> values;
  for (const std::size_t run : method.runs) {
    for (const ResultNumber& one : measured[run].numbers) {
      if (one.name == number && one.value.is_number())
        values.push_back(one.value.get<double>());
    }
  }
  return values;
}

/// One measurement of a method, on rows that another method may have been measured on, too.
struct Measurement {
  double value = 0;
  double test_share = 0;  // judging over training rows; 0 where it is not known
  std::string data;       // its hash
};

/// By seed, fit and rows: what two methods have in common is a pair.
using Measurements = std::map<std::array<std::string, 3>, Measurement>;

Measurements measurements_of(const Method& method, const std::vector<MeasuredRun>& measured,
                             const std::string& number) {
  Measurements all;
  for (const std::size_t run : method.runs) {
    if (!measured[run].seed)
      continue;
    for (const MeasuredTraining& training : measured[run].trainings) {
      const auto value = training.values.find(number);
      if (value == training.values.end() || training.rows.empty())
        continue;
      Measurement measurement{value->second, 0, measured[run].data};
      if (training.training > 0) {
        measurement.test_share =
            static_cast<double>(training.judging) / static_cast<double>(training.training);
      }
      all[{std::to_string(*measured[run].seed), training.fit, training.rows}] = measurement;
    }
  }
  return all;
}

/// Differences of the pairs on each split.
struct Split {
  std::vector<double> differences;
  double test_share = 0;
  std::string data;
};

std::map<std::string, Split> paired(const Measurements& first, const Measurements& second) {
  std::map<std::string, Split> splits;
  for (const auto& [key, measurement] : first) {
    const auto other = second.find(key);
    if (other == second.end())
      continue;
    Split& split = splits[key.back()];
    split.differences.push_back(measurement.value - other->second.value);
    split.test_share = measurement.test_share;
    split.data = measurement.data;
  }
  return splits;
}

double mean_of(const std::vector<double>& values) {
  return spread_of(values).mean;
}

std::set<std::string> data_of(const Method& method, const std::vector<MeasuredRun>& measured) {
  std::set<std::string> data;
  for (const std::size_t run : method.runs)
    data.insert(measured[run].data);
  return data;
}

/// Whether both were measured on the same data, as far as is known.
bool share_data(const Method& first, const Method& second,
                const std::vector<MeasuredRun>& measured) {
  const std::set<std::string> ours = data_of(first, measured);
  const std::set<std::string> theirs = data_of(second, measured);
  return ours.contains("") || theirs.contains("") ||
         std::any_of(ours.begin(), ours.end(),
                     [&](const std::string& one) { return theirs.contains(one); });
}

/// Tests pairs that are independent of each other.
void test_pairs(const std::vector<double>& differences, PairComparison& pair) {
  pair.design = Design::kSeeds;
  pair.pairs = static_cast<std::int64_t>(differences.size());
  pair.test = paired_t(differences);
  pair.ranks = wilcoxon_signed_rank(differences);
}

void test_splits(const std::map<std::string, Split>& splits, PairComparison& pair) {
  std::vector<double> differences;
  std::set<std::string> data;
  double test_share = 0;
  bool is_known = true;
  for (const auto& [rows, split] : splits) {
    differences.push_back(mean_of(split.differences));
    data.insert(split.data);
    test_share += split.test_share / static_cast<double>(splits.size());
    is_known = is_known && split.test_share > 0;
  }
  if (data.size() == splits.size())
    return test_pairs(differences, pair);
  if (!is_known)
    return;  // uncorrected, it would call chance a difference
  pair.design = Design::kSplits;
  pair.pairs = static_cast<std::int64_t>(differences.size());
  pair.test = corrected_resampled_t(differences, test_share);
}

void compare_pair(const Method& first, const Method& second,
                  const std::vector<MeasuredRun>& measured, const std::string& number,
                  PairComparison& pair) {
  const std::map<std::string, Split> splits =
      paired(measurements_of(first, measured, number), measurements_of(second, measured, number));
  if (splits.size() > 1)
    return test_splits(splits, pair);
  if (splits.size() == 1 && splits.begin()->second.differences.size() > 1)
    return test_pairs(splits.begin()->second.differences, pair);
  const std::vector<double> ours = values_of(first, measured, number);
  const std::vector<double> theirs = values_of(second, measured, number);
  if (ours.size() < 2 || theirs.size() < 2 || !share_data(first, second, measured))
    return;
  pair.design = Design::kUnpaired;
  pair.test = welch_t(ours, theirs);
}

void correct_for_all(std::vector<PairComparison>& pairs) {
  std::vector<double> p;
  for (const PairComparison& pair : pairs) {
    if (pair.test)
      p.push_back(pair.test->p);
  }
  const std::vector<double> corrected = holm(p);
  auto next = corrected.begin();
  for (PairComparison& pair : pairs) {
    if (pair.test)
      pair.p_holm = *next++;
  }
}

const PairComparison& pair_of(const NumberVerdict& verdict, std::size_t a, std::size_t b) {
  return *std::find_if(verdict.pairs.begin(), verdict.pairs.end(), [&](const PairComparison& pair) {
    return (pair.first == a && pair.second == b) || (pair.first == b && pair.second == a);
  });
}

/// Nothing where fewer than two methods have the number.
std::optional<NumberVerdict> verdict_of(const MethodComparison& comparison, std::size_t number,
                                        const std::vector<MeasuredRun>& measured) {
  const ResultNumber& about = comparison.numbers[number];
  const double sign = about.better == "higher" ? 1 : -1;
  NumberVerdict verdict;
  verdict.number = number;
  std::vector<std::size_t> having;
  for (std::size_t i = 0; i < comparison.methods.size(); ++i) {
    const double mean = comparison.methods[i].spreads[number].mean;
    if (!std::isfinite(mean))
      continue;
    if (having.empty() ||
        sign * mean > sign * comparison.methods[verdict.best].spreads[number].mean)
      verdict.best = i;
    having.push_back(i);
  }
  if (having.size() < 2)
    return std::nullopt;
  for (std::size_t i = 0; i < having.size(); ++i) {
    for (std::size_t j = i + 1; j < having.size(); ++j) {
      PairComparison& pair = verdict.pairs.emplace_back();
      pair.first = having[i];
      pair.second = having[j];
      compare_pair(comparison.methods[pair.first], comparison.methods[pair.second], measured,
                   about.name, pair);
    }
  }
  correct_for_all(verdict.pairs);
  for (const std::size_t method : having) {
    if (method == verdict.best || !pair_of(verdict, verdict.best, method).is_significant())
      verdict.not_distinguishable.push_back(method);
  }
  return verdict;
}

std::string signed_text(double value) {
  const std::string text = number_text(Json(value));
  return value > 0 ? "+" + text : text;
}

std::string interval_text(const std::optional<Interval>& interval) {
  return interval
             ? number_text(Json(interval->first)) + " to " + number_text(Json(interval->second))
             : "-";
}

std::string p_text(const std::optional<double>& p) {
  constexpr double kTooSmallToShow = 0.0001;
  return !p ? "-" : *p < kTooSmallToShow ? "< 0.0001" : number_text(Json(*p));
}

std::string design_text(const PairComparison& pair, const MethodComparison& comparison) {
  const std::string count = std::to_string(pair.pairs);
  switch (pair.design) {
    case Design::kSeeds:
      return "paired t over " + count + " seeds";
    case Design::kSplits:
      return "corrected t over " + count + " splits";
    case Design::kUnpaired:
      return "Welch's t of " + std::to_string(comparison.methods[pair.first].runs.size()) +
             " and " + std::to_string(comparison.methods[pair.second].runs.size()) + " runs";
    case Design::kNone:
      break;
  }
  return "none: too few runs";
}

std::string_view design_word(Design design) {
  constexpr std::array<std::string_view, 4> kWords{"none", "paired t", "corrected resampled t",
                                                   "Welch t"};
  return kWords[static_cast<std::size_t>(design)];
}

bool is_tested(const NumberVerdict& verdict) {
  return std::any_of(verdict.pairs.begin(), verdict.pairs.end(),
                     [](const PairComparison& pair) { return pair.test.has_value(); });
}

std::string verdict_text(const NumberVerdict& verdict, const MethodComparison& comparison) {
  const auto label = [&](std::size_t method) { return comparison.methods[method].label; };
  const std::string best = "best mean: " + label(verdict.best);
  if (!is_tested(verdict))
    return best;
  if (verdict.has_winner())
    return best + ", and the difference from every other is significant";
  std::string others;
  for (const std::size_t method : verdict.not_distinguishable) {
    if (method != verdict.best)
      others += (others.empty() ? "" : ", ") + label(method);
  }
  return best + "; not distinguishable from it: " + others;
}

/// The differences of the other methods from the best one, a line for each that is tested.
std::vector<Cells> lines_from_the_best(const NumberVerdict& verdict,
                                       const MethodComparison& comparison) {
  std::vector<Cells> lines;
  for (const PairComparison& pair : verdict.pairs) {
    if (!pair.test || (pair.first != verdict.best && pair.second != verdict.best))
      continue;
    const bool is_turned = pair.second == verdict.best;
    const std::size_t other = is_turned ? pair.first : pair.second;
    const Interval& found = pair.test->interval;
    const Interval interval = is_turned ? Interval(-found.second, -found.first) : found;
    lines.push_back({"best - " + comparison.methods[other].label, design_text(pair, comparison),
                     signed_text((is_turned ? -1 : 1) * pair.test->difference),
                     interval_text(interval), p_text(pair.test->p), p_text(pair.p_holm),
                     pair.ranks ? p_text(pair.ranks->p) : "-"});
  }
  return lines;
}

}  // namespace

MethodComparison compare_methods(const std::vector<RunRecord>& runs,
                                 const std::vector<MeasuredRun>& measured,
                                 bool losses_are_comparable) {
  MethodComparison comparison;
  for (const MeasuredRun& run : measured) {
    for (const ResultNumber& one : run.numbers) {
      const auto is_same = [&](const ResultNumber& known) { return known.name == one.name; };
      if (std::none_of(comparison.numbers.begin(), comparison.numbers.end(), is_same))
        comparison.numbers.push_back({one.name, Json(), one.better});
    }
  }
  std::vector<Group> groups = grouped(runs, measured);
  std::vector<Settings> settings;
  for (const Group& group : groups)
    settings.push_back(group.settings);
  DifferingSettings differing = differing_settings(std::move(settings));
  comparison.keys = std::move(differing.keys);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Method& method = groups[i].method;
    method.label = method.runs.size() == 1
                       ? measured[method.runs.front()].name
                       : "method " + std::to_string(comparison.methods.size() + 1);
    method.settings = std::move(differing.values[i]);
    for (const ResultNumber& number : comparison.numbers)
      method.spreads.push_back(spread_of(values_of(method, measured, number.name)));
    std::vector<double> seconds;
    for (const std::size_t run : method.runs) {
      if (runs[run].result.is_object() && runs[run].seconds)
        seconds.push_back(*runs[run].seconds);
    }
    method.spreads.push_back(spread_of(seconds));
    comparison.methods.push_back(std::move(method));
  }
  comparison.numbers.push_back({kTime, Json(), ""});
  for (std::size_t i = 0; i < comparison.numbers.size(); ++i) {
    const ResultNumber& number = comparison.numbers[i];
    const bool is_loss = number.name == "loss" || number.name == "best loss";
    if (number.better.empty() || (is_loss && !losses_are_comparable))
      continue;
    if (std::optional<NumberVerdict> verdict = verdict_of(comparison, i, measured))
      comparison.verdicts.push_back(*std::move(verdict));
  }
  return comparison;
}

bool MethodComparison::has_repeated_runs() const {
  return std::any_of(methods.begin(), methods.end(),
                     [](const Method& method) { return method.runs.size() > 1; });
}

std::string MethodComparison::table(const Terminal& terminal) const {
  Cells head{"method", "runs"};
  head.insert(head.end(), keys.begin(), keys.end());
  const std::size_t words = head.size();
  for (const ResultNumber& number : numbers) {
    if (!is_of_one_class(number.name))
      head.insert(head.end(), {number.name, "deviation", "95 % interval"});
  }
  std::vector<Cells> cells;
  for (const Method& method : methods) {
    Cells& line = cells.emplace_back(Cells{method.label, std::to_string(method.runs.size())});
    for (const Json& setting : method.settings)
      line.push_back(setting_text(setting));
    for (std::size_t at = 0; at < numbers.size(); ++at) {
      if (is_of_one_class(numbers[at].name))
        continue;
      const Spread& spread = method.spreads[at];
      const std::string few =
          spread.n == static_cast<std::int64_t>(method.runs.size())
              ? ""
              : " (of " + std::to_string(spread.n) + (spread.n == 1 ? " run)" : " runs)");
      line.push_back(number_text(Json(spread.mean)) + few);
      line.push_back(spread.deviation ? number_text(Json(*spread.deviation)) : "-");
      line.push_back(interval_text(spread.interval));
    }
  }
  return table_text(head, cells, words, terminal);
}

std::string MethodComparison::differences(const Terminal& terminal) const {
  constexpr std::size_t kWords = 2;
  const Cells head{"difference", "test", "mean", "95 % interval", "p", "p (Holm)", "p (Wilcoxon)"};
  std::string text;
  bool is_any_untested = false;
  for (const NumberVerdict& verdict : verdicts) {
    const ResultNumber& number = numbers[verdict.number];
    if (is_of_one_class(number.name))
      continue;
    is_any_untested = is_any_untested || !is_tested(verdict);
    const std::vector<Cells> lines = lines_from_the_best(verdict, *this);
    text += paragraph(terminal.bold(number.name) + " (" + number.better +
                          " is better): " + verdict_text(verdict, *this),
                      terminal);
    if (!lines.empty())
      text += table_text(head, lines, kWords, terminal) + "\n";
  }
  if (is_any_untested) {
    text += paragraph(
        "Without a test it cannot be told whether a difference is more than chance. Run each "
        "method with the same seeds, three or more.",
        terminal);
  }
  while (text.ends_with("\n\n"))
    text.pop_back();
  return text;
}

Json MethodComparison::json(const std::vector<MeasuredRun>& measured) const {
  const auto names = [&](const std::vector<std::size_t>& runs) {
    Json list = Json::array();
    for (const std::size_t run : runs)
      list.push_back(measured[run].name);
    return list;
  };
  const auto interval_json = [](const std::optional<Interval>& interval) {
    return interval ? Json({interval->first, interval->second}) : Json();
  };
  Json list = Json::array();
  for (const Method& method : methods) {
    Json named = Json::object();
    for (std::size_t i = 0; i < keys.size(); ++i)
      named[keys[i]] = method.settings[i];
    Json metrics = Json::object();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const Spread& spread = method.spreads[i];
      metrics[numbers[i].name] = {{"n", spread.n},
                                  {"mean", spread.n > 0 ? Json(spread.mean) : Json()},
                                  {"std", spread.deviation ? Json(*spread.deviation) : Json()},
                                  {"interval", interval_json(spread.interval)}};
    }
    list.push_back({{"label", method.label},
                    {"runs", names(method.runs)},
                    {"repeats", names(method.repeats)},
                    {"settings", std::move(named)},
                    {"metrics", std::move(metrics)}});
  }
  Json differences = Json::object();
  for (const NumberVerdict& verdict : verdicts) {
    Json pairs = Json::array();
    for (const PairComparison& pair : verdict.pairs) {
      Json one{{"methods", {pair.first, pair.second}},
               {"test", design_word(pair.design)},
               {"pairs", pair.pairs},
               {"difference", pair.test ? Json(pair.test->difference) : Json()},
               {"interval", pair.test ? interval_json(pair.test->interval) : Json()},
               {"t", pair.test ? Json(pair.test->t) : Json()},
               {"degrees_of_freedom", pair.test ? Json(pair.test->degrees_of_freedom) : Json()},
               {"p", pair.test ? Json(pair.test->p) : Json()},
               {"p_holm", pair.p_holm ? Json(*pair.p_holm) : Json()}};
      if (pair.ranks)
        one["wilcoxon"] = {
            {"n", pair.ranks->n}, {"w", pair.ranks->statistic}, {"p", pair.ranks->p}};
      pairs.push_back(std::move(one));
    }
    differences[numbers[verdict.number].name] = {
        {"better", numbers[verdict.number].better},
        {"best_mean", verdict.best},
        {"not_distinguishable", verdict.not_distinguishable},
        {"winner", verdict.has_winner() ? Json(verdict.best) : Json()},
        {"pairs", std::move(pairs)}};
  }
  return {{"methods", std::move(list)}, {"differences", std::move(differences)}};
}

}  // namespace treadle::cli
