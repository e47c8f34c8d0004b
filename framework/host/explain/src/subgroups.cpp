#include <treadle/host/explain/subgroups.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <boost/math/distributions/students_t.hpp>

#include <treadle/base/error.h>
#include <treadle/host/compare/significance.h>

namespace treadle::explain {
namespace {

std::string text_of(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", number);
  return text.data();
}

/// One level of one column, or several at once.
struct Candidate {
  std::vector<std::size_t> levels;  ///< of all levels
  double rows = 0;
  double sum = 0;
  double squares = 0;
};

struct Moments {
  double rows = 0;
  double mean = 0;
  double variance = 0;  // of the sample
};

Moments moments_of(double rows, double sum, double squares) {
  const double mean = sum / rows;
  return {rows, mean, std::max(squares - rows * mean * mean, 0.0) / (rows - 1)};
}

/// P(T >= t) of Welch's test: one-sided.
double p_of(const Moments& inside, const Moments& outside) {
  const double a = inside.variance / inside.rows;
  const double b = outside.variance / outside.rows;
  const double difference = inside.mean - outside.mean;
  if (!(a + b > 0))
    return 1;  // without spread nothing measures the difference
  const double degrees =
      (a + b) * (a + b) / (a * a / (inside.rows - 1) + b * b / (outside.rows - 1));
  return boost::math::cdf(
      boost::math::complement(boost::math::students_t(degrees), difference / std::sqrt(a + b)));
}

}  // namespace

Levels quantile_levels(const std::string& column, const at::Tensor& values, std::int64_t bins) {
  TREADLE_EXPECTS(bins >= 1, "there is a bin");
  const at::Tensor is_known = at::isfinite(values);
  const at::Tensor sorted = std::get<0>(values.masked_select(is_known).sort());
  Levels levels{column, {}, at::full_like(values, -1, at::kLong)};
  const std::int64_t count = sorted.size(0);
  if (count > 0) {
    std::vector<double> edges;  // a value is in the bin behind the last edge that it reaches
    for (std::int64_t i = 1; i < bins; ++i) {
      const auto edge = sorted[i * count / bins].item<double>();
      if (edge > sorted[0].item<double>() && (edges.empty() || edge > edges.back()))
        edges.push_back(edge);
    }
    at::Tensor bin = at::full_like(values, 0, at::kLong);
    if (!edges.empty())
      bin = at::searchsorted(at::tensor(edges, at::kDouble), values.contiguous(),
                             /*out_int32=*/false, /*right=*/true);
    levels.level = at::where(is_known, bin, levels.level);
    for (std::size_t i = 0; i <= edges.size(); ++i) {
      if (edges.empty())
        levels.names.push_back(text_of(sorted[0].item<double>()));
      else if (i == 0)
        levels.names.push_back("below " + text_of(edges[0]));
      else if (i == edges.size())
        levels.names.push_back("from " + text_of(edges[i - 1]));
      else
        levels.names.push_back(text_of(edges[i - 1]) + " to " + text_of(edges[i]));
    }
  }
  if (count < values.size(0)) {
    levels.level =
        at::where(is_known, levels.level,
                  at::full_like(levels.level, static_cast<std::int64_t>(levels.names.size())));
    levels.names.emplace_back("missing");
  }
  return levels;
}

Levels category_levels(const std::string& column, const at::Tensor& values,
                       std::vector<std::string> names) {
  const std::int64_t most = values.numel() == 0 ? -1 : values.max().item<std::int64_t>();
  while (static_cast<std::int64_t>(names.size()) <= most)
    names.push_back(std::to_string(names.size()));
  Levels levels{column, std::move(names), values};
  const at::Tensor is_missing = values.lt(0);
  if (is_missing.any().item<bool>()) {
    levels.level = at::where(
        is_missing, at::full_like(values, static_cast<std::int64_t>(levels.names.size())), values);
    levels.names.emplace_back("missing");
  }
  return levels;
}

FoundSubgroups find_subgroups(const std::vector<Levels>& columns, const at::Tensor& losses,
                              const SubgroupSettings& settings) {
  FoundSubgroups result;
  const at::Tensor known = at::isfinite(losses);
  const at::Tensor loss = losses.masked_select(known).contiguous();
  const std::int64_t rows = loss.size(0);
  struct Level {
    std::size_t column;
    std::size_t level;
  };
  std::vector<Level> levels;
  std::vector<at::Tensor> members;  // float64 [rows] of 0 and 1
  std::vector<Candidate> candidates;
  for (std::size_t column = 0; column < columns.size(); ++column) {
    const at::Tensor own = columns[column].level.masked_select(known);
    for (std::size_t level = 0; level < columns[column].names.size(); ++level) {
      at::Tensor inside = own.eq(static_cast<std::int64_t>(level)).to(at::kDouble);
      const auto count = inside.sum().item<double>();
      const auto least = static_cast<double>(settings.least_rows);
      if (count < least || static_cast<double>(rows) - count < least)
        continue;
      candidates.push_back({{levels.size()},
                            count,
                            inside.mul(loss).sum().item<double>(),
                            inside.mul(loss.square()).sum().item<double>()});
      levels.push_back({column, level});
      members.push_back(std::move(inside));
    }
  }
  if (candidates.empty())
    return result;
  // Pairs by three products, of the most frequent levels.
  std::vector<std::size_t> paired(levels.size());
  for (std::size_t i = 0; i < paired.size(); ++i)
    paired[i] = i;
  std::stable_sort(paired.begin(), paired.end(), [&](std::size_t a, std::size_t b) {
    return candidates[a].rows > candidates[b].rows;
  });
  paired.resize(std::min(paired.size(), static_cast<std::size_t>(settings.most_paired_levels)));
  std::sort(paired.begin(), paired.end());
  std::vector<at::Tensor> chosen;
  for (const std::size_t level : paired)
    chosen.push_back(members[level]);
  const at::Tensor inside = at::stack(chosen);  // [L, rows]
  const at::Tensor counts = inside.matmul(inside.t()).contiguous();
  const at::Tensor sums = inside.mul(loss).matmul(inside.t()).contiguous();
  const at::Tensor squares = inside.mul(loss.square()).matmul(inside.t()).contiguous();
  for (std::size_t i = 0; i < paired.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (levels[paired[i]].column == levels[paired[k]].column)
        continue;
      const std::size_t place = i * paired.size() + k;
      const double count = counts.data_ptr<double>()[place];
      if (count < static_cast<double>(settings.least_rows))
        continue;
      candidates.push_back({{paired[k], paired[i]},
                            count,
                            sums.data_ptr<double>()[place],
                            squares.data_ptr<double>()[place]});
    }
  }
  const Candidate all{
      {}, static_cast<double>(rows), loss.sum().item<double>(), loss.square().sum().item<double>()};
  std::vector<double> p;
  for (const Candidate& one : candidates)
    p.push_back(
        p_of(moments_of(one.rows, one.sum, one.squares),
             moments_of(all.rows - one.rows, all.sum - one.sum, all.squares - one.squares)));
  p = compare::holm(p);
  result.tried = static_cast<std::int64_t>(candidates.size());
  std::vector<bool> is_found(levels.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& one = candidates[i];
    if (p[i] >= settings.significance)
      continue;
    const bool is_single = one.levels.size() == 1;
    // Single levels come first.
    if (!is_single && (is_found[one.levels[0]] || is_found[one.levels[1]]))
      continue;
    if (is_single)
      is_found[one.levels.front()] = true;
    Subgroup group{{},
                   static_cast<std::int64_t>(one.rows),
                   one.sum / one.rows,
                   (all.sum - one.sum) / (all.rows - one.rows),
                   p[i]};
    for (const std::size_t number : one.levels) {
      const Levels& column = columns[levels[number].column];
      const at::Tensor is_inside =
          column.level.eq(static_cast<std::int64_t>(levels[number].level)).logical_and(known);
      group.is_inside =
          group.is_inside.defined() ? group.is_inside.logical_and(is_inside) : is_inside;
      group.where.push_back({column.column, column.names[levels[number].level]});
    }
    result.found.push_back(std::move(group));
  }
  std::stable_sort(result.found.begin(), result.found.end(),
                   [](const Subgroup& a, const Subgroup& b) {
                     return a.mean_loss - a.mean_loss_outside > b.mean_loss - b.mean_loss_outside;
                   });
  return result;
}

}  // namespace treadle::explain
