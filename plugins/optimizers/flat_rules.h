#pragma once

#include <cstdint>
#include <vector>

/// The arithmetic of the optimizers: each rule is one fused pass over flat vectors.
///
/// Compiled for several instruction sets; the best one this machine has is chosen at the first
/// call. Every choice gives the same bits: each element is computed by the same IEEE operations,
/// one rounding each, none contracted to a multiply-add, and sums are added in an order that knows
/// nothing of vector widths. Large ranges are divided among the workers of the caller's oneTBB
/// arena, in pieces that depend on the range alone: no number of workers changes a bit.
namespace treadle::optimizers {

/// Elements in 64 bytes: segments start at multiples of it, and vector registers hold no more.
template <typename T>
inline constexpr std::int64_t kLine = 64 / sizeof(T);

/// Elements [begin, end), both multiples of kLine.
///
/// It may cover padding. That is zero in every vector, or what a slot begins with, and of a
/// parameter and a gradient of zero every rule makes a parameter of zero again.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Flat vectors that do not overlap. Gradients are read only.
template <typename T>
struct Vectors {
  T* parameters = nullptr;
  const T* gradients = nullptr;
  T* slots[3] = {};  ///< those the rule names, in its order
};

// Below p is the parameter and g the gradient, first of all scaled: g <- scale * g + l2 * p.

///     p <- p - rate * g
template <typename T>
struct DescentRule {
  using Element = T;
  T scale;
  T l2;
  T rate;
};

/// Slot: the momentum b.
///
///     b <- keep * b + take * g
///     p <- p - rate * (direct * g + along * b)
template <typename T>
struct MomentumRule {
  using Element = T;
  T scale;
  T l2;
  T rate;
  T keep;    ///< momentum, 0 on the first step
  T take;    ///< 1 - dampening, 1 on the first step
  T direct;  ///< 1 for Nesterov, else 0
  T along;   ///< momentum for Nesterov, else 1
};

/// Slots: the first moment m and the second v.
///
///     m <- beta1 * m + (1 - beta1) * g
///     v <- beta2 * v + (1 - beta2) * g^2
///     p <- p - (shrink * p + step * m / (sqrt(v) * root_correction + eps))
template <typename T>
struct AdamRule {
  using Element = T;
  T scale;
  T l2;
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T shrink;           ///< rate * decay; a rounded 1 - rate * decay would drift
  T step;             ///< rate / (1 - beta1^t)
  T root_correction;  ///< 1 / sqrt(1 - beta2^t)
  T eps;
};

/// Slots: the mean square v, with kCentered the mean a, with kMomentum the momentum b.
///
///     v <- alpha * v + (1 - alpha) * g^2
///     a <- alpha * a + (1 - alpha) * g
///     d <- g / (sqrt(max(v - a^2, 0) + inside) + outside)           (v alone, unless centered)
///     b <- momentum * b + d
///     p <- p - rate * b                                             (d, without momentum)
template <typename T, bool kCentered, bool kMomentum>
struct RmsPropRule {
  using Element = T;
  T scale;
  T l2;
  T rate;
  T alpha;
  T one_minus_alpha;
  T inside;   ///< eps under the root, or 0
  T outside;  ///< eps beside it, or 0
  T momentum;
};

/// Slot: the sum s.
///
///     s <- s + g^2
///     p <- p - rate * g / (sqrt(s) + eps)
template <typename T>
struct AdagradRule {
  using Element = T;
  T scale;
  T l2;
  T rate;
  T eps;
};

/// Slot: the momentum m. There is no l2.
///
///     p <- p - (shrink * p + rate * sign(beta1 * m + (1 - beta1) * g))
///     m <- beta2 * m + (1 - beta2) * g
template <typename T>
struct LionRule {
  using Element = T;
  T scale;
  T rate;
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T shrink;  ///< rate * decay
};

/// Slots: the moments m and v, as Adam's. There is no l2. A layer takes two passes: lamb_norms(),
/// which updates the moments, and then, with the step that follows from the norms, apply().
///
///     u <- correction * m / (sqrt(v) * root_correction + eps) + decay * p
///     p <- p - step * u
template <typename T>
struct LambRule {
  using Element = T;
  T scale;
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;
  T correction;       ///< 1 / (1 - beta1^t)
  T root_correction;  ///< 1 / sqrt(1 - beta2^t)
  T eps;
  T decay;
  T step;  ///< rate * |p| / |u|
};

/// Slots: the distance d = z - y and the second moment v of schedule-free AdamW, whose y is p.
/// Without l2.
///
///     v <- beta2 * v + (1 - beta2) * g^2
///     u <- g / (sqrt(v) * root_correction + eps) + decay * p
///     p <- p + (pull * d - along * u)
///     d <- keep * (d - apart * u)
template <typename T>
struct ScheduleFreeRule {
  using Element = T;
  T scale;
  T beta2;
  T one_minus_beta2;
  T root_correction;  ///< 1 / sqrt(1 - beta2^t)
  T eps;
  T decay;
  T pull;   ///< c, the weight of z in the mean
  T along;  ///< rate * (1 - beta1 * (1 - c))
  T keep;   ///< 1 - c
  T apart;  ///< rate * beta1
};

/// For each rule above, with float and double. Callable from any thread, also from inside a TBB
/// task: no task of others is run meanwhile.
template <typename Rule>
void apply(const Rule& rule, const Vectors<typename Rule::Element>& vectors, Range range);

struct SquaredNorms {
  double parameters = 0;  ///< |p|^2
  double update = 0;      ///< |u|^2
};

/// Updates the moments and returns the norms, summed in double, which decide the step. Threads as
/// in apply().
template <typename T>
SquaredNorms lamb_norms(const LambRule<T>& rule, const Vectors<T>& vectors, Range range);

/// The instruction sets to choose from here, by Highway's numbers: what a test goes through.
std::vector<std::int64_t> instruction_sets();

}  // namespace treadle::optimizers
