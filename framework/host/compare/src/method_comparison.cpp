#include <treadle/host/compare/method_comparison.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <treadle/host/compare/run_settings.h>

// From runs to statements: runs are grouped by their documents; each number of a group has a
// spread; each two groups are tested.
//
// The test depends on what the runs share. Runs of two methods that were evaluated on the same rows
// are pairs. If all pairs have one split, the differences are independent given that split: a
// paired t test, over seeds. If there are several splits, as folds or a split for each seed, their
// training rows overlap, and differences are averaged within a split and tested with the correction
// of Nadeau and Bengio. Splits of different data sets, drawn anew for each seed, do not overlap.
// Without pairs, runs are two samples.

namespace treadle::compare {
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
                 runs[run].result.has_value() == runs[other].result.has_value();
        });
    (repeats ? method.repeats : method.runs).push_back(run);
  }
  return groups;
}

std::vector<double> values_of(const Method& method, const std::vector<MeasuredRun>& measured,
                              const std::string& number) {
  std::vector<double> values;
  for (const std::size_t run : method.runs) {
    for (const MetricValue& one : measured[run].numbers) {
      if (one.name == number && one.value.is_known())
        values.push_back(one.value.value());
    }
  }
  return values;
}

/// One measurement of a method, on rows that another method may have been measured on, too.
struct Measurement {
  double value = 0;
  double test_share = 0;  // evaluated_rows over training rows; 0 where it is not known
  std::string data;       // its hash
};

/// By seed, fit and rows: a key of two methods makes a pair.
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
            static_cast<double>(training.evaluated_rows) / static_cast<double>(training.training);
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
  const MetricValue& about = comparison.numbers[number];
  const double sign = about.direction == Direction::kHigherIsBetter ? 1 : -1;
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

}  // namespace

MethodComparison compare_methods(const std::vector<RunRecord>& runs,
                                 const std::vector<MeasuredRun>& measured,
                                 bool losses_are_comparable) {
  MethodComparison comparison;
  for (const MeasuredRun& run : measured) {
    for (const MetricValue& one : run.numbers) {
      const auto is_same = [&](const MetricValue& known) { return known.name == one.name; };
      if (std::none_of(comparison.numbers.begin(), comparison.numbers.end(), is_same))
        comparison.numbers.push_back({one.name, NAN, one.direction});
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
    for (const MetricValue& number : comparison.numbers)
      method.spreads.push_back(spread_of(values_of(method, measured, number.name)));
    std::vector<double> seconds;
    for (const std::size_t run : method.runs) {
      if (runs[run].result.has_value() && runs[run].seconds)
        seconds.push_back(*runs[run].seconds);
    }
    method.spreads.push_back(spread_of(seconds));
    comparison.methods.push_back(std::move(method));
  }
  comparison.numbers.push_back({kTime, NAN, Direction::kNone});
  for (std::size_t i = 0; i < comparison.numbers.size(); ++i) {
    const MetricValue& number = comparison.numbers[i];
    const bool is_loss = number.name == "loss" || number.name == "best loss";
    if (number.direction == Direction::kNone || (is_loss && !losses_are_comparable))
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

}  // namespace treadle::compare
