#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

#include <treadle/host/describe/described_table.h>

/// How the rows that validate differ from those that train, and which rows are both.
namespace treadle::describe {

/// The two-sample Kolmogorov-Smirnov statistic: the largest distance of the two empirical
/// distribution functions, in [0, 1]. float64 [n] and [m], at least one finite value each; values
/// that are not finite are left out.
double kolmogorov_smirnov(const at::Tensor& first, const at::Tensor& second);

/// Half the sum of the absolute differences of shares: 0 for equal distributions, 1 for disjoint
/// ones. int64 [n] and [m], at least one value each; all negative ones are one category, "missing".
double total_variation(const at::Tensor& first, const at::Tensor& second);

enum class DriftMeasure { kKolmogorovSmirnov, kTotalVariation };

/// "kolmogorov_smirnov", "total_variation".
std::string_view name_of(DriftMeasure measure);

struct ColumnDrift {
  std::string column;
  DriftMeasure measure = DriftMeasure::kKolmogorovSmirnov;
  double value = 0;
  /// A bound that equal distributions exceed in one of 100 columns. Kolmogorov-Smirnov: 1.628
  /// sqrt(1/n + 1/m), the asymptotic quantile. Total variation of k categories: its mean, at most
  /// sqrt(k (1/n + 1/m) / (2 pi)), plus three standard deviations, at most 1.5 sqrt(1/n + 1/m) (by
  /// the inequalities of Cauchy-Schwarz and of Efron and Stein).
  double by_chance = 0;
};

/// Number, time and category columns, those that differ most, measured by chance, first. Columns
/// without a value in one of the parts are left out. Empty without a split.
std::vector<ColumnDrift> drift_between(std::span<const DescribedColumn> columns,
                                       const RowParts& parts);

/// Rows that have the same values in all columns, missing ones included.
struct Duplicates {
  std::int64_t rows = 0;    ///< that equal a row before them
  std::int64_t across = 0;  ///< validation rows that equal a training row
};

/// Exact: no hashes.
Duplicates find_duplicates(std::span<const DescribedColumn> columns, const RowParts& parts);

void to_json(nlohmann::json& json, const ColumnDrift& drift);
void from_json(const nlohmann::json& json, ColumnDrift& drift);
void to_json(nlohmann::json& json, const Duplicates& duplicates);
void from_json(const nlohmann::json& json, Duplicates& duplicates);

}  // namespace treadle::describe
