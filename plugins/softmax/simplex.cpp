#include "simplex.h"

#include <cmath>
#include <tuple>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

namespace treadle::softmax {
namespace {

/// Along the last dimension: p, and how it grows with z, dp = s (dz - sum(s dz) / sum(s)).
struct Projected {
  at::Tensor p;
  at::Tensor s;
};

/// z with its largest number at 0, which changes no p.
at::Tensor from_largest(const at::Tensor& z) {
  return z.sub(z.amax(-1, /*keepdim=*/true));
}

at::Tensor ranks(const at::Tensor& sorted) {
  return at::arange(1, sorted.size(-1) + 1, sorted.options());
}

/// The number for each row that stands at its last rank of `support`, [..., 1].
at::Tensor at_last(const at::Tensor& of_ranks, const at::Tensor& support) {
  return of_ranks.gather(-1, support.sum(-1, /*keepdim=*/true).sub(1).clamp_min(0));
}

/// Definition and Algorithm 1 of Martins & Astudillo.
Projected project_sparsemax(const at::Tensor& z) {
  const at::Tensor x = from_largest(z);
  const at::Tensor sorted = std::get<0>(at::sort(x, -1, /*descending=*/true));
  const at::Tensor sums = sorted.cumsum(-1);
  const at::Tensor rank = ranks(sorted);
  const at::Tensor support = rank.mul(sorted).add(1).gt(sums);
  const at::Tensor tau = at_last(sums.sub(1).div(rank), support);
  const at::Tensor p = x.sub(tau).clamp_min(0);
  return {p, p.gt(0).to(p.scalar_type())};
}

/// Algorithm 2 of Peters, Niculae & Martins.
Projected project_entmax15(const at::Tensor& z) {
  const at::Tensor x = from_largest(z).div(2);
  const at::Tensor sorted = std::get<0>(at::sort(x, -1, /*descending=*/true));
  const at::Tensor rank = ranks(sorted);
  const at::Tensor mean = sorted.cumsum(-1).div(rank);
  const at::Tensor mean_square = sorted.square().cumsum(-1).div(rank);
  const at::Tensor spread = mean_square.sub(mean.square()).mul(rank);
  const at::Tensor delta = spread.neg().add(1).div(rank).clamp_min(0);
  const at::Tensor taus = mean.sub(delta.sqrt());
  const at::Tensor root = x.sub(at_last(taus, taus.le(sorted))).clamp_min(0);
  return {root.square(), root};
}

/// p = exp(log1p((alpha - 1) (x - t)) / (alpha - 1)) with t = (tau + 1) / (alpha - 1): the same
/// numbers, exact also where alpha is close to 1. sum p falls as t grows; at t = 0 the largest is 1
/// alone, and where all of them would be 1 / n the sum is 1 at most.
Projected project_by_bisection(const at::Tensor& z, double alpha) {
  const double slope = alpha - 1;
  const at::Tensor x = from_largest(z);
  const auto p_at = [&](const at::Tensor& t) {
    return x.sub(t).mul(slope).clamp_min(-1).log1p().div(slope).exp();
  };
  const auto n = static_cast<double>(x.size(-1));
  at::Tensor low = at::zeros_like(x.narrow(-1, 0, 1));
  double width = -std::expm1(-slope * std::log(n)) / slope;
  const int halvings = x.scalar_type() == at::kDouble ? 60 : 32;
  for (int i = 0; i < halvings; ++i) {
    width /= 2;
    const at::Tensor sum = p_at(low.add(width)).sum(-1, /*keepdim=*/true);
    low = low.add(sum.ge(1).to(low.scalar_type()).mul(width));
  }
  const at::Tensor p = p_at(low);
  const at::Tensor s = p.pow(2 - alpha).masked_fill(p.eq(0), 0);
  return {p.div(p.sum(-1, /*keepdim=*/true)), s};
}

/// p, with the gradient that s describes: z - z.detach() is zero, and its slope is one.
at::Tensor with_gradient(const at::Tensor& z, const Projected& projected) {
  const auto& [p, s] = projected;
  const at::Tensor share = s.div(s.sum(-1, /*keepdim=*/true));
  // Outside of the support z may be -inf, and the difference no number.
  const at::Tensor moved = z.sub(z.detach()).masked_fill(s.eq(0), 0);
  return p.add(s.mul(moved.sub(share.mul(moved).sum(-1, /*keepdim=*/true))));
}

template <typename Project>
at::Tensor along(const at::Tensor& z, std::int64_t dim, const Project& project) {
  const at::Tensor rows = widened(z).transpose(dim, -1);
  const Projected projected = [&] {
    const at::NoGradGuard no_gradients;
    return project(rows.detach());
  }();
  const at::Tensor p = at::GradMode::is_enabled() && rows.requires_grad()
                           ? with_gradient(rows, projected)
                           : projected.p;
  return p.transpose(dim, -1).to(z.scalar_type());
}

}  // namespace

at::Tensor widened(const at::Tensor& z) {
  const bool is_narrow = z.scalar_type() == at::kHalf || z.scalar_type() == at::kBFloat16;
  return is_narrow ? z.to(at::kFloat) : z;
}

at::Tensor sparsemax(const at::Tensor& z, std::int64_t dim) {
  return along(z, dim, project_sparsemax);
}

at::Tensor entmax(const at::Tensor& z, double alpha, std::int64_t dim) {
  if (alpha == 1)
    return at::softmax(z, dim);
  if (alpha == 1.5)
    return along(z, dim, project_entmax15);
  if (alpha == 2)
    return sparsemax(z, dim);
  return entmax_by_bisection(z, alpha, dim);
}

at::Tensor entmax_by_bisection(const at::Tensor& z, double alpha, std::int64_t dim) {
  return along(z, dim,
               [alpha](const at::Tensor& rows) { return project_by_bisection(rows, alpha); });
}

}  // namespace treadle::softmax
