#include "gaussian_process.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include <ATen/ops/cholesky_inverse.h>
#include <ATen/ops/cholesky_solve.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <c10/util/Exception.h>

namespace treadle::tuners {
namespace {

const double kRoot5 = std::sqrt(5.0);

double matern(double squared) {
  const double r = kRoot5 * std::sqrt(squared);
  return (1 + r + r * r / 3) * std::exp(-r);
}

// The derivative of matern() by the squared distance.
double matern_slope(double squared) {
  const double r = kRoot5 * std::sqrt(squared);
  return -5.0 / 6.0 * (1 + r) * std::exp(-r);
}

double difference(double a, double b, bool is_choice) {
  return is_choice ? (a == b ? 0 : 1) : a - b;
}

struct LogBounds {
  double low;
  double high;
};

}  // namespace

GaussianProcess::GaussianProcess(std::vector<std::vector<double>> x, std::vector<double> y,
                                 std::vector<bool> is_choice, Parameters parameters)
    : x_(std::move(x)),
      y_(std::move(y)),
      is_choice_(std::move(is_choice)),
      parameters_(std::move(parameters)) {
  const auto n = static_cast<std::int64_t>(x_.size());
  const at::Tensor covariance = at::empty({n, n}, at::kDouble);
  double* const k = covariance.data_ptr<double>();
  for (std::size_t i = 0; i < x_.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const double value = parameters_.signal * matern(squared_distance(x_[i], x_[j])) +
                           (i == j ? parameters_.noise : 0);
      k[i * x_.size() + j] = value;
      k[j * x_.size() + i] = value;
    }
  }
  factor_ = at::linalg_cholesky(covariance);
  at::Tensor values = at::empty({n, 1}, at::kDouble);
  std::copy(y_.begin(), y_.end(), values.data_ptr<double>());
  const at::Tensor alpha = at::cholesky_solve(values, factor_).contiguous();
  alpha_.assign(alpha.data_ptr<double>(), alpha.data_ptr<double>() + n);

  const at::Tensor rows = factor_.contiguous();
  const double* const l = rows.data_ptr<double>();
  log_likelihood_ = -0.5 * static_cast<double>(n) * std::log(2 * std::numbers::pi);
  for (std::size_t i = 0; i < x_.size(); ++i)
    log_likelihood_ -= 0.5 * y_[i] * alpha_[i] + std::log(l[i * x_.size() + i]);
}

double GaussianProcess::squared_distance(const std::vector<double>& a,
                                         const std::vector<double>& b) const {
  double sum = 0;
  for (std::size_t d = 0; d < a.size(); ++d) {
    const double along = difference(a[d], b[d], is_choice_[d]);
    sum += parameters_.weights[d] * along * along;
  }
  return sum;
}

// 1/2 tr((alpha alpha^T - K^-1) dK/dtheta).
std::vector<double> GaussianProcess::gradient() const {
  const at::Tensor inverse = at::cholesky_inverse(factor_).contiguous();
  const double* const inverted = inverse.data_ptr<double>();
  const std::size_t n = x_.size();
  const std::size_t dimensions = parameters_.weights.size();
  std::vector<double> gradient(dimensions + 2, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const double share = alpha_[i] * alpha_[j] - inverted[i * n + j];
      if (i == j) {
        gradient[dimensions] += 0.5 * share * parameters_.signal;
        gradient[dimensions + 1] += 0.5 * share * parameters_.noise;
        continue;
      }
      // Both triangles.
      const double squared = squared_distance(x_[i], x_[j]);
      gradient[dimensions] += share * parameters_.signal * matern(squared);
      const double slope = share * parameters_.signal * matern_slope(squared);
      for (std::size_t d = 0; d < dimensions; ++d) {
        const double along = difference(x_[i][d], x_[j][d], is_choice_[d]);
        gradient[d] += slope * parameters_.weights[d] * along * along;
      }
    }
  }
  return gradient;
}

std::vector<std::pair<double, double>> GaussianProcess::predict(
    const std::vector<std::vector<double>>& points) const {
  const auto n = static_cast<std::int64_t>(x_.size());
  const auto m = static_cast<std::int64_t>(points.size());
  const at::Tensor cross = at::empty({n, m}, at::kDouble);
  double* const k = cross.data_ptr<double>();
  for (std::size_t i = 0; i < x_.size(); ++i) {
    for (std::size_t j = 0; j < points.size(); ++j)
      k[i * points.size() + j] = parameters_.signal * matern(squared_distance(x_[i], points[j]));
  }
  const at::Tensor solved =
      at::linalg_solve_triangular(factor_, cross, /*upper=*/false).contiguous();
  const double* const v = solved.data_ptr<double>();
  std::vector<std::pair<double, double>> predictions(points.size(), {0, parameters_.signal});
  for (std::size_t i = 0; i < x_.size(); ++i) {
    for (std::size_t j = 0; j < points.size(); ++j) {
      const std::size_t at = i * points.size() + j;
      predictions[j].first += k[at] * alpha_[i];
      predictions[j].second -= v[at] * v[at];
    }
  }
  for (auto& [mean, variance] : predictions)
    variance = std::max(variance, 1e-14 * parameters_.signal);
  return predictions;
}

GaussianProcess::Parameters GaussianProcess::fit(const std::vector<std::vector<double>>& x,
                                                 const std::vector<double>& y,
                                                 const std::vector<bool>& is_choice,
                                                 double least_noise, bool fits_noise) {
  const std::size_t dimensions = is_choice.size();
  // Length scales between 1/30 and 30 of a range; values are standardized.
  std::vector<LogBounds> bounds(dimensions, {std::log(1e-3), std::log(1e3)});
  bounds.push_back({std::log(0.05), std::log(100)});
  bounds.push_back({std::log(least_noise), fits_noise ? std::log(1) : std::log(least_noise)});
  const auto parameters_of = [&](const std::vector<double>& logs) {
    Parameters parameters;
    for (std::size_t d = 0; d < dimensions; ++d)
      parameters.weights.push_back(std::exp(logs[d]));
    parameters.signal = std::exp(logs[dimensions]);
    parameters.noise = std::exp(logs[dimensions + 1]);
    return parameters;
  };

  constexpr int kSteps = 50;
  double best = -std::numeric_limits<double>::infinity();
  std::vector<double> best_logs;
  for (const double start : {std::log(4.0), std::log(0.25)}) {
    std::vector<double> logs(dimensions, start);
    logs.push_back(0);
    logs.push_back(std::max(std::log(least_noise), fits_noise ? std::log(1e-3) : -1e300));
    logs.back() = std::min(logs.back(), bounds.back().high);
    std::vector<double> steps(logs.size(), 0.3);
    std::vector<double> last(logs.size(), 0);
    for (int step = 0; step < kSteps; ++step) {
      std::vector<double> gradient;
      try {
        const GaussianProcess process(x, y, is_choice, parameters_of(logs));
        if (process.log_likelihood() > best) {
          best = process.log_likelihood();
          best_logs = logs;
        }
        gradient = process.gradient();
      } catch (const c10::Error&) {
        break;  // the covariance is singular to the last digit: no way further
      }
      double longest = 0;
      for (std::size_t i = 0; i < logs.size(); ++i) {
        const double turned = gradient[i] * last[i];
        steps[i] = std::min(std::max(steps[i] * (turned > 0   ? 1.2
                                                 : turned < 0 ? 0.5
                                                              : 1),
                                     1e-4),
                            1.0);
        last[i] = turned < 0 ? 0 : gradient[i];
        const double sign = last[i] > 0 ? 1 : last[i] < 0 ? -1 : 0;
        const double moved =
            std::min(std::max(logs[i] + sign * steps[i], bounds[i].low), bounds[i].high);
        longest = std::max(longest, std::abs(moved - logs[i]));
        logs[i] = moved;
      }
      if (longest < 1e-3)
        break;
    }
  }
  if (best_logs.empty()) {
    best_logs.assign(dimensions, 0);
    best_logs.push_back(0);
    best_logs.push_back(std::log(std::max(least_noise, 1e-2)));
  }
  return parameters_of(best_logs);
}

// log(phi(z) + z Phi(z)) + log(deviation). For z far below 0 by the asymptotic series
// phi(z) / z^2 (1 - 3 / z^2 + 15 / z^4), where the sum would cancel.
double log_expected_improvement(double mean, double variance, double best) {
  const double deviation = std::sqrt(variance);
  const double z = (best - mean) / deviation;
  const double log_phi = -0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi);
  if (z < -25) {
    const double inverse = 1 / (z * z);
    return log_phi + std::log(inverse * (1 - 3 * inverse + 15 * inverse * inverse)) +
           std::log(deviation);
  }
  const double phi = std::exp(log_phi);
  const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  return std::log(std::max(phi + z * below, 1e-300)) + std::log(deviation);
}

}  // namespace treadle::tuners
