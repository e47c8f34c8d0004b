#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/isfinite.h>

#include <treadle/base/error.h>
#include <treadle/host/describe/correlations.h>

namespace treadle::describe {
namespace {

/// The categories that occur, numbered from 0, with the rows of each, float64.
struct Levels {
  at::Tensor codes;
  at::Tensor rows;
  std::int64_t count() const { return rows.size(0); }
};

Levels levels_of(const at::Tensor& categories) {
  const auto [different, codes, rows] =
      at::_unique2(categories, /*sorted=*/true, /*return_inverse=*/true, /*return_counts=*/true);
  return {codes, rows.to(at::kDouble)};
}

}  // namespace

Number corrected_cramers_v(const at::Tensor& first, const at::Tensor& second) {
  TREADLE_EXPECTS(first.sizes() == second.sizes(), "as many values in both columns");
  const at::Tensor both = first.ge(0).logical_and(second.ge(0));
  const Levels a = levels_of(first.masked_select(both));
  const Levels b = levels_of(second.masked_select(both));
  const auto rows = static_cast<double>(a.codes.size(0));
  if (a.count() < 2 || b.count() < 2)
    return Number::undefined("one of the columns has fewer than two categories");
  // Only cells that have rows: chi²/n + 1 is the sum of n_ij² / (n_i n_j).
  const auto [cell, unused, count] = at::_unique2(a.codes * b.count() + b.codes, true, false, true);
  static_cast<void>(unused);
  const at::Tensor row_of_cell = cell.div(b.count(), "floor");
  const at::Tensor column_of_cell = cell - row_of_cell * b.count();
  const double phi2 = (count.to(at::kDouble).square() / (a.rows.index_select(0, row_of_cell) *
                                                         b.rows.index_select(0, column_of_cell)))
                          .sum()
                          .item<double>() -
                      1;
  const auto r = static_cast<double>(a.count());
  const auto k = static_cast<double>(b.count());
  const double corrected = std::max(0.0, phi2 - (r - 1) * (k - 1) / (rows - 1));
  const double r_corrected = r - (r - 1) * (r - 1) / (rows - 1);
  const double k_corrected = k - (k - 1) * (k - 1) / (rows - 1);
  const double most = std::min(r_corrected, k_corrected) - 1;
  if (!(most > 0))
    return Number::undefined("nearly each row has a category of its own");
  return std::sqrt(std::min(1.0, corrected / most));
}

Number corrected_correlation_ratio(const at::Tensor& categories, const at::Tensor& numbers) {
  TREADLE_EXPECTS(categories.sizes() == numbers.sizes(), "as many values in both columns");
  const at::Tensor both = categories.ge(0).logical_and(at::isfinite(numbers));
  const Levels levels = levels_of(categories.masked_select(both));
  const at::Tensor values = numbers.masked_select(both);
  const auto rows = static_cast<double>(values.size(0));
  const auto k = static_cast<double>(levels.count());
  if (k < 2)
    return Number::undefined("there are fewer than two categories");
  if (rows <= k)
    return Number::undefined("each row has a category of its own");
  if (values.min().equal(values.max()))
    return Number::undefined("all numbers are equal");
  const at::Tensor centred = values - values.mean();
  const at::Tensor means = at::bincount(levels.codes, centred, levels.count()) / levels.rows;
  const double within =
      (centred - means.index_select(0, levels.codes)).square().sum().item<double>();
  const double total = centred.square().sum().item<double>();
  return std::sqrt(std::max(0.0, 1 - (within / (rows - k)) / (total / (rows - 1))));
}

}  // namespace treadle::describe
