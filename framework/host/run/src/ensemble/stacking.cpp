#include "ensemble/stacking.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cholesky_solve.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

/// argmin of x'Hx / 2 - g'x with x_0 .. x_{bounded - 1} not negative, for a positive definite H of
/// float64: the active set method of C. Lawson and R. Hanson, "Solving least squares problems",
/// 1974, chapter 23, in which the other x are never held at zero.
at::Tensor bounded_minimum(const at::Tensor& h, const at::Tensor& g, std::int64_t bounded) {
  const std::int64_t size = g.numel();
  at::Tensor x = at::zeros({size}, at::kDouble);
  std::vector<bool> is_free(static_cast<std::size_t>(size), false);
  std::fill(is_free.begin() + bounded, is_free.end(), true);
  const auto solve = [&] {
    std::vector<std::int64_t> free;
    for (std::int64_t i = 0; i < size; ++i) {
      if (is_free[static_cast<std::size_t>(i)])
        free.push_back(i);
    }
    at::Tensor solution = at::zeros({size}, at::kDouble);
    if (free.empty())
      return solution;
    const at::Tensor index = at::tensor(free, at::kLong);
    const auto factor =
        std::get<0>(at::linalg_cholesky_ex(h.index_select(0, index).index_select(1, index)));
    solution.index_copy_(
        0, index, at::cholesky_solve(g.index_select(0, index).unsqueeze(1), factor).squeeze(1));
    return solution;
  };
  const double least = 1e-12 * g.abs().max().item<double>();
  for (std::int64_t round = 0; round <= 3 * size; ++round) {
    at::Tensor z = solve();
    // Back towards what had no negative ones, until none is left.
    for (;;) {
      double step = 1;
      std::int64_t at_zero = -1;
      for (std::int64_t i = 0; i < bounded; ++i) {
        const double from = x[i].item<double>();
        const double to = z[i].item<double>();
        if (!is_free[static_cast<std::size_t>(i)] || to >= 0 || from / (from - to) >= step)
          continue;
        step = from / (from - to);
        at_zero = i;
      }
      x = x + step * (z - x);
      if (at_zero < 0)
        break;
      x[at_zero] = 0;
      is_free[static_cast<std::size_t>(at_zero)] = false;
      z = solve();
    }
    const at::Tensor slope = g - at::matmul(h, x);
    double steepest = least;
    std::int64_t next = -1;
    for (std::int64_t i = 0; i < bounded; ++i) {
      const double down = slope[i].item<double>();
      if (!is_free[static_cast<std::size_t>(i)] && down > steepest) {
        steepest = down;
        next = i;
      }
    }
    if (next < 0)
      break;
    is_free[static_cast<std::size_t>(next)] = true;
  }
  return x;
}

/// Weights [members] of the linear pool. `x`: float64 [n, members]; `y`, `weights`: [n].
at::Tensor least_squares(const at::Tensor& x, const at::Tensor& y, const at::Tensor& weights) {
  const std::int64_t members = x.size(1);
  const at::Tensor weighted = (x * weights.unsqueeze(1)).t();
  at::Tensor squares = at::matmul(weighted, x);
  at::Tensor products = at::matmul(weighted, y);
  // Members that predict the same have the same weights.
  const double ridge = 1e-9 * squares.diagonal().sum().item<double>() + 1e-300;
  squares += ridge * at::eye(members, at::kDouble);
  products += ridge / static_cast<double>(members);
  return bounded_minimum(squares, products, members);
}

/// The penalized cross-entropy of logarithmic pools, as a function of x = (w, b).
class CrossEntropy {
 public:
  /// `logits`: float64 [n, classes, members]; `targets`: probabilities [n, classes]; `weights`:
  /// [n].
  CrossEntropy(at::Tensor logits, at::Tensor targets, at::Tensor weights)
      : logits_(std::move(logits)), targets_(std::move(targets)), weights_(weights.unsqueeze(1)) {
    at::Tensor start = at::full({members()}, 1 / static_cast<double>(members()), at::kDouble);
    start_ = at::cat({start, at::zeros({classes()}, at::kDouble)});
  }

  std::int64_t members() const { return logits_.size(2); }
  std::int64_t classes() const { return logits_.size(1); }
  /// Equal weights.
  const at::Tensor& start() const { return start_; }

  double value(const at::Tensor& x) const {
    const at::Tensor log_p = at::log_softmax(pooled(x), 1);
    return -(weights_ * targets_ * log_p).sum().item<double>() +
           0.5 * (x - start_).square().sum().item<double>();
  }

  /// Gradient [members + classes] and Hessian.
  std::pair<at::Tensor, at::Tensor> derivatives(const at::Tensor& x) const {
    const at::Tensor p = at::softmax(pooled(x), 1);
    const at::Tensor residual = weights_ * (p - targets_);
    const at::Tensor weighted = weights_ * p;                     // [n, classes]
    const at::Tensor mean = at::matmul(p.unsqueeze(1), logits_);  // [n, 1, members]
    const at::Tensor centred = logits_ - mean;                    // [n, classes, members]
    const at::Tensor scaled = centred * weighted.unsqueeze(2);
    const at::Tensor rows = centred.reshape({-1, members()});
    const at::Tensor of_weights = at::matmul(rows.t(), scaled.reshape({-1, members()}));
    const at::Tensor mixed = scaled.sum(0).t();  // [members, classes]
    const at::Tensor of_biases = weighted.sum(0).diag() - at::matmul(p.t(), weighted);
    at::Tensor hessian =
        at::cat({at::cat({of_weights, mixed}, 1), at::cat({mixed.t(), of_biases}, 1)});
    hessian += at::eye(hessian.size(0), at::kDouble);
    const at::Tensor of_each = logits_ * residual.unsqueeze(2);
    const at::Tensor gradient = at::cat({of_each.sum(at::IntArrayRef{0, 1}), residual.sum(0)});
    return {gradient + x - start_, hessian};
  }

 private:
  at::Tensor pooled(const at::Tensor& x) const {
    return at::matmul(logits_, x.narrow(0, 0, members())) + x.narrow(0, members(), classes());
  }

  at::Tensor logits_;
  at::Tensor targets_;
  at::Tensor weights_;  // [n, 1]
  at::Tensor start_;
};

/// (w, b) of the logarithmic pool, by Newton's method within the bounds; the function is convex.
at::Tensor least_cross_entropy(const CrossEntropy& loss) {
  at::Tensor x = loss.start();
  double value = loss.value(x);
  for (int iteration = 0; iteration < 100; ++iteration) {
    const auto [gradient, hessian] = loss.derivatives(x);
    const at::Tensor step =
        bounded_minimum(hessian, at::matmul(hessian, x) - gradient, loss.members()) - x;
    const double slope = at::matmul(gradient, step).item<double>();
    if (-slope <= 1e-12 * (1 + std::abs(value)))
      break;
    double length = 1;
    at::Tensor next = x + step;
    double reached = loss.value(next);
    while (reached > value + 1e-4 * length * slope && length > 1e-9) {
      length /= 2;
      next = x + length * step;
      reached = loss.value(next);
    }
    if (!(reached < value))
      break;
    x = next;
    value = reached;
  }
  return x;
}

PredictionPool stacked_numbers(const at::Tensor& x, const at::Tensor& targets,
                               const at::Tensor& weights) {
  std::vector<at::Tensor> columns;
  for (std::int64_t column = 0; column < x.size(1); ++column)
    columns.push_back(least_squares(x.select(1, column), targets.select(1, column), weights));
  return {PredictionPool::Kind::kLinear, at::stack(columns, 1), {}};
}

PredictionPool stacked_labels(const at::Tensor& x, const at::Tensor& targets,
                              const at::Tensor& weights) {
  std::vector<at::Tensor> of_members;
  std::vector<at::Tensor> intercepts;
  for (std::int64_t label = 0; label < x.size(1); ++label) {
    // Two classes, whose logits are half the log odds, with either sign.
    const at::Tensor odds = x.select(1, label);  // [n, members]
    const at::Tensor is_set = targets.select(1, label);
    const at::Tensor solution = least_cross_entropy(
        {at::stack({odds / -2, odds / 2}, 1), at::stack({1 - is_set, is_set}, 1), weights});
    of_members.push_back(solution.narrow(0, 0, x.size(2)));
    intercepts.push_back(solution[-1] - solution[-2]);
  }
  return {PredictionPool::Kind::kLogarithmic, at::stack(of_members, 1), at::stack(intercepts)};
}

PredictionPool stacked_classes(const at::Tensor& x, const at::Tensor& targets,
                               const at::Tensor& weights) {
  const at::Tensor solution = least_cross_entropy({x, targets, weights});
  return {PredictionPool::Kind::kLogarithmic, solution.narrow(0, 0, x.size(2)).unsqueeze(1),
          solution.narrow(0, x.size(2), x.size(1)).clone()};
}

}  // namespace

PredictionPool fit_stacking(TargetKind target, std::span<const at::Tensor> predictions,
                            const at::Tensor& targets, const at::Tensor& weights) {
  TREADLE_EXPECTS(!predictions.empty(), "an ensemble has members");
  const std::int64_t width = predictions.front().size(-1);
  const bool are_classes = target == TargetKind::kClasses;
  at::Tensor y = are_classes ? targets.reshape({-1}) : targets.reshape({-1, width});
  at::Tensor of_positions = at::ones({y.size(0)}, at::kDouble);
  at::Tensor counted;  // positions; those without weight need not have a target
  if (weights.defined()) {
    of_positions = weights.to(at::kDouble).reshape({-1});
    counted = of_positions.nonzero().squeeze(1);
    of_positions = of_positions.index_select(0, counted);
    y = y.index_select(0, counted);
  }
  y = (are_classes ? at::one_hot(y, width) : y).to(at::kDouble);  // [n, width]
  std::vector<at::Tensor> members;
  for (const at::Tensor& of_member : predictions) {
    at::Tensor values = of_member.reshape({-1, width});
    if (counted.defined())
      values = values.index_select(0, counted);
    members.push_back(target == TargetKind::kNumbers ? values.to(at::kDouble)
                                                     : logits_of(target, values));
  }
  const at::Tensor x = at::stack(members, 2);  // [n, width, members]
  if (target == TargetKind::kNumbers)
    return stacked_numbers(x, y, of_positions);
  return target == TargetKind::kLabels ? stacked_labels(x, y, of_positions)
                                       : stacked_classes(x, y, of_positions);
}

at::Tensor cross_fitted(TargetKind target, std::span<const at::Tensor> predictions,
                        const at::Tensor& targets, const at::Tensor& weights) {
  const std::int64_t rows = targets.size(0);
  TREADLE_EXPECTS(rows >= 2, "there are rows to fit and to leave out");
  const std::int64_t parts = std::min<std::int64_t>(rows, 5);
  const at::Tensor part_of_row = at::arange(rows, at::kLong).remainder(parts);
  at::Tensor pooled = at::empty_like(predictions.front());
  for (std::int64_t part = 0; part < parts; ++part) {
    const at::Tensor fitted = part_of_row.ne(part).nonzero().squeeze(1);
    const at::Tensor left_out = part_of_row.eq(part).nonzero().squeeze(1);
    const auto select = [&](const at::Tensor& index) {
      std::vector<at::Tensor> selected;
      for (const at::Tensor& values : predictions)
        selected.push_back(values.index_select(0, index));
      return selected;
    };
    const PredictionPool pool =
        fit_stacking(target, select(fitted), targets.index_select(0, fitted),
                     weights.defined() ? weights.index_select(0, fitted) : at::Tensor());
    pooled.index_copy_(0, left_out, pool(target, select(left_out)));
  }
  return pooled;
}

}  // namespace treadle::internal
