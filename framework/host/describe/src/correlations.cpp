#include <treadle/host/describe/correlations.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

#include "ranks.h"

namespace treadle::describe {
namespace {

/// A column is constant among the rows of a pair where its variance there is this share of its
/// mean square, the rest of rounding.
constexpr double kRounding = 1e-13;

std::vector<std::string> labels_for(std::int64_t columns, std::vector<std::string> labels) {
  if (labels.size() == static_cast<std::size_t>(columns))
    return labels;
  labels.clear();
  for (std::int64_t i = 0; i < columns; ++i)
    labels.push_back("Feature_" + std::to_string(i));
  return labels;
}

CorrelationMatrix as_matrix(const at::Tensor& values, std::vector<std::string> labels) {
  const at::Tensor flat = values.contiguous();
  const auto* const first = flat.data_ptr<double>();
  return {std::move(labels), {first, first + flat.numel()}};
}

/// The moments of a pair are those of the rows that both have: sums over rows are products with the
/// mask of the other column. Centred beforehand, so that the differences keep their digits.
at::Tensor pearson_values(const at::Tensor& columns) {
  const at::Tensor has = at::isfinite(columns);
  const at::Tensor mask = has.to(at::kDouble);
  const at::Tensor zero = at::zeros({}, at::kDouble);
  const at::Tensor filled = at::where(has, columns, zero);
  const at::Tensor mean = filled.sum(0) / mask.sum(0).clamp_min(1);
  at::Tensor centred = at::where(has, filled - mean, zero);
  // Scaled, so that squares neither vanish nor overflow.
  const at::Tensor scale = centred.abs().amax(0);
  centred = centred / at::where(scale.gt(0), scale, at::full_like(scale, 1));
  const at::Tensor rows = mask.t().matmul(mask).clamp_min(1);
  const at::Tensor sum = centred.t().matmul(mask) / rows;  // [i, j]: of i where j has one
  const at::Tensor square = centred.square().t().matmul(mask) / rows;
  const at::Tensor variance = square - sum.square();
  const at::Tensor covariance = centred.t().matmul(centred) / rows - sum * sum.t();
  const at::Tensor varies = variance.gt(square * kRounding);
  const at::Tensor product = (variance * variance.t()).clamp_min(0).sqrt();
  at::Tensor r = at::where(varies.logical_and(varies.t()).logical_and(product.gt(0)),
                           covariance / product, zero)
                     .clamp(-1, 1);
  r.diagonal().fill_(1);
  return r;
}

/// Ranks among the rows that `mask` has as well; NaN elsewhere. `order`: the column's present rows
/// by value.
at::Tensor ranks_within(const at::Tensor& column, const at::Tensor& order, const at::Tensor& mask) {
  const at::Tensor rows = order.masked_select(mask.index_select(0, order));
  at::Tensor ranks = at::full_like(column, std::nan(""));
  const at::Tensor values = column.index_select(0, rows);
  ranks.index_copy_(
      0, rows, internal::average_ranks_in_order(values, at::arange(values.size(0), at::kLong)));
  return ranks;
}

std::vector<CorrelatedPair> strongest_first(std::vector<CorrelatedPair> pairs) {
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const CorrelatedPair& a, const CorrelatedPair& b) {
                     return std::abs(a.value) > std::abs(b.value);
                   });
  return pairs;
}

}  // namespace

CorrelationMatrix pearson(const at::Tensor& columns, std::vector<std::string> labels) {
  TREADLE_EXPECTS(columns.dim() == 2 && columns.scalar_type() == at::kDouble,
                  "columns of float64 [N, D]");
  if (columns.numel() == 0)
    return {};
  return as_matrix(pearson_values(columns), labels_for(columns.size(1), std::move(labels)));
}

CorrelationMatrix spearman(const at::Tensor& columns, std::vector<std::string> labels) {
  TREADLE_EXPECTS(columns.dim() == 2 && columns.scalar_type() == at::kDouble,
                  "columns of float64 [N, D]");
  if (columns.numel() == 0)
    return {};
  const std::int64_t count = columns.size(1);
  const at::Tensor has = at::isfinite(columns);
  std::vector<at::Tensor> column(static_cast<std::size_t>(count));
  std::vector<at::Tensor> mask(column.size());
  std::vector<at::Tensor> order(column.size());
  at::Tensor ranks = at::empty({columns.size(0), count}, at::kDouble);
  std::vector<bool> is_complete(column.size());
  for (std::size_t i = 0; i < column.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    column[i] = columns.select(1, place).contiguous();
    mask[i] = has.select(1, place).contiguous();
    const at::Tensor rows = mask[i].nonzero().squeeze(1);
    order[i] = rows.index_select(0, at::argsort(column[i].index_select(0, rows)));
    is_complete[i] = rows.size(0) == columns.size(0);
    ranks.select(1, place).copy_(ranks_within(column[i], order[i], mask[i]));
  }
  at::Tensor rho = pearson_values(ranks);
  // The ranks of a pair are those among the rows of the pair.
  for (std::size_t i = 0; i < column.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if ((is_complete[i] && is_complete[j]) || mask[i].equal(mask[j]))
        continue;
      const at::Tensor both = mask[i].logical_and(mask[j]);
      const at::Tensor a = ranks_within(column[i], order[i], both).masked_select(both);
      const at::Tensor b = ranks_within(column[j], order[j], both).masked_select(both);
      const double value = a.size(0) == 0 ? 0 : internal::correlation_of(a, b);
      rho[static_cast<std::int64_t>(i)][static_cast<std::int64_t>(j)] = value;
      rho[static_cast<std::int64_t>(j)][static_cast<std::int64_t>(i)] = value;
    }
  }
  return as_matrix(rho, labels_for(count, std::move(labels)));
}

std::vector<CorrelatedPair> strong_pairs(const CorrelationMatrix& matrix, double least) {
  std::vector<CorrelatedPair> pairs;
  for (std::size_t i = 0; i < matrix.labels.size(); ++i) {
    for (std::size_t j = i + 1; j < matrix.labels.size(); ++j) {
      if (std::abs(matrix.at(i, j)) >= least)
        pairs.push_back({matrix.labels[i], matrix.labels[j], matrix.at(i, j)});
    }
  }
  return strongest_first(std::move(pairs));
}

std::vector<CorrelatedPair> partners_of(const CorrelationMatrix& matrix, std::string_view name) {
  const auto found = std::find(matrix.labels.begin(), matrix.labels.end(), name);
  std::vector<CorrelatedPair> pairs;
  if (found == matrix.labels.end())
    return pairs;
  const auto own = static_cast<std::size_t>(found - matrix.labels.begin());
  for (std::size_t i = 0; i < matrix.labels.size(); ++i) {
    if (i != own)
      pairs.push_back({matrix.labels[own], matrix.labels[i], matrix.at(own, i)});
  }
  return strongest_first(std::move(pairs));
}

void to_json(nlohmann::json& json, const CorrelationMatrix& matrix) {
  const auto width = static_cast<std::ptrdiff_t>(matrix.labels.size());
  nlohmann::json rows = nlohmann::json::array();
  for (std::ptrdiff_t i = 0; i < width; ++i) {
    const auto begin = matrix.values.begin() + i * width;
    rows.push_back(std::vector<double>(begin, begin + width));
  }
  json = {{"columns", matrix.labels}, {"values", std::move(rows)}};
}

void from_json(const nlohmann::json& json, CorrelationMatrix& matrix) {
  matrix = {};
  json.at("columns").get_to(matrix.labels);
  for (const nlohmann::json& row : json.at("values")) {
    const auto values = row.get<std::vector<double>>();
    matrix.values.insert(matrix.values.end(), values.begin(), values.end());
  }
  if (matrix.values.size() != matrix.labels.size() * matrix.labels.size())
    throw StorageError("the correlations are not one number for each pair of columns");
}

void to_json(nlohmann::json& json, const CorrelatedPair& pair) {
  json = {{"first", pair.first}, {"second", pair.second}, {"value", pair.value}};
}

void from_json(const nlohmann::json& json, CorrelatedPair& pair) {
  json.at("first").get_to(pair.first);
  json.at("second").get_to(pair.second);
  json.at("value").get_to(pair.value);
}

}  // namespace treadle::describe
