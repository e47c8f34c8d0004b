#include "tpe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "parzen.h"
#include "random_search.h"
#include "trial_order.h"

namespace treadle::tuners {
namespace {

constexpr double kEpsilon = 1e-12;
constexpr double kMostBelow = 25;
constexpr std::size_t kNewest = 25;

// A little worse than the worst of each objective; 0 would give points on it no volume.
Objectives reference_of(std::span<const Objectives> points) {
  Objectives reference(points.front());
  for (const Objectives& point : points) {
    for (std::size_t i = 0; i < reference.size(); ++i)
      reference[i] = std::max(reference[i], point[i]);
  }
  for (double& worst : reference) {
    worst = std::max(1.1 * worst, 0.9 * worst);
    if (worst == 0)
      worst = kEpsilon;
  }
  return reference;
}

/// Of feasible complete trials with several objectives, the `count` best.
std::vector<std::size_t> best_of(const std::vector<Objectives>& points, std::size_t count) {
  std::vector<std::size_t> chosen;
  if (count == 0)
    return chosen;
  const std::vector<std::size_t> ranks = domination_ranks(points);
  for (std::size_t rank = 0; chosen.size() < std::min(count, points.size()); ++rank) {
    std::vector<std::size_t> front;
    std::vector<Objectives> values;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (ranks[i] == rank) {
        front.push_back(i);
        values.push_back(points[i]);
      }
    }
    const std::size_t left = count - chosen.size();
    if (front.size() <= left) {
      chosen.insert(chosen.end(), front.begin(), front.end());
      continue;
    }
    for (const std::size_t i : largest_hypervolume(values, left, reference_of(values)))
      chosen.push_back(front[i]);
  }
  return chosen;
}

/// Of the below side: what each feasible point alone adds to the hypervolume of all, as a share of
/// the largest; next to nothing for infeasible and dominated ones.
std::vector<double> volume_weights(std::span<const Trial> trials,
                                   const std::vector<std::size_t>& below) {
  std::vector<double> weights(below.size(), kEpsilon);
  std::vector<std::size_t> feasible;
  std::vector<Objectives> points;
  for (std::size_t i = 0; i < below.size(); ++i) {
    const Trial& trial = trials[below[i]];
    if (violation(trial) > 0)
      continue;
    weights[i] = 1;
    if (has_values(trial)) {
      feasible.push_back(i);
      points.push_back(trial.values);
    }
  }
  if (feasible.size() <= 1)
    return weights;
  const Objectives reference = reference_of(points);
  const std::vector<std::size_t> ranks = domination_ranks(points);
  std::vector<Objectives> front;
  std::vector<std::size_t> on_front;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (ranks[i] == 0) {
      front.push_back(points[i]);
      on_front.push_back(i);
    }
  }
  const double whole = hypervolume(front, reference);
  if (!std::isfinite(whole))
    return weights;
  std::vector<double> added(points.size(), 0);
  double most = kEpsilon;
  for (std::size_t i = 0; i < front.size(); ++i) {
    std::vector<Objectives> others = front;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    added[on_front[i]] = whole - hypervolume(std::move(others), reference);
    most = std::max(most, added[on_front[i]]);
  }
  for (std::size_t i = 0; i < feasible.size(); ++i)
    weights[feasible[i]] = std::max(added[i] / most, kEpsilon);
  return weights;
}

/// By age: 1 for the newest, down to 1 / n for the oldest.
std::vector<double> age_weights(std::size_t count) {
  std::vector<double> weights(count, 1);
  if (count <= kNewest)
    return weights;
  const double oldest = 1 / static_cast<double>(count);
  const std::size_t ramp = count - kNewest;
  for (std::size_t i = 0; i < ramp; ++i) {
    const double share = ramp == 1 ? 0 : static_cast<double>(i) / static_cast<double>(ramp - 1);
    weights[i] = oldest + share * (1 - oldest);
  }
  return weights;
}

}  // namespace

/// Indices of the visible trials, ascending.
struct Tpe::Sides {
  std::vector<std::size_t> below;
  std::vector<std::size_t> above;
  std::size_t finished = 0;
  std::size_t objectives = 1;
};

/// The points of the trials of one study, in tables: one for the dimensions that are drawn
/// together, one for each that is drawn by itself.
class Tpe::Observations {
 public:
  Observations(const SearchSpace& space, bool multivariate, double min_bandwidth_factor)
      : space_(space), multivariate_(multivariate), min_bandwidth_factor_(min_bandwidth_factor) {
    std::vector<std::size_t> together;
    for (const std::size_t d : space.order()) {
      if (multivariate && !space.parent(d))
        together.push_back(d);
    }
    if (!together.empty())
      add_group(std::move(together));
    for (const std::size_t d : space.order()) {
      if (!multivariate || space.parent(d))
        add_group({d});
    }
  }

  bool is_for(const SearchSpace& space, bool multivariate, double min_bandwidth_factor) const {
    return multivariate == multivariate_ && min_bandwidth_factor == min_bandwidth_factor_ &&
           space == space_;
  }

  /// Adds the trials that are new. False when an earlier one is no longer there or has another
  /// point: then a fresh object must be filled.
  bool update(std::span<const Trial> visible) {
    slots_.assign(visible.size(), 0);
    std::size_t seen = 0;
    for (std::size_t i = 0; i < visible.size(); ++i) {
      const Trial& trial = visible[i];
      if (trial.state == TrialState::kFailed) {
        // It may have been added while it ran; then nobody looks at it any more.
        seen += slot_of_.contains(trial.number) ? 1 : 0;
        continue;
      }
      // Mostly trial i is in slot i.
      if (i < numbers_.size() && numbers_[i] == trial.number) {
        slots_[i] = i;
      } else {
        const auto [found, is_new] = slot_of_.try_emplace(trial.number, points_.size());
        slots_[i] = found->second;
        if (is_new)
          add(trial);
      }
      ++seen;
      if (!(points_[slots_[i]] == trial.point))
        return false;
    }
    return seen == points_.size();
  }

  struct Group {
    std::vector<std::size_t> dimensions;
    std::unique_ptr<ParzenTable> table;
    std::vector<std::size_t> rows;  // of the table, by slot; kNone where inactive
  };
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::vector<Group>& groups() { return groups_; }

  ParzenMixture mixture(Group& group, ParzenTable::Side side,
                        const std::vector<std::size_t>& trials,
                        const std::vector<double>* weights) {
    std::vector<std::size_t> members;
    std::vector<double> chosen;
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const std::size_t row = group.rows[slots_[trials[i]]];
      if (row == kNone)
        continue;
      members.push_back(row);
      if (weights != nullptr)
        chosen.push_back((*weights)[i]);
    }
    if (weights == nullptr)
      chosen = age_weights(members.size());
    return group.table->mixture(side, std::move(members), chosen);
  }

 private:
  void add_group(std::vector<std::size_t> dimensions) {
    std::vector<Axis> axes;
    for (const std::size_t d : dimensions)
      axes.emplace_back(space_[d]);
    Group& group = groups_.emplace_back();
    group.dimensions = std::move(dimensions);
    group.table = std::make_unique<ParzenTable>(std::move(axes), min_bandwidth_factor_);
  }

  void add(const Trial& trial) {
    points_.push_back(trial.point);
    numbers_.push_back(trial.number);
    for (Group& group : groups_) {
      // The dimensions of a group are active together.
      if (!trial.point.is_active(group.dimensions.front())) {
        group.rows.push_back(kNone);
        continue;
      }
      std::vector<double> values;
      for (const std::size_t d : group.dimensions)
        values.push_back(trial.point[d]);
      group.rows.push_back(group.table->size());
      group.table->add(trial.number, values);
    }
  }

  const SearchSpace space_;
  const bool multivariate_;
  const double min_bandwidth_factor_;
  std::vector<Group> groups_;
  std::vector<Point> points_;
  std::vector<std::int64_t> numbers_;
  std::unordered_map<std::int64_t, std::size_t> slot_of_;
  std::vector<std::size_t> slots_;  // by index of the visible trials
};

Tpe::Tpe(const Config& config)
    : n_startup_trials_(config.get<std::int64_t>("n_startup_trials")),
      n_ei_candidates_(config.get<std::int64_t>("n_ei_candidates")),
      multivariate_(config.find<bool>("multivariate")),
      constant_liar_(config.get<bool>("constant_liar")),
      min_bandwidth_factor_(config.get<double>("min_bandwidth_factor")) {}

Tpe::~Tpe() = default;

Tpe::Sides Tpe::split(std::span<const Trial> visible) const {
  Sides sides;
  for (const Trial& trial : visible) {
    if (has_values(trial))
      sides.objectives = trial.values.size();
    sides.finished += is_finished(trial) ? 1 : 0;
  }
  const double tenth = std::ceil(0.1 * static_cast<double>(sides.finished));
  const auto count =
      static_cast<std::size_t>(sides.objectives == 1 ? std::min(tenth, kMostBelow) : tenth);
  std::vector<std::size_t> order = ranked(visible, sides.objectives == 1 ? count : visible.size());
  if (sides.objectives > 1) {
    // ranked() has the complete trials by their first objective; the best of them go first.
    const auto end = std::stable_partition(order.begin(), order.end(), [&](std::size_t i) {
      return has_values(visible[i]) && violation(visible[i]) == 0;
    });
    std::sort(order.begin(), end);
    std::vector<Objectives> points;
    for (auto at = order.begin(); at != end; ++at)
      points.push_back(visible[*at].values);
    std::vector<bool> is_best(points.size());
    for (const std::size_t i : best_of(points, std::min(count, points.size())))
      is_best[i] = true;
    std::vector<std::size_t> resorted;
    for (const bool wanted : {true, false}) {
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (is_best[i] == wanted)
          resorted.push_back(order[i]);
      }
    }
    std::copy(resorted.begin(), resorted.end(), order.begin());
  }
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  sides.below.assign(order.begin(), middle);
  sides.above.assign(middle, order.end());
  if (constant_liar_) {
    for (std::size_t i = 0; i < visible.size(); ++i) {
      if (visible[i].state == TrialState::kRunning && !is_finished(visible[i]))
        sides.above.push_back(i);
    }
  }
  std::sort(sides.below.begin(), sides.below.end());
  std::sort(sides.above.begin(), sides.above.end());
  return sides;
}

std::optional<Point> Tpe::do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                     std::int64_t number, const RandomStreams& random) const {
  const Sides sides = split(visible);
  if (static_cast<std::int64_t>(sides.finished) < n_startup_trials_ || sides.below.empty())
    return random_point(space, number, random);
  const bool multivariate = multivariate_.value_or(sides.objectives == 1);
  // A front needs points that lie apart.
  const double min_bandwidth_factor = sides.objectives == 1 ? min_bandwidth_factor_ : 1;
  std::vector<double> below_weights;
  if (sides.objectives > 1)
    below_weights = volume_weights(visible, sides.below);

  const std::lock_guard<std::mutex> lock(mutex_);
  if (observations_ == nullptr ||
      !observations_->is_for(space, multivariate, min_bandwidth_factor) ||
      !observations_->update(visible)) {
    observations_ = std::make_unique<Observations>(space, multivariate, min_bandwidth_factor);
    observations_->update(visible);
  }
  Point point(space.size());
  std::uint64_t index = 0;
  for (Observations::Group& group : observations_->groups()) {
    RandomBits bits = random.bits("tpe", {static_cast<std::uint64_t>(number), index++});
    if (!space.is_enabled(group.dimensions.front(), point))
      continue;
    const ParzenMixture below = observations_->mixture(
        group, ParzenTable::kBelow, sides.below, sides.objectives > 1 ? &below_weights : nullptr);
    const ParzenMixture above =
        observations_->mixture(group, ParzenTable::kAbove, sides.above, nullptr);
    std::vector<std::vector<double>> candidates;
    for (std::int64_t i = 0; i < n_ei_candidates_; ++i)
      candidates.push_back(below.sample(bits));
    const std::vector<double> good = below.log_densities(candidates);
    const std::vector<double> bad = above.log_densities(candidates);
    std::size_t best = 0;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
      if (good[i] - bad[i] > good[best] - bad[best])
        best = i;
    }
    for (std::size_t a = 0; a < group.dimensions.size(); ++a)
      point.set(group.dimensions[a], candidates[best][a]);
  }
  return point;
}

}  // namespace treadle::tuners
