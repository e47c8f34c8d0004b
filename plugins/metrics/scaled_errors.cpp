#include "scaled_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/square.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/data/sequence_provider.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Which rows of the data are in `rows` and have a target, as 1 or 0: float64 [N].
at::Tensor observed(const RowReader& data, const RowList& rows, std::size_t target) {
  at::Tensor observed = at::zeros({data.rows()}, at::kDouble);
  auto* const each = observed.data_ptr<double>();
  for (const std::int64_t row : rows)
    each[row] = 1;
  const at::Tensor weights = data.position_weights(target);
  return weights.defined() ? observed.mul_(weights.reshape(-1).ne(0)) : observed;
}

std::string naming(std::string_view metric) {
  return "metric " + quote_text(std::string(metric));
}

}  // namespace

const ErrorScore kMase{"mase", [](const at::Tensor& x) { return at::abs(x); },
                       [](double mean) { return mean; }};
const ErrorScore kRmsse{"rmsse", [](const at::Tensor& x) { return at::square(x); },
                        [](double mean) { return std::sqrt(mean); }};

ScaledMetric::ScaledMetric(const ErrorScore& score, const Config& config)
    : score_(score), period_(config.get_or<std::int64_t>("period", 1)) {}

void ScaledMetric::do_start(const TargetSpec& target) {
  expect_numbers(score_.name, target);
  width_ = target.width();
  scales_ = at::empty({0, width_}, at::kDouble);
  sums_ = at::empty({0, width_}, at::kDouble);
  weights_ = at::empty({0, width_}, at::kDouble);
}

StateDict ScaledMetric::do_fit(const RowReader& data, const RowList& rows,
                               std::size_t target) const {
  const at::Tensor values = data.targets(target).to(at::kDouble);
  if (values.dim() != 2) {
    throw DataError(naming(score_.name) +
                    " takes series of a number or a vector of numbers a row, and a row of target " +
                    quote_text(data.spec().targets[target].name) + " has several positions");
  }
  const at::Tensor counts = observed(data, rows, target);
  const at::Tensor groups = data.groups();
  std::vector<std::int64_t> fitted;
  std::vector<at::Tensor> scales;
  for (const RowRange& series : series_of(data)) {
    const std::int64_t pairs = series.size() - period_;
    if (pairs <= 0)
      continue;
    const at::Tensor both =
        counts.narrow(0, series.begin + period_, pairs).mul(counts.narrow(0, series.begin, pairs));
    const double count = both.sum().item<double>();
    if (count == 0)
      continue;
    // Missing targets may be NaN, which a weight of 0 does not take away.
    const at::Tensor change = values.narrow(0, series.begin + period_, pairs)
                                  .sub(values.narrow(0, series.begin, pairs))
                                  .masked_fill(both.eq(0).unsqueeze(1), 0);
    scales.push_back(score_.penalty(change).sum(0).div(count));
    fitted.push_back(groups.defined() ? groups[series.begin].item<std::int64_t>() : 0);
  }
  if (scales.empty()) {
    throw DataError(naming(score_.name) + " compares with the value " + std::to_string(period_) +
                    (period_ == 1 ? " row" : " rows") +
                    " before, and no series has two training rows so far apart (" +
                    std::to_string(rows.size()) + " training rows); set a shorter \"period\"");
  }
  StateDict state;
  at::Tensor numbers = at::empty({static_cast<std::int64_t>(fitted.size())}, at::kLong);
  std::copy(fitted.begin(), fitted.end(), numbers.data_ptr<std::int64_t>());
  state.put("groups", numbers);
  state.put("scales", at::stack(scales));
  return state;
}

void ScaledMetric::do_use(const StateDict& fitted, const at::Tensor& groups) {
  const at::Tensor numbers = fitted.tensor("groups").to(at::kLong).contiguous();
  const at::Tensor scales = fitted.tensor("scales").to(at::kDouble);
  if (numbers.dim() != 1 || scales.dim() != 2 || scales.size(0) != numbers.size(0) ||
      scales.size(1) != width_)
    throw StorageError("the saved metric belongs to a target of another width");
  const auto* const group = numbers.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < numbers.size(0); ++i) {
    const std::int64_t place = place_of(group[i]);
    scales_[place].copy_(scales[i]);
  }
  series_of_rows_ = at::Tensor();
  if (!groups.defined())
    return;
  const at::Tensor of_rows = groups.contiguous();
  series_of_rows_ = at::empty_like(of_rows);
  const auto* const from = of_rows.data_ptr<std::int64_t>();
  std::transform(from, from + of_rows.numel(), series_of_rows_.data_ptr<std::int64_t>(),
                 [&](std::int64_t each) {
                   const auto found = places_.find(each);
                   return found == places_.end() ? -1 : found->second;
                 });
}

std::int64_t ScaledMetric::place_of(std::int64_t group) {
  const auto [found, is_new] = places_.emplace(group, static_cast<std::int64_t>(groups_.size()));
  if (is_new) {
    groups_.push_back(group);
    const at::Tensor none = at::zeros({1, width_}, at::kDouble);
    scales_ = at::cat({scales_, at::full({1, width_}, kUnknown, at::kDouble)});
    sums_ = at::cat({sums_, none});
    weights_ = at::cat({weights_, none});
  }
  return found->second;
}

void ScaledMetric::do_reset() {
  sums_.zero_();
  weights_.zero_();
}

void ScaledMetric::do_update(const Prediction& prediction, const TargetBatch& target) {
  TREADLE_EXPECTS(scales_.size(0) > 0, "a scaled error is fitted to training rows first");
  const Positions positions(prediction, target);
  if (positions.count() == 0)
    return;
  at::Tensor series = at::zeros({positions.count()}, at::kLong);
  if (series_of_rows_.defined()) {
    const at::Tensor rows = positions.rows();
    series = series_of_rows_.index_select(0, rows);
    if (const at::Tensor unknown = series.lt(0); unknown.any().item<bool>()) {
      throw DataError(naming(score_.name) +
                      " is measured by the training rows of each series, and "
                      "the series of row " +
                      std::to_string(rows.masked_select(unknown)[0].item<std::int64_t>()) +
                      " has no two of them " + std::to_string(period_) +
                      " rows apart; leave the series out, or use mae or rmse");
    }
  }
  const at::Tensor scales = scales_.index_select(0, series);
  const at::Tensor is_measured = scales.gt(0);
  at::Tensor weights = is_measured.to(at::kDouble);
  if (positions.weights().defined())
    weights = weights * positions.weights().unsqueeze(1);
  const at::Tensor errors =
      positions.predicted().to(at::kDouble) - positions.actual().to(at::kDouble);
  const at::Tensor scaled =
      score_.penalty(errors).div(scales.masked_fill(is_measured.logical_not(), 1));
  sums_.index_add_(0, series, scaled.mul_(weights));
  weights_.index_add_(0, series, weights);
}

void ScaledMetric::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const ScaledMetric&>(other);
  for (std::size_t i = 0; i < theirs.groups_.size(); ++i) {
    const std::int64_t place = place_of(theirs.groups_[i]);
    const auto from = static_cast<std::int64_t>(i);
    sums_[place].add_(theirs.sums_[from]);
    weights_[place].add_(theirs.weights_[from]);
  }
}

MetricResult ScaledMetric::do_compute() const {
  const at::Tensor means = sums_.div(weights_).contiguous();  // 0 / 0 is NaN
  double sum = 0;
  std::int64_t count = 0;
  const auto* const mean = means.data_ptr<double>();
  for (std::int64_t i = 0; i < means.numel(); ++i) {
    if (std::isnan(mean[i]) && weights_.data_ptr<double>()[i] == 0)
      continue;
    sum += score_.of_mean(mean[i]);
    ++count;
  }
  const Number value = count > 0 ? Number(sum / static_cast<double>(count))
                       : scales_.gt(0).any().item<bool>()
                           ? weighted_mean(0, 0)
                           : Number::undefined("the series do not change in their training rows");
  return {{{std::string(score_.name), value, Direction::kLowerIsBetter}}, {}};
}

StateDict ScaledMetric::do_state() const {
  StateDict state;
  at::Tensor groups = at::empty({static_cast<std::int64_t>(groups_.size())}, at::kLong);
  std::copy(groups_.begin(), groups_.end(), groups.data_ptr<std::int64_t>());
  state.put("groups", groups);
  state.put("sums", sums_);
  state.put("weights", weights_);
  return state;
}

void ScaledMetric::do_load_state(const StateDict& state) {
  const at::Tensor groups = state.tensor("groups").to(at::kLong).contiguous();
  const at::Tensor& sums = state.tensor("sums");
  const at::Tensor& weights = state.tensor("weights");
  if (sums.dim() != 2 || sums.size(1) != width_ || sums.size(0) != groups.numel() ||
      weights.sizes() != sums.sizes())
    throw StorageError("the saved metric belongs to a target of another width");
  do_reset();
  for (std::int64_t i = 0; i < groups.numel(); ++i) {
    const std::int64_t place = place_of(groups.data_ptr<std::int64_t>()[i]);
    sums_[place].copy_(sums[i]);
    weights_[place].copy_(weights[i]);
  }
}

void* ScaledMetric::do_ask(std::string_view interface_id) {
  return interface_id == FitsTrainingRows::kInterface ? static_cast<FitsTrainingRows*>(this)
                                                      : nullptr;
}

}  // namespace treadle::metrics
