#include "cma_es.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_eigh.h>

#include "random_search.h"
#include "trial_order.h"

namespace treadle::tuners {
namespace {

using Vector = std::vector<double>;

constexpr double kTiny = 1e-8;
constexpr int kDraws = 100;

double squared_length(const Vector& v) {
  return std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
}

/// Weights and rates of a population of some size, from the tutorial's table 1.
struct Constants {
  Constants(std::size_t dimensions, std::size_t population) {
    const auto d = static_cast<double>(dimensions);
    const auto lambda = static_cast<double>(population);
    const std::size_t parents = population / 2;
    double sum_above = 0;
    double squares_above = 0;
    double sum_below = 0;
    double squares_below = 0;
    for (std::size_t i = 0; i < population; ++i) {
      const double weight = std::log((lambda + 1) / 2) - std::log(static_cast<double>(i + 1));
      weights.push_back(weight);
      (i < parents ? sum_above : sum_below) += weight;
      (i < parents ? squares_above : squares_below) += weight * weight;
    }
    effective = sum_above * sum_above / squares_above;
    const double effective_below = squares_below > 0 ? sum_below * sum_below / squares_below : 0;
    rank_one = 2 / ((d + 1.3) * (d + 1.3) + effective);
    rank_mu = std::min(1 - rank_one - 1e-8,
                       2 * (effective - 2 + 1 / effective) / ((d + 2) * (d + 2) + effective));
    const double most_below =
        rank_mu > 0 ? std::min({1 + rank_one / rank_mu, 1 + 2 * effective_below / (effective + 2),
                                (1 - rank_one - rank_mu) / (d * rank_mu)})
                    : 0;
    for (double& weight : weights)
      weight *= weight >= 0 ? 1 / sum_above : most_below / std::abs(sum_below);
    path_step = (effective + 2) / (d + effective + 5);
    damping = 1 + 2 * std::max(0.0, std::sqrt((effective - 1) / (d + 1)) - 1) + path_step;
    path_covariance = (4 + effective / d) / (d + 4 + 2 * effective / d);
    normal_length = std::sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d));
    longest_step = std::sqrt(d) + 2 * d / (d + 2);
  }

  Vector weights;
  double effective = 0;
  double rank_one = 0;
  double rank_mu = 0;
  double path_step = 0;
  double damping = 0;
  double path_covariance = 0;
  double normal_length = 0;
  double longest_step = 0;
};

}  // namespace

struct CmaEs::Distribution {
  Distribution(std::size_t dimensions, double sigma0)
      : size(dimensions),
        mean(dimensions, 0.5),
        sigma(sigma0),
        covariance(dimensions * dimensions, 0),
        path_sigma(dimensions, 0),
        path_covariance(dimensions, 0) {
    for (std::size_t i = 0; i < size; ++i)
      covariance[i * size + i] = 1;
    decompose();
  }

  /// covariance = axes diag(lengths^2) axes^T.
  void decompose() {
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const double mirrored = 0.5 * (covariance[i * size + j] + covariance[j * size + i]);
        covariance[i * size + j] = mirrored;
        covariance[j * size + i] = mirrored;
      }
    }
    const auto n = static_cast<std::int64_t>(size);
    at::Tensor matrix = at::empty({n, n}, at::kDouble);
    std::copy(covariance.begin(), covariance.end(), matrix.data_ptr<double>());
    const auto [values, vectors] = at::linalg_eigh(matrix);
    const at::Tensor rows = vectors.contiguous();
    axes.assign(rows.data_ptr<double>(), rows.data_ptr<double>() + size * size);
    lengths.resize(size);
    for (std::size_t i = 0; i < size; ++i)
      lengths[i] = std::sqrt(std::max(values.data_ptr<double>()[i], kTiny));
  }

  /// axes diag(f(lengths)) axes^T v.
  template <typename F>
  Vector scaled(const Vector& v, F&& f) const {
    Vector result(size, 0);
    for (std::size_t k = 0; k < size; ++k) {
      double along = 0;
      for (std::size_t i = 0; i < size; ++i)
        along += axes[i * size + k] * v[i];
      along *= f(lengths[k]);
      for (std::size_t i = 0; i < size; ++i)
        result[i] += axes[i * size + k] * along;
    }
    return result;
  }
  Vector whitened(const Vector& v) const {
    return scaled(v, [](double length) { return 1 / length; });
  }

  Vector draw(RandomBits& bits) const {
    Vector position(size);
    for (int repeat = 0; repeat < kDraws; ++repeat) {
      Vector normal(size);
      for (double& number : normal)
        number = bits.normal();
      position = scaled(normal, [](double length) { return length; });
      bool is_inside = true;
      for (std::size_t i = 0; i < size; ++i) {
        position[i] = mean[i] + sigma * position[i];
        is_inside = is_inside && position[i] >= 0 && position[i] <= 1;
      }
      if (is_inside)
        break;
    }
    return position;  // of which SearchSpace::from_unit() takes the nearer side
  }

  /// One generation: positions of its trials, the best first; NaN where a dimension is inactive.
  void tell(const std::vector<Vector>& positions, const Constants& constants) {
    ++generation;
    const auto d = static_cast<double>(size);
    std::vector<Vector> steps;
    Vector mean_step(size, 0);
    for (std::size_t k = 0; k < positions.size(); ++k) {
      Vector step(size);
      for (std::size_t i = 0; i < size; ++i)
        step[i] = std::isnan(positions[k][i]) ? 0 : (positions[k][i] - mean[i]) / sigma;
      const double length = std::sqrt(squared_length(whitened(step)));
      if (length > constants.longest_step) {
        for (double& s : step)
          s *= constants.longest_step / length;
      }
      if (constants.weights[k] > 0) {
        for (std::size_t i = 0; i < size; ++i)
          mean_step[i] += constants.weights[k] * step[i];
      }
      steps.push_back(std::move(step));
    }
    for (std::size_t i = 0; i < size; ++i)
      mean[i] = std::min(std::max(mean[i] + sigma * mean_step[i], 0.0), 1.0);

    const double rate = constants.path_step;
    const Vector white = whitened(mean_step);
    for (std::size_t i = 0; i < size; ++i) {
      path_sigma[i] = (1 - rate) * path_sigma[i] +
                      std::sqrt(rate * (2 - rate) * constants.effective) * white[i];
    }
    const double length = std::sqrt(squared_length(path_sigma));
    sigma *= std::exp(rate / constants.damping * (length / constants.normal_length - 1));
    sigma = std::min(std::max(sigma, 1e-12), 1e3);

    const double settled = 1 - std::pow(1 - rate, 2 * static_cast<double>(generation + 1));
    const bool is_short =
        length / std::sqrt(settled) < (1.4 + 2 / (d + 1)) * constants.normal_length;
    const double of_path = constants.path_covariance;
    for (std::size_t i = 0; i < size; ++i) {
      path_covariance[i] =
          (1 - of_path) * path_covariance[i] +
          (is_short ? std::sqrt(of_path * (2 - of_path) * constants.effective) * mean_step[i] : 0);
    }

    const double lost = is_short ? 0 : of_path * (2 - of_path);
    const double sum = std::accumulate(constants.weights.begin(), constants.weights.end(), 0.0);
    const double keep =
        1 + constants.rank_one * lost - constants.rank_one - constants.rank_mu * sum;
    for (double& c : covariance)
      c *= keep;
    add_outer(constants.rank_one, path_covariance);
    for (std::size_t k = 0; k < steps.size(); ++k) {
      double weight = constants.weights[k];
      if (weight < 0)
        weight *= d / (squared_length(whitened(steps[k])) + kTiny);
      add_outer(constants.rank_mu * weight, steps[k]);
    }
    decompose();
  }

  void add_outer(double factor, const Vector& v) {
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j)
        covariance[i * size + j] += factor * v[i] * v[j];
    }
  }

  std::size_t size;
  Vector mean;
  double sigma;
  Vector covariance;
  Vector path_sigma;
  Vector path_covariance;
  std::int64_t generation = 0;
  Vector axes;
  Vector lengths;
};

struct CmaEs::Told {
  SearchSpace space;
  std::vector<std::vector<Point>> generations;  // each the best first
  Distribution distribution;
};

CmaEs::CmaEs(const Config& config)
    : n_startup_trials_(config.get<std::int64_t>("n_startup_trials")),
      sigma0_(config.get<double>("sigma0")),
      popsize_(config.find<std::int64_t>("popsize")) {}

CmaEs::~CmaEs() = default;

std::optional<Point> CmaEs::do_suggest(const SearchSpace& space, std::span<const Trial> visible,
                                       std::int64_t number, const RandomStreams& random) const {
  if (number < n_startup_trials_)
    return random_point(space, number, random);
  const auto population = static_cast<std::size_t>(popsize_.value_or(
      4 + static_cast<std::int64_t>(3 * std::log(static_cast<double>(space.size())))));
  std::vector<Trial> results;
  for (const Trial& trial : visible) {
    if (trial.number >= n_startup_trials_ && is_finished(trial))
      results.push_back(trial);
  }
  std::vector<std::vector<Point>> generations;
  for (std::size_t at = 0; at + population <= results.size(); at += population) {
    const std::span<const Trial> generation(results.data() + at, population);
    generations.emplace_back();
    for (const std::size_t i : ranked(generation))
      generations.back().push_back(generation[i].point);
  }

  const std::lock_guard<std::mutex> lock(mutex_);
  const bool goes_on =
      told_ != nullptr && told_->space == space &&
      told_->generations.size() <= generations.size() &&
      std::equal(told_->generations.begin(), told_->generations.end(), generations.begin());
  if (!goes_on)
    told_ = std::make_unique<Told>(Told{space, {}, Distribution(space.size(), sigma0_)});
  if (told_->generations.size() < generations.size()) {
    const Constants constants(space.size(), population);
    for (std::size_t g = told_->generations.size(); g < generations.size(); ++g) {
      std::vector<Vector> positions;
      for (const Point& point : generations[g]) {
        positions.push_back(space.to_unit(point));
        for (std::size_t d = 0; d < space.size(); ++d) {
          if (!point.is_active(d))
            positions.back()[d] = point[d];
        }
      }
      told_->distribution.tell(positions, constants);
    }
    told_->generations = std::move(generations);
  }
  RandomBits bits = random.bits("cma_es", {static_cast<std::uint64_t>(number)});
  return space.from_unit(told_->distribution.draw(bits));
}

}  // namespace treadle::tuners
