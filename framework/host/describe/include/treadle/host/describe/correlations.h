#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json_fwd.hpp>

#include <treadle/base/number.h>

/// How columns go together. Missing values are left out pair by pair: each figure is of the rows in
/// which both columns have a value.
namespace treadle::describe {

/// Symmetric, with 1 on the diagonal.
struct CorrelationMatrix {
  std::vector<std::string> labels;
  std::vector<double> values;  ///< [labels, labels], row by row

  double at(std::size_t first, std::size_t second) const {
    return values[first * labels.size() + second];
  }
  bool empty() const { return labels.empty(); }
};

/// Pearson's r, by population moments: the product of the centred matrix with itself. `columns`:
/// float64 [N, D], NaN where a value is missing. A constant column, or one that is constant where
/// the other has values, has r = 0 with others. Where there are not D labels, the columns are
/// called "Feature_0", "Feature_1", …. No rows: empty.
CorrelationMatrix pearson(const at::Tensor& columns, std::vector<std::string> labels = {});

/// Spearman's rho: Pearson's r of ranks, equal values having the mean of their ranks.
CorrelationMatrix spearman(const at::Tensor& columns, std::vector<std::string> labels = {});

/// Cramér's V of two columns of categories, with Bergsma's correction of its bias: without it,
/// categories in few rows each go together by chance (W. Bergsma, "A bias-correction for Cramér's V
/// and Tschuprow's T", J. Korean Stat. Soc. 42, 2013). int64 [N], negative: missing. In [0, 1].
/// Undefined where a column has only one category.
Number corrected_cramers_v(const at::Tensor& first, const at::Tensor& second);

/// The correlation ratio of numbers by category, with the correction of T. L. Kelley ("An unbiased
/// correlation ratio measure", PNAS 21, 1935): the root of epsilon squared,
/// 1 - (within / (n - k)) / (total / (n - 1)), of n rows and k categories, at least 0.
/// `categories`: int64 [N], negative: missing; `numbers`: float64 [N], NaN: missing. Undefined for
/// one category, for a category in each row, and for equal numbers.
Number corrected_correlation_ratio(const at::Tensor& categories, const at::Tensor& numbers);

/// Two columns, and how much they go together.
struct CorrelatedPair {
  std::string first;
  std::string second;
  double value = 0;
};

/// Pairs with |value| >= least, the strongest first.
std::vector<CorrelatedPair> strong_pairs(const CorrelationMatrix& matrix, double least);
/// The column `name` with each other one, the strongest first; empty where there is none of that
/// name.
std::vector<CorrelatedPair> partners_of(const CorrelationMatrix& matrix, std::string_view name);

void to_json(nlohmann::json& json, const CorrelationMatrix& matrix);
void from_json(const nlohmann::json& json, CorrelationMatrix& matrix);
void to_json(nlohmann::json& json, const CorrelatedPair& pair);
void from_json(const nlohmann::json& json, CorrelatedPair& pair);

}  // namespace treadle::describe
