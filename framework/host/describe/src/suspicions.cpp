#include <treadle/host/describe/suspicions.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/diff.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <treadle/base/json_words.h>

#include "prediction_by_one.h"
#include "ranks.h"
#include "stored_form.h"

namespace treadle::describe {
namespace {

std::string three_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", value);
  return text.data();
}

/// A figure of how well something predicts a target.
struct Figure {
  std::string measure;
  double value = 0;
};

/// The figure, where it is at least so large.
std::optional<Figure> if_at_least(Figure figure, double least) {
  return std::abs(figure.value) >= least ? std::optional(std::move(figure)) : std::nullopt;
}

/// A target's values in the rows that have one, and questions about columns of these rows.
class QuestionedTarget {
 public:
  explicit QuestionedTarget(const DescribedColumn& column)
      : name_(column.name),
        is_classes_(column.has_codes()),
        is_small_(static_cast<std::int64_t>(column.names.size()) <= kMostClassesOfTarget),
        rows_(present(column).nonzero().squeeze(1)),
        values_(column.values.index_select(0, rows_)) {}

  const std::string& name() const { return name_; }
  bool is_classes() const { return is_classes_; }
  const at::Tensor& rows() const { return rows_; }

  /// That of some of the rows: int64 [n], places among rows().
  QuestionedTarget part(const at::Tensor& places) const {
    QuestionedTarget some = *this;
    some.rows_ = rows_.index_select(0, places);
    some.values_ = values_.index_select(0, places);
    return some;
  }

  /// Classes with enough rows; numbers of a target: none.
  std::vector<std::int64_t> classes() const {
    std::vector<std::int64_t> large;
    if (!is_classes_ || rows_.size(0) == 0)
      return large;
    const at::Tensor counts = at::bincount(values_);
    for (std::int64_t i = 0; i < counts.size(0); ++i) {
      if (counts[i].item<std::int64_t>() >= kFewestRowsOfClass)
        large.push_back(i);
    }
    return large;
  }

  bool has_enough_rows() const {
    if (is_classes_)
      return is_small_ && classes().size() >= 2;
    return rows_.size(0) >= kFewestRows && !values_.min().equal(values_.max());
  }

  /// How far the order of `values` is that of the target. Classes: the AUC of the class that it
  /// tells best. `errors`: the standard error of the figure, where there is nothing to tell.
  Figure of_order(const at::Tensor& values, double& error) const {
    const at::Tensor ranks = internal::average_ranks(values);
    const auto rows = static_cast<double>(values.size(0));
    if (!is_classes_) {
      error = 1 / std::sqrt(rows - 1);
      return {"Spearman", internal::correlation_of(ranks, internal::average_ranks(values_))};
    }
    Figure best{"AUC", 0.5};
    for (const std::int64_t one : classes()) {
      const at::Tensor is_one = values_.eq(one);
      const double positives = is_one.sum().item<double>();
      const double negatives = rows - positives;
      if (negatives < static_cast<double>(kFewestRowsOfClass))
        continue;
      const double auc = internal::area_under_curve(ranks, is_one);
      if (std::max(auc, 1 - auc) > best.value) {
        best.value = std::max(auc, 1 - auc);
        error = std::sqrt((rows + 1) / (12 * positives * negatives));
      }
    }
    return best;
  }

  std::optional<Figure> determined_by_numbers(const at::Tensor& values) const {
    double error = 0;
    if (!is_classes_) {
      if (auto figure = if_at_least(of_order(values, error), kDeterminingSpearman))
        return figure;
      // Of ranks, as the nearest value to an outlier is far away.
      const at::Tensor ranks = internal::average_ranks(values_);
      return if_determined("R2 of ranks", ranks,
                           internal::means_of_nearest(values, ranks.unsqueeze(1)));
    }
    if (count_classes() == 2) {
      if (auto figure = if_at_least(of_order(values, error), kDeterminingAuc))
        return figure;
    }
    return if_determined(internal::means_of_nearest(values, as_one_hot()));
  }

  std::optional<Figure> determined_by_codes(const at::Tensor& codes) const {
    if (is_classes_)
      return if_determined(internal::means_by_code(codes, as_one_hot()));
    return if_determined("R2", values_, internal::means_by_code(codes, values_.unsqueeze(1)));
  }

  /// bool [n].
  std::optional<Figure> told_by_missing(const at::Tensor& is_missing) const {
    const auto missing = is_missing.sum().item<std::int64_t>();
    if (missing < kFewestRowsOfClass || rows_.size(0) - missing < kFewestRowsOfClass)
      return std::nullopt;
    if (is_classes_) {
      double error = 0;
      return if_at_least(of_order(is_missing.to(at::kDouble), error), kTellingAucOfMissing);
    }
    const double auc = internal::area_under_curve(internal::average_ranks(values_), is_missing);
    return if_at_least({"AUC", std::max(auc, 1 - auc)}, kTellingAucOfMissing);
  }

  /// Of what should predict nothing.
  std::optional<Figure> told_by_order(const at::Tensor& values) const {
    double error = 0;
    const Figure figure = of_order(values, error);
    const double beyond_chance = is_classes_ ? figure.value - 0.5 : std::abs(figure.value);
    if (beyond_chance < kTellingErrors * error)
      return std::nullopt;
    return if_at_least(figure, is_classes_ ? kTellingAucOfKey : kTellingSpearmanOfKey);
  }

 private:
  std::int64_t count_classes() const {
    return at::bincount(values_).gt(0).sum().item<std::int64_t>();
  }

  /// float64 [n, C]
  at::Tensor as_one_hot() const { return at::one_hot(values_).to(at::kDouble); }

  std::optional<Figure> if_determined(const at::Tensor& shares_of_classes) const {
    return if_at_least({"balanced accuracy", internal::balanced_accuracy(values_, shares_of_classes,
                                                                         kFewestRowsOfClass)},
                       kDeterminingAccuracy);
  }

  static std::optional<Figure> if_determined(std::string measure, const at::Tensor& numbers,
                                             const at::Tensor& means) {
    const double r2 = internal::r_squared(numbers, means.select(1, 0));
    return r2 >= kDeterminingR2 ? std::optional(Figure{std::move(measure), r2}) : std::nullopt;
  }

  std::string name_;
  bool is_classes_;
  bool is_small_;      // few classes
  at::Tensor rows_;    // int64 [n], of the table
  at::Tensor values_;  // [n]
};

/// The order that the column's values number rows in: float64 [N]; undefined: no key.
at::Tensor key_of(const DescribedColumn& column) {
  const std::int64_t rows = column.values.size(0);
  if (rows < kFewestRowsOfKey || !present(column).all().item<bool>())
    return {};
  if (column.has_codes()) {
    if (internal::count_distinct(column.values) != rows)
      return {};
    std::vector<std::int64_t> order(column.names.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return column.names[static_cast<std::size_t>(a)] < column.names[static_cast<std::size_t>(b)];
    });
    const at::Tensor place = at::argsort(at::tensor(order, at::kLong));
    return place.index_select(0, column.values).to(at::kDouble);
  }
  const at::Tensor& values = column.values;
  if (column.kind == ColumnKind::kTime || !values.eq(values.floor()).all().item<bool>())
    return {};
  const at::Tensor steps = at::diff(std::get<0>(at::sort(values)));
  if (steps.min().item<double>() <= 0)
    return {};
  const double range = steps.sum().item<double>() + 1;
  const bool is_dense = range <= kWidestRangeOfKey * static_cast<double>(rows);
  const bool is_regular = steps.min().equal(steps.max());
  const at::Tensor in_order = at::diff(values);
  const bool is_sorted = in_order.gt(0).all().item<bool>() || in_order.lt(0).all().item<bool>();
  return is_dense || is_regular || is_sorted ? values : at::Tensor();
}

std::string figure_text(const Figure& figure) {
  return figure.measure + " " + three_digits(figure.value);
}

Suspicion suspicion_of_column(const DescribedColumn& column, const QuestionedTarget& target,
                              const Figure& figure) {
  return {SuspicionKind::kColumn,
          column.name,
          target.name(),
          figure.measure,
          figure.value,
          quote_text(column.name) + " alone nearly determines " + quote_text(target.name()) + " (" +
              figure_text(figure) +
              "); check that its value is known before the target is, and is not computed from it"};
}

Suspicion suspicion_of_missing(const DescribedColumn& column, const QuestionedTarget& target,
                               const Figure& figure) {
  return {SuspicionKind::kMissing,
          column.name,
          target.name(),
          figure.measure,
          figure.value,
          "whether " + quote_text(column.name) + " has a value predicts " +
              quote_text(target.name()) + " (" + figure_text(figure) +
              "); check that it is not filled in after the outcome"};
}

Suspicion suspicion_of_key(const DescribedColumn& column, const QuestionedTarget& target,
                           const Figure& figure) {
  return {
      SuspicionKind::kKey,
      column.name,
      target.name(),
      figure.measure,
      figure.value,
      quote_text(column.name) + " numbers the rows and predicts " + quote_text(target.name()) +
          " (" + figure_text(figure) +
          "); check how the numbers were given, and leave the column out if new rows get theirs "
          "otherwise"};
}

/// The strongest of one column and one target; a key is only asked for its order.
std::optional<Suspicion> strongest_suspicion(const DescribedColumn& column, const at::Tensor& key,
                                             const QuestionedTarget& target, bool is_only_column) {
  if (key.defined()) {
    const auto figure = target.told_by_order(key.index_select(0, target.rows()));
    return figure ? std::optional(suspicion_of_key(column, target, *figure)) : std::nullopt;
  }
  const at::Tensor has = present(column).index_select(0, target.rows());
  if (const auto figure = target.told_by_missing(has.logical_not()))
    return suspicion_of_missing(column, target, *figure);
  if (is_only_column || column.is_past_target)
    return std::nullopt;
  const QuestionedTarget of_present = target.part(has.nonzero().squeeze(1));
  if (!of_present.has_enough_rows())
    return std::nullopt;
  const at::Tensor values = column.values.index_select(0, of_present.rows());
  const auto figure = column.has_codes() ? of_present.determined_by_codes(values)
                                         : of_present.determined_by_numbers(values);
  return figure ? std::optional(suspicion_of_column(column, of_present, *figure)) : std::nullopt;
}

/// Blocks of consecutive rows.
std::int64_t blocks_of(const at::Tensor& rows) {
  return rows.size(0) == 0 ? 0 : at::diff(rows).gt(1).sum().item<std::int64_t>() + 1;
}

std::optional<Suspicion> suspicion_of_row_order(const QuestionedTarget& target,
                                                const RowParts& parts) {
  if (!parts.is_split() || blocks_of(parts.validation) > kMostBlocks)
    return std::nullopt;
  const auto figure = target.told_by_order(target.rows().to(at::kDouble));
  if (!figure)
    return std::nullopt;
  return Suspicion{
      SuspicionKind::kRowOrder,
      "",
      target.name(),
      figure->measure,
      figure->value,
      "the order of the rows predicts " + quote_text(target.name()) + " (" + figure_text(*figure) +
          "), and the validation rows are blocks of it; check how the rows are sorted, "
          "and shuffle the split unless the order is that of time"};
}

std::optional<Suspicion> suspicion_of_time(const DescribedColumn& column, const RowParts& parts) {
  if (column.kind != ColumnKind::kTime || !parts.is_split())
    return std::nullopt;
  const auto of_part = [&](const at::Tensor& rows) {
    const at::Tensor times = column.values.index_select(0, rows);
    return times.masked_select(at::isfinite(times));
  };
  const at::Tensor trained = of_part(parts.training);
  const at::Tensor validated = of_part(parts.validation);
  if (trained.size(0) == 0 || validated.size(0) == 0)
    return std::nullopt;
  const double earlier = validated.lt(trained.max()).to(at::kDouble).mean().item<double>();
  if (earlier <= kFewEarlierRows)
    return std::nullopt;
  return Suspicion{SuspicionKind::kTime,
                   column.name,
                   "",
                   "share",
                   earlier,
                   three_digits(100 * earlier).substr(0, three_digits(100 * earlier).size() - 2) +
                       " % of the validation rows are earlier than a training row by " +
                       quote_text(column.name) +
                       "; check that a model will not have later rows when it is used, and split "
                       "in time otherwise"};
}

}  // namespace

std::string_view name_of(SuspicionKind kind) {
  static constexpr std::array<std::string_view, 5> kNames{"column", "missing", "key", "row_order",
                                                          "time"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::vector<Suspicion> find_suspicions(std::span<const DescribedColumn> columns,
                                       std::span<const DescribedColumn> targets,
                                       const RowParts& parts) {
  std::vector<Suspicion> found;
  const auto add = [&](std::optional<Suspicion> suspicion) {
    if (suspicion)
      found.push_back(*std::move(suspicion));
  };
  std::vector<QuestionedTarget> usable;
  for (const DescribedColumn& target : targets) {
    QuestionedTarget one(target);
    if (one.has_enough_rows())
      usable.push_back(std::move(one));
  }
  // Rows in the order of time belong in a split by their order.
  const bool is_in_time = std::any_of(columns.begin(), columns.end(), [](const auto& column) {
    return column.kind == ColumnKind::kTime || column.is_past_target;
  });
  const auto inputs = std::count_if(columns.begin(), columns.end(), [](const auto& column) {
    return column.kind != ColumnKind::kTime;
  });
  for (const DescribedColumn& column : columns) {
    add(suspicion_of_time(column, parts));
    if (column.kind == ColumnKind::kTime)
      continue;
    const at::Tensor key = key_of(column);
    for (const QuestionedTarget& target : usable)
      add(strongest_suspicion(column, key, target, inputs == 1));
  }
  if (!is_in_time) {
    for (const QuestionedTarget& target : usable)
      add(suspicion_of_row_order(target, parts));
  }
  return found;
}

void to_json(nlohmann::json& json, const Suspicion& suspicion) {
  json = {{"kind", name_of(suspicion.kind)},
          {"measure", suspicion.measure},
          {"value", suspicion.value},
          {"text", suspicion.text}};
  if (!suspicion.column.empty())
    json["column"] = suspicion.column;
  if (!suspicion.target.empty())
    json["target"] = suspicion.target;
}

void from_json(const nlohmann::json& json, Suspicion& suspicion) {
  suspicion.kind = internal::named<SuspicionKind>(json.at("kind"), 5);
  suspicion.column = json.value("column", "");
  suspicion.target = json.value("target", "");
  json.at("measure").get_to(suspicion.measure);
  json.at("value").get_to(suspicion.value);
  json.at("text").get_to(suspicion.text);
}

}  // namespace treadle::describe
