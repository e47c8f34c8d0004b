#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle::tuners {

/// An exact Gaussian process with mean 0 and the Matern 5/2 kernel
/// s (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r), r^2 = sum_d w_d (a_d - b_d)^2, and noise n.
class GaussianProcess {
 public:
  struct Parameters {
    std::vector<double> weights;  ///< inverse squared length scales
    double signal = 1;            ///< variance
    double noise = 1e-6;          ///< variance
  };

  /// `x` has rows of as many numbers as there are weights; `is_choice` tells which of them only
  /// differ or do not. Throws c10::Error when the covariance is not positive definite.
  GaussianProcess(std::vector<std::vector<double>> x, std::vector<double> y,
                  std::vector<bool> is_choice, Parameters parameters);

  /// The parameters that maximize the marginal likelihood. The noise is not below `least_noise`,
  /// and not above it where `fits_noise` is false.
  static Parameters fit(const std::vector<std::vector<double>>& x, const std::vector<double>& y,
                        const std::vector<bool>& is_choice, double least_noise, bool fits_noise);

  double log_likelihood() const noexcept { return log_likelihood_; }
  /// Of log_likelihood() by the logarithms of weights, signal and noise, in this order.
  std::vector<double> gradient() const;

  /// Mean and variance of the function, without noise, at each point.
  std::vector<std::pair<double, double>> predict(
      const std::vector<std::vector<double>>& points) const;

 private:
  double squared_distance(const std::vector<double>& a, const std::vector<double>& b) const;

  std::vector<std::vector<double>> x_;
  std::vector<double> y_;
  std::vector<bool> is_choice_;
  Parameters parameters_;
  at::Tensor factor_;  // lower Cholesky factor of the covariance
  std::vector<double> alpha_;
  double log_likelihood_ = 0;
};

/// log E[max(0, best - f)] for f of a normal distribution, also where that is next to nothing.
double log_expected_improvement(double mean, double variance, double best);

}  // namespace treadle::tuners
