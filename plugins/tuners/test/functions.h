#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <treadle/search/search_space.h>
#include <treadle/search/tuner.h>
#include <treadle/testing/search/tuner_contract.h>

/// Functions whose minimum is known, to search for.
namespace treadle::tuners {

struct TestFunction {
  std::string name;
  std::vector<std::pair<double, double>> bounds;
  std::function<double(const std::vector<double>&)> value;
  double minimum = 0;

  SearchSpace space() const {
    std::vector<Dimension> dimensions;
    for (std::size_t d = 0; d < bounds.size(); ++d) {
      // "x00", "x01": dimensions are sorted by name.
      const std::string digits = std::to_string(100 + d).substr(1);
      dimensions.push_back(uniform("x" + digits, bounds[d].first, bounds[d].second));
    }
    return SearchSpace(std::move(dimensions));
  }

  double at(const Point& point) const {
    std::vector<double> x(point.size());
    for (std::size_t d = 0; d < x.size(); ++d)
      x[d] = point[d];
    return value(x);
  }
};

inline TestFunction branin() {
  return {"Branin",
          {{-5, 10}, {0, 15}},
          [](const std::vector<double>& x) {
            constexpr double pi = std::numbers::pi;
            const double b = 5.1 / (4 * pi * pi);
            const double inner = x[1] - b * x[0] * x[0] + 5 / pi * x[0] - 6;
            return inner * inner + 10 * (1 - 1 / (8 * pi)) * std::cos(x[0]) + 10;
          },
          0.39788735772973816};
}

inline TestFunction hartmann6() {
  return {"Hartmann6", std::vector<std::pair<double, double>>(6, {0, 1}),
          [](const std::vector<double>& x) {
            static constexpr std::array<std::array<double, 6>, 4> kA{{{10, 3, 17, 3.5, 1.7, 8},
                                                                      {0.05, 10, 17, 0.1, 8, 14},
                                                                      {3, 3.5, 1.7, 10, 17, 8},
                                                                      {17, 8, 0.05, 10, 0.1, 14}}};
            static constexpr std::array<std::array<double, 6>, 4> kP{
                {{1312, 1696, 5569, 124, 8283, 5886},
                 {2329, 4135, 8307, 3736, 1004, 9991},
                 {2348, 1451, 3522, 2883, 3047, 6650},
                 {4047, 8828, 8732, 5743, 1091, 381}}};
            static constexpr std::array<double, 4> kAlpha{1.0, 1.2, 3.0, 3.2};
            double sum = 0;
            for (std::size_t i = 0; i < kAlpha.size(); ++i) {
              double inner = 0;
              for (std::size_t j = 0; j < 6; ++j) {
                const double difference = x[j] - 1e-4 * kP[i][j];
                inner += kA[i][j] * difference * difference;
              }
              sum += kAlpha[i] * std::exp(-inner);
            }
            return -sum;
          },
          -3.32236801141551};
}

inline TestFunction sphere(std::size_t dimensions) {
  return {"Sphere" + std::to_string(dimensions),
          std::vector<std::pair<double, double>>(dimensions, {-5, 5}),
          [](const std::vector<double>& x) {
            double sum = 0;
            for (const double v : x)
              sum += v * v;
            return sum;
          },
          0};
}

inline TestFunction rosenbrock(std::size_t dimensions) {
  return {"Rosenbrock" + std::to_string(dimensions),
          std::vector<std::pair<double, double>>(dimensions, {-5, 5}),
          [](const std::vector<double>& x) {
            double sum = 0;
            for (std::size_t i = 0; i + 1 < x.size(); ++i) {
              const double bend = x[i + 1] - x[i] * x[i];
              sum += 100 * bend * bend + (1 - x[i]) * (1 - x[i]);
            }
            return sum;
          },
          0};
}

inline std::vector<TestFunction> test_functions() {
  return {branin(), hartmann6(), sphere(10), rosenbrock(10)};
}

/// The best value of `trials` trials above the minimum.
inline double regret(const Tuner& tuner, const TestFunction& function, std::int64_t trials,
                     std::uint64_t seed, std::int64_t lag = testing::kLag) {
  double best = std::numeric_limits<double>::infinity();
  testing::run_study(
      tuner, function.space(), trials, seed,
      [&](Trial& trial) {
        trial.state = TrialState::kComplete;
        trial.values = {function.at(trial.point)};
        best = std::min(best, trial.values[0]);
      },
      lag);
  return best - function.minimum;
}

/// Linear interpolation between the sorted values, as numpy.percentile.
inline double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

/// Regrets with the seeds 0 … seeds - 1.
inline std::vector<double> regrets(const Tuner& tuner, const TestFunction& function,
                                   std::int64_t trials, std::uint64_t seeds,
                                   std::int64_t lag = testing::kLag) {
  std::vector<double> all;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    all.push_back(regret(tuner, function, trials, seed, lag));
  return all;
}

}  // namespace treadle::tuners
