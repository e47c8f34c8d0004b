#include <treadle/host/describe/drift.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/max.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

#include "stored_form.h"

namespace treadle::describe {
namespace {

/// Each value as the number of its place among the different ones: int64 [n].
struct Codes {
  at::Tensor values;
  std::int64_t count = 0;
};

Codes codes_of(const at::Tensor& values) {
  const auto [sorted, order] = at::sort(values);
  const auto [different, group, rows] =
      at::unique_consecutive(sorted, /*return_inverse=*/true, /*return_counts=*/false);
  static_cast<void>(rows);
  at::Tensor codes = at::zeros({values.size(0)}, at::kLong);
  codes.index_copy_(0, order, group);
  return {codes, different.size(0)};
}

/// Missing values are equal: the least ones.
at::Tensor comparable(const DescribedColumn& column) {
  const at::Tensor has = present(column);
  return column.has_codes()
             ? column.values.clamp_min(-1)
             : at::where(has, column.values,
                         at::full_like(column.values, -std::numeric_limits<double>::infinity()));
}

double share_of(const at::Tensor& first, const at::Tensor& second) {
  return 1 / static_cast<double>(first.size(0)) + 1 / static_cast<double>(second.size(0));
}

double strength(const ColumnDrift& drift) {
  return drift.value / drift.by_chance;
}

}  // namespace

double kolmogorov_smirnov(const at::Tensor& first, const at::Tensor& second) {
  const at::Tensor a = std::get<0>(at::sort(first.masked_select(at::isfinite(first))));
  const at::Tensor b = std::get<0>(at::sort(second.masked_select(at::isfinite(second))));
  TREADLE_EXPECTS(a.size(0) > 0 && b.size(0) > 0, "a finite value in each sample");
  const at::Tensor all = at::cat({a, b});
  const auto distribution = [&](const at::Tensor& sorted) {
    return at::searchsorted(sorted, all, /*out_int32=*/false, /*right=*/true).to(at::kDouble) /
           static_cast<double>(sorted.size(0));
  };
  return (distribution(a) - distribution(b)).abs().max().item<double>();
}

double total_variation(const at::Tensor& first, const at::Tensor& second) {
  TREADLE_EXPECTS(first.size(0) > 0 && second.size(0) > 0, "a value in each sample");
  const at::Tensor a = first.clamp_min(-1) + 1;
  const at::Tensor b = second.clamp_min(-1) + 1;
  const std::int64_t count = at::max(a.max(), b.max()).item<std::int64_t>() + 1;
  const auto shares = [&](const at::Tensor& codes) {
    return at::bincount(codes, {}, count).to(at::kDouble) / static_cast<double>(codes.size(0));
  };
  return (shares(a) - shares(b)).abs().sum().item<double>() / 2;
}

std::string_view name_of(DriftMeasure measure) {
  static constexpr std::array<std::string_view, 2> kNames{"kolmogorov_smirnov", "total_variation"};
  return kNames.at(static_cast<std::size_t>(measure));
}

std::vector<ColumnDrift> drift_between(std::span<const DescribedColumn> columns,
                                       const RowParts& parts) {
  constexpr double kPi = 3.14159265358979323846;
  constexpr double kQuantile99 = 1.628;  // of Kolmogorov's distribution
  std::vector<ColumnDrift> drifts;
  if (!parts.is_split())
    return drifts;
  for (const DescribedColumn& column : columns) {
    if (column.kind == ColumnKind::kText)
      continue;
    const at::Tensor training = column.values.index_select(0, parts.training);
    const at::Tensor validation = column.values.index_select(0, parts.validation);
    ColumnDrift drift;
    drift.column = column.name;
    if (column.has_codes()) {
      drift.measure = DriftMeasure::kTotalVariation;
      drift.value = total_variation(training, validation);
      const double share = share_of(training, validation);
      const auto categories = static_cast<double>(codes_of(comparable(column)).count);
      drift.by_chance = std::sqrt(categories * share / (2 * kPi)) + 1.5 * std::sqrt(share);
    } else {
      const at::Tensor a = training.masked_select(at::isfinite(training));
      const at::Tensor b = validation.masked_select(at::isfinite(validation));
      if (a.size(0) == 0 || b.size(0) == 0)
        continue;
      drift.value = kolmogorov_smirnov(a, b);
      drift.by_chance = kQuantile99 * std::sqrt(share_of(a, b));
    }
    drifts.push_back(drift);
  }
  std::stable_sort(drifts.begin(), drifts.end(), [](const ColumnDrift& a, const ColumnDrift& b) {
    return strength(a) > strength(b);
  });
  return drifts;
}

Duplicates find_duplicates(std::span<const DescribedColumn> columns, const RowParts& parts) {
  Duplicates duplicates;
  if (columns.empty() || columns.front().values.size(0) == 0)
    return duplicates;
  const std::int64_t rows = columns.front().values.size(0);
  // The rows' codes by the columns so far. Both factors are at most the number of rows, so a
  // product fits; once each row has a code of its own, no column makes two equal.
  Codes codes{at::zeros({rows}, at::kLong), 1};
  for (const DescribedColumn& column : columns) {
    const Codes own = codes_of(comparable(column));
    codes = codes_of(codes.values * own.count + own.values);
    if (codes.count == rows)
      return duplicates;
  }
  duplicates.rows = rows - codes.count;
  if (parts.is_split()) {
    const at::Tensor trained =
        at::bincount(codes.values.index_select(0, parts.training), {}, codes.count).gt(0);
    duplicates.across = trained.index_select(0, codes.values.index_select(0, parts.validation))
                            .sum()
                            .item<std::int64_t>();
  }
  return duplicates;
}

void to_json(nlohmann::json& json, const ColumnDrift& drift) {
  json = {{"column", drift.column},
          {"measure", name_of(drift.measure)},
          {"value", drift.value},
          {"by_chance", drift.by_chance}};
}

void from_json(const nlohmann::json& json, ColumnDrift& drift) {
  json.at("column").get_to(drift.column);
  drift.measure = internal::named<DriftMeasure>(json.at("measure"), 2);
  json.at("value").get_to(drift.value);
  json.at("by_chance").get_to(drift.by_chance);
}

void to_json(nlohmann::json& json, const Duplicates& duplicates) {
  json = {{"rows", duplicates.rows}, {"across_parts", duplicates.across}};
}

void from_json(const nlohmann::json& json, Duplicates& duplicates) {
  json.at("rows").get_to(duplicates.rows);
  json.at("across_parts").get_to(duplicates.across);
}

}  // namespace treadle::describe
