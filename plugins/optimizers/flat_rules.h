#pragma once

#include <cstdint>

/// The arithmetic of the optimizers: one pass over vectors of equal length that do not overlap,
/// gradients read only. Compiled for several instruction sets and chosen when the library is
/// loaded; every choice gives the same bits, because each element is computed by the same IEEE
/// operations and none are fused (-ffp-contract=off).
namespace treadle::optimizers {

/// p, g, m, v are element-wise parameter, gradient, first and second moment:
///
///     g <- scale * g + l2 * p
///     m <- beta1 * m + (1 - beta1) * g
///     v <- beta2 * v + (1 - beta2) * g^2
///     p <- keep * p - step * m / (sqrt(v) * root_correction + eps)
template <typename T>
struct AdamRule {
  T scale;
  T l2;
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T keep;             ///< 1, or 1 - rate * decay
  T step;             ///< rate / (1 - beta1^t)
  T root_correction;  ///< 1 / sqrt(1 - beta2^t)
  T eps;
};

void apply(const AdamRule<float>& rule, std::int64_t count, float* parameters,
           const float* gradients, float* first, float* second);
void apply(const AdamRule<double>& rule, std::int64_t count, double* parameters,
           const double* gradients, double* first, double* second);

///     p <- p - rate * (scale * g + l2 * p)
template <typename T>
struct DescentRule {
  T scale;
  T l2;
  T rate;
};

void apply(const DescentRule<float>& rule, std::int64_t count, float* parameters,
           const float* gradients);
void apply(const DescentRule<double>& rule, std::int64_t count, double* parameters,
           const double* gradients);

/// b is the momentum:
///
///     g <- scale * g + l2 * p
///     b <- keep * b + take * g
///     p <- p - rate * (direct * g + along * b)
template <typename T>
struct MomentumRule {
  T scale;
  T l2;
  T rate;
  T keep;    ///< momentum, 0 on the first step
  T take;    ///< 1 - dampening, 1 on the first step
  T direct;  ///< 1 for Nesterov, else 0
  T along;   ///< momentum for Nesterov, else 1
};

void apply(const MomentumRule<float>& rule, std::int64_t count, float* parameters,
           const float* gradients, float* momentum);
void apply(const MomentumRule<double>& rule, std::int64_t count, double* parameters,
           const double* gradients, double* momentum);

}  // namespace treadle::optimizers
