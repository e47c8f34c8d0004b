#include "gp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "gaussian_process.h"
#include "random_search.h"
#include "sobol.h"
#include "trial_order.h"

namespace treadle::tuners {
namespace {

constexpr std::uint64_t kSobolPoints = 512;
constexpr std::size_t kNearBest = 256;
constexpr std::size_t kClimbed = 3;
constexpr int kRounds = 8;
constexpr std::size_t kSteps = 32;
constexpr double kExactNoise = 1e-6;
constexpr double kLeastNoise = 1e-5;

using Positions = std::vector<double>;

/// Finite values of mean 0 and deviation 1.
std::vector<double> standardized(std::vector<double> values) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  double worst = 0;
  double best = 0;
  bool any = false;
  for (const double value : values) {
    if (!is_finite(value))
      continue;
    worst = any ? std::max(worst, value) : value;
    best = any ? std::min(best, value) : value;
    any = true;
  }
  // Halved, so that the largest doubles have a sum.
  const double scale = std::max({std::abs(worst), std::abs(best), 1e-300});
  double mean = 0;
  for (double& value : values) {
    value = is_finite(value) ? value : value < 0 ? best : worst;
    value /= scale;
    mean += value / static_cast<double>(values.size());
  }
  double variance = 0;
  for (double& value : values) {
    value -= mean;
    variance += value * value / static_cast<double>(values.size());
  }
  const double deviation = std::sqrt(variance);
  for (double& value : values)
    value = deviation > 1e-12 ? value / deviation : 0;
  return values;
}

/// The points to look for the best of; each is a point of the space.
class Acquisition {
 public:
  Acquisition(const SearchSpace& space, const GaussianProcess& process, double best)
      : space_(space), process_(process), best_(best) {}

  /// Adds positions, moved to where their points are.
  void add(std::vector<std::pair<double, Positions>>& found,
           const std::vector<Positions>& wanted) const {
    std::vector<Positions> snapped;
    for (const Positions& positions : wanted)
      snapped.push_back(space_.to_unit(space_.from_unit(positions)));
    const auto predictions = process_.predict(snapped);
    for (std::size_t i = 0; i < snapped.size(); ++i) {
      found.emplace_back(
          log_expected_improvement(predictions[i].first, predictions[i].second, best_),
          std::move(snapped[i]));
    }
    // The best first; equal ones as they came.
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
  }

 private:
  const SearchSpace& space_;
  const GaussianProcess& process_;
  double best_;
};

/// Positions with some of them moved by normal steps; a choice is now and then drawn anew.
Positions moved(const SearchSpace& space, Positions positions, double length, RandomBits& bits) {
  const double share = std::max(0.2, 1 / static_cast<double>(positions.size()));
  for (std::size_t d = 0; d < positions.size(); ++d) {
    if (bits.uniform() >= share && positions.size() > 1)
      continue;
    if (space[d].kind == Dimension::Kind::kChoice)
      positions[d] = bits.uniform();
    else
      positions[d] = std::min(std::max(positions[d] + length * bits.normal(), 0.0), 1.0);
  }
  return positions;
}

}  // namespace

Gp::Gp(const Config& config)
    : n_startup_trials_(config.get<std::int64_t>("n_startup_trials")),
      deterministic_objective_(config.get<bool>("deterministic_objective")) {}

std::optional<Point> Gp::do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                    std::int64_t number, const RandomStreams& random) const {
  std::vector<Positions> x;
  std::vector<double> y;
  std::vector<Positions> running;
  for (const Trial& trial : visible) {
    if (trial.state == TrialState::kRunning)
      running.push_back(space.to_unit(trial.point));
    if (trial.state == TrialState::kRunning || !is_finished(trial))
      continue;
    x.push_back(space.to_unit(trial.point));
    y.push_back(has_values(trial) && violation(trial) == 0
                    ? trial.values[0]
                    : std::numeric_limits<double>::infinity());
  }
  if (static_cast<std::int64_t>(x.size()) < n_startup_trials_ || x.empty())
    return random_point(space, number, random);

  y = standardized(std::move(y));
  std::vector<bool> is_choice;
  for (const Dimension& dimension : space.dimensions())
    is_choice.push_back(dimension.kind == Dimension::Kind::kChoice);
  const double least_noise = deterministic_objective_ ? kExactNoise : kLeastNoise;
  const GaussianProcess::Parameters parameters =
      GaussianProcess::fit(x, y, is_choice, least_noise, !deterministic_objective_);
  GaussianProcess process(x, y, is_choice, parameters);
  double best = std::numeric_limits<double>::infinity();
  for (const auto& [mean, variance] : process.predict(x))
    best = std::min(best, mean);
  std::vector<std::size_t> order(x.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return y[a] < y[b]; });
  if (!running.empty()) {
    const auto believed = process.predict(running);
    std::vector<Positions> all_x = x;
    std::vector<double> all_y = y;
    for (std::size_t i = 0; i < running.size(); ++i) {
      all_x.push_back(running[i]);
      all_y.push_back(believed[i].first);
    }
    process = GaussianProcess(std::move(all_x), std::move(all_y), is_choice, parameters);
  }

  RandomBits bits = random.bits("gp", {static_cast<std::uint64_t>(number)});
  const RandomStreams sequence = random.part("gp", static_cast<std::uint64_t>(number));
  const Acquisition acquisition(space, process, best);
  std::vector<Positions> wanted;
  for (std::uint64_t i = 0; i < kSobolPoints; ++i)
    wanted.push_back(Sobol::position(space.size(), i, true, sequence));
  for (std::size_t i = 0; i < kNearBest; ++i) {
    const Positions& from = x[order[i % std::min<std::size_t>(order.size(), 4)]];
    wanted.push_back(moved(space, from, i % 2 == 0 ? 0.1 : 0.01, bits));
  }
  std::vector<std::pair<double, Positions>> found;
  acquisition.add(found, wanted);
  found.resize(std::min(found.size(), kClimbed));
  for (auto& start : found) {
    double length = 0.1;
    for (int round = 0; round < kRounds; ++round) {
      wanted.clear();
      for (std::size_t i = 0; i < kSteps; ++i)
        wanted.push_back(moved(space, start.second, length, bits));
      std::vector<std::pair<double, Positions>> near = {start};
      acquisition.add(near, wanted);
      start = near.front();
      length *= 0.5;
    }
  }
  const auto top = std::max_element(found.begin(), found.end(),
                                    [](const auto& a, const auto& b) { return a.first < b.first; });
  return space.from_unit(top->second);
}

}  // namespace treadle::tuners
