#include "ranks.h"

#include <cmath>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/unique_consecutive.h>

namespace treadle::describe::internal {

at::Tensor average_ranks_in_order(const at::Tensor& values, const at::Tensor& order) {
  if (values.size(0) == 0)
    return at::empty({0}, at::kDouble);
  const auto [different, group, rows] = at::unique_consecutive(
      values.index_select(0, order), /*return_inverse=*/true, /*return_counts=*/true);
  // A group that ends at rank e and has c rows has the ranks e-c+1 … e.
  const at::Tensor mean = rows.cumsum(0).to(at::kDouble) - (rows.to(at::kDouble) - 1) / 2;
  at::Tensor ranks = at::empty({values.size(0)}, at::kDouble);
  ranks.index_copy_(0, order, mean.index_select(0, group));
  return ranks;
}

at::Tensor average_ranks(const at::Tensor& values) {
  return average_ranks_in_order(values, at::argsort(values));
}

double area_under_curve(const at::Tensor& ranks, const at::Tensor& is_positive) {
  const double positives = is_positive.sum().item<double>();
  const double negatives = static_cast<double>(ranks.size(0)) - positives;
  const double sum = ranks.masked_select(is_positive).sum().item<double>();
  return (sum - positives * (positives + 1) / 2) / (positives * negatives);
}

double correlation_of(const at::Tensor& first, const at::Tensor& second) {
  const at::Tensor a = first - first.mean();
  const at::Tensor b = second - second.mean();
  const double scale = std::sqrt(a.square().sum().item<double>() * b.square().sum().item<double>());
  return scale > 0 ? (a * b).sum().item<double>() / scale : 0.0;
}

std::int64_t count_distinct(const at::Tensor& values) {
  return std::get<0>(at::unique_consecutive(std::get<0>(at::sort(values)))).size(0);
}

}  // namespace treadle::describe::internal
