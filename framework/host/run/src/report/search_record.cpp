#include "report/search_record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/core/history/history.h>

#include "store/trial_paths.h"

namespace treadle::report {
namespace {

using internal::trial_in_path;
using Json = nlohmann::json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::optional<SearchSpace> space_of(const Json& written) {
  if (!written.is_object())
    return std::nullopt;
  try {
    return SearchSpace::parse(Config(written));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<Point> point_of(const std::optional<SearchSpace>& space, const Json& params) {
  if (!space)
    return std::nullopt;
  try {
    return space->from_json(params);
  } catch (const Error&) {
    return std::nullopt;
  }
}

SearchRecord::Trial trial_of(const SearchResult::Trial& result, const SearchRecord& search) {
  SearchRecord::Trial trial;
  trial.result = &result;
  trial.point = point_of(search.space, result.params);
  if (trial.is_complete())
    trial.values.assign(result.values.begin(), result.values.end());
  trial.values.resize(search.objectives().size(), kNone);
  for (const Number& constraint : result.constraints) {
    // A constraint that is not a number does not hold.
    trial.violation += constraint.is_known() ? std::max(constraint.value(), 0.0)
                                             : std::numeric_limits<double>::infinity();
  }
  for (const SearchResult::Intermediate& one : result.intermediate) {
    trial.intermediate.epochs.push_back(static_cast<double>(one.step));
    trial.intermediate.values.push_back(one.value);
  }
  return trial;
}

std::optional<std::size_t> place_of(const SearchRecord& search, std::int64_t number) {
  const auto found = std::find_if(
      search.trials.begin(), search.trials.end(),
      [&](const SearchRecord::Trial& trial) { return number == trial.result->number; });
  if (found == search.trials.end())
    return std::nullopt;
  return static_cast<std::size_t>(found - search.trials.begin());
}

Number value_at(const EpochSummary& epoch, const std::string& objective) {
  const std::optional<MetricValue> found = find_value(epoch, objective);
  return found ? found->value : Number(kNone);
}

using Fits = std::vector<const TrainingCurve*>;

/// The mean over the fits of a trial, those that are undefined left out, for the epochs that each
/// of them has. Where all have ended, one that did before the others keeps its last value.
SearchRecord::Curve mean_curve(const Fits& fits, const std::string& objective, bool have_ended) {
  struct Sum {
    double value = 0;
    std::size_t fits = 0;
    std::size_t defined = 0;

    void add(const Number& of_fit) {
      ++fits;
      if (of_fit.is_undefined())
        return;
      value += of_fit;
      ++defined;
    }
  };
  std::map<std::int64_t, Sum> sums;
  for (const TrainingCurve* fit : fits) {
    for (const EpochSummary& epoch : fit->epochs) {
      sums[epoch.epoch].add(value_at(epoch, objective));
    }
  }
  for (const TrainingCurve* fit : fits) {
    const EpochSummary& last = fit->epochs.back();
    for (auto later = sums.upper_bound(last.epoch); have_ended && later != sums.end(); ++later) {
      later->second.add(value_at(last, objective));
    }
  }
  SearchRecord::Curve curve;
  for (const auto& [epoch, sum] : sums) {
    if (sum.fits != fits.size())
      continue;
    curve.epochs.push_back(static_cast<double>(epoch));
    curve.values.push_back(weighted_mean(sum.value, static_cast<double>(sum.defined)));
  }
  const bool is_empty = std::all_of(curve.values.begin(), curve.values.end(),
                                    [](double value) { return std::isnan(value); });
  return is_empty ? SearchRecord::Curve() : curve;
}

/// Trials are sorted by this; smaller is better, from left to right.
using Rank = std::tuple<int, double, std::int64_t>;

Rank rank_of(const SearchRecord& search, std::size_t place) {
  enum Group : int { kFeasible, kInfeasible, kPaused, kPruned, kWithout };
  const SearchRecord::Trial& trial = search.trials[place];
  if (!trial.is_complete()) {
    const std::vector<double>& steps = trial.intermediate.epochs;
    const double last = steps.empty() ? 0 : steps.back();
    const std::string& state = trial.result->state;
    const Group group = state == "paused" ? kPaused : state == "pruned" ? kPruned : kWithout;
    return {group, group == kWithout ? 0 : -last, trial.result->number};
  }
  if (!trial.is_feasible())
    return {kInfeasible, trial.violation, trial.result->number};
  if (search.objectives().size() == 1) {
    const double loss = search.loss(place, 0);
    return {kFeasible, std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss,
            trial.result->number};
  }
  const bool is_on_front =
      std::find(search.pareto.begin(), search.pareto.end(), place) != search.pareto.end();
  return {kFeasible, is_on_front ? 0 : 1, trial.result->number};
}

}  // namespace

double SearchRecord::loss(std::size_t trial, std::size_t objective) const {
  const double value = trials[trial].values[objective];
  return objectives()[objective].maximizes ? -value : value;
}

SearchRecord read_search(const SearchResult& result) {
  SearchRecord search;
  search.result = &result;
  search.space = space_of(result.space);
  for (const SearchResult::Trial& trial : result.trials) {
    search.has_constraints = search.has_constraints || !trial.constraints.empty();
    search.trials.push_back(trial_of(trial, search));
  }
  search.best = place_of(search, result.best_trial);
  for (const std::int64_t number : result.pareto_trials.value_or(std::vector<std::int64_t>())) {
    if (const auto place = place_of(search, number))
      search.pareto.push_back(*place);
  }
  return search;
}

std::vector<std::size_t> best_first(const SearchRecord& search) {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < search.trials.size(); ++i)
    ranks.push_back(rank_of(search, i));
  std::vector<std::size_t> order(search.trials.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return ranks[a] < ranks[b]; });
  return order;
}

std::vector<SearchRecord::Curve> trial_curves(const SearchRecord& search, const ReportInput& input,
                                              std::size_t objective) {
  std::map<std::int64_t, Fits> fits;
  for (const TrainingCurve& curve : input.curves) {
    const auto number = trial_in_path(curve.fit);
    if (number && !curve.epochs.empty())
      fits[*number].push_back(&curve);
  }
  std::vector<SearchRecord::Curve> curves;
  for (const SearchRecord::Trial& trial : search.trials) {
    const auto found = fits.find(trial.result->number);
    SearchRecord::Curve& curve = curves.emplace_back();
    if (objective == 0)
      curve = trial.intermediate;
    if (found == fits.end())
      continue;
    // Behind the values of the pruner, such as the last epoch of a complete trial.
    const SearchRecord::Curve whole =
        mean_curve(found->second, search.objectives()[objective].name, trial.is_complete());
    for (std::size_t i = 0; i < whole.epochs.size(); ++i) {
      if (curve.epochs.empty() || whole.epochs[i] > curve.epochs.back()) {
        curve.epochs.push_back(whole.epochs[i]);
        curve.values.push_back(whole.values[i]);
      }
    }
  }
  return curves;
}

}  // namespace treadle::report
