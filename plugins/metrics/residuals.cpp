#include "residuals.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <tuple>

#include <ATen/ops/aminmax.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/sub.h>

#include <treadle/base/random.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::metrics {
namespace {

std::int64_t bin_of(double value, int exponent) {
  return static_cast<std::int64_t>(std::floor(std::ldexp(value, -exponent)));
}

// Indices stay below 2^41, and scaling by 2^-k stays finite.
constexpr int kIndexBits = 40;
constexpr int kSmallestExponent = -1000;

// The smallest k for which [low, high] needs at most kBins bins of width 2^k.
int exponent_for(double low, double high) {
  const double largest = std::max(std::abs(low), std::abs(high));
  int exponent = kSmallestExponent;
  if (largest > 0)
    exponent = std::max(exponent, std::ilogb(largest) - kIndexBits);
  const double half_range = 0.5 * high - 0.5 * low;  // the range itself may overflow
  if (half_range > 0)
    exponent = std::max(exponent, std::ilogb(half_range) - 6);  // still too fine: over 63 bins
  while (bin_of(high, exponent) - bin_of(low, exponent) >= Histogram::kBins)
    ++exponent;
  return exponent;
}

// Floor division by 2^shift, also for negative indices.
std::int64_t coarser(std::int64_t index, int shift) {
  return shift >= 63 ? (index < 0 ? -1 : 0) : index >> shift;
}

// A permutation of the 64-bit numbers: two rows never share a hash.
std::uint64_t hash_of(std::int64_t row) {
  return RandomBits(static_cast<std::uint64_t>(row)).next();
}

}  // namespace

void Histogram::widen(double low, double high) {
  const bool only_zeros = low_ == 0 && high_ == 0;  // fit any scale, also a finer one
  low_ = empty_ ? low : std::min(low_, low);
  high_ = empty_ ? high : std::max(high_, high);
  const int exponent = exponent_for(low_, high_);
  if (!empty_ && !only_zeros) {
    const int shift = exponent - exponent_;
    const std::int64_t first = coarser(first_, shift);
    std::vector<double> counts;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const auto bin =
          static_cast<std::size_t>(coarser(first_ + static_cast<std::int64_t>(i), shift) - first);
      counts.resize(std::max(counts.size(), bin + 1));
      counts[bin] += counts_[i];
    }
    first_ = first;
    counts_ = std::move(counts);
  }
  exponent_ = exponent;
  empty_ = false;
  grow_to(bin_of(low_, exponent_), bin_of(high_, exponent_));
}

void Histogram::grow_to(std::int64_t first, std::int64_t last) {
  if (counts_.empty())
    first_ = first;
  if (first < first_) {
    counts_.insert(counts_.begin(), static_cast<std::size_t>(first_ - first), 0);
    first_ = first;
  }
  counts_.resize(std::max(counts_.size(), static_cast<std::size_t>(last - first_ + 1)));
}

void Histogram::add(at::Tensor values, at::Tensor weights) {
  if (values.numel() == 0)
    return;  // nothing is the smallest of no values
  auto [smallest, largest] = at::aminmax(values);
  if (!std::isfinite(smallest.item<double>()) || !std::isfinite(largest.item<double>())) {
    const at::Tensor finite = at::isfinite(values);
    values = values.masked_select(finite);
    if (weights.defined())
      weights = weights.masked_select(finite);
    if (values.numel() == 0)
      return;
    std::tie(smallest, largest) = at::aminmax(values);
  }
  widen(smallest.item<double>(), largest.item<double>());
  const at::Tensor bins =
      at::floor(values.mul(std::ldexp(1.0, -exponent_))).to(at::kLong).sub_(first_);
  const auto size = static_cast<std::int64_t>(counts_.size());
  const at::Tensor counted =
      (weights.defined() ? at::bincount(bins, weights, size) : at::bincount(bins, {}, size))
          .to(at::kDouble);
  const double* const more = counted.data_ptr<double>();
  for (std::size_t i = 0; i < counts_.size(); ++i)
    counts_[i] += more[i];
}

void Histogram::merge(const Histogram& other) {
  if (other.empty_)
    return;
  widen(other.low_, other.high_);
  const int shift = exponent_ - other.exponent_;
  const bool zeros = other.low_ == 0 && other.high_ == 0;
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    const std::int64_t index = other.first_ + static_cast<std::int64_t>(i);
    const std::int64_t bin = zeros ? 0 : coarser(index, shift);
    counts_[static_cast<std::size_t>(bin - first_)] += other.counts_[i];
  }
}

at::Tensor Histogram::table() const {
  const auto bins = static_cast<std::int64_t>(counts_.size());
  at::Tensor table = at::empty({bins, 3}, at::kDouble);
  auto cells = table.accessor<double, 2>();
  for (std::int64_t i = 0; i < bins; ++i) {
    cells[i][0] = std::ldexp(static_cast<double>(first_ + i), exponent_);
    cells[i][1] = std::ldexp(static_cast<double>(first_ + i + 1), exponent_);
    cells[i][2] = counts_[static_cast<std::size_t>(i)];
  }
  return table;
}

StateDict Histogram::state() const {
  StateDict state;
  if (empty_)
    return state;
  state.put("low", nlohmann::json(low_));
  state.put("high", nlohmann::json(high_));
  state.put("exponent", nlohmann::json(exponent_));
  state.put("first", nlohmann::json(first_));
  state.put("counts", nlohmann::json(counts_));
  return state;
}

Histogram Histogram::from_state(const StateDict& state) {
  Histogram histogram;
  if (!state.has_value("low"))
    return histogram;
  histogram.empty_ = false;
  histogram.low_ = state.value("low").get<double>();
  histogram.high_ = state.value("high").get<double>();
  histogram.exponent_ = state.value("exponent").get<int>();
  histogram.first_ = state.value("first").get<std::int64_t>();
  histogram.counts_ = state.value("counts").get<std::vector<double>>();
  return histogram;
}

Residuals::Residuals(const Config&) {}

void Residuals::do_start(const TargetSpec& target) {
  expect_numbers("residuals", target);
  width_ = target.width();
}

void Residuals::do_reset() {
  sample_.clear();
  histograms_.assign(static_cast<std::size_t>(width_), Histogram());
}

void Residuals::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor actual = positions.actual().to(at::kDouble).contiguous();
  const at::Tensor predicted = positions.predicted().to(at::kDouble).contiguous();
  const at::Tensor& weights = positions.weights();
  const at::Tensor residuals = at::sub(actual, predicted);
  for (std::int64_t i = 0; i < width_; ++i)
    histograms_[static_cast<std::size_t>(i)].add(residuals.select(1, i), weights);
  sample(positions.numbers(), actual, predicted);
}

void Residuals::sample(const at::Tensor& rows, const at::Tensor& actual,
                       const at::Tensor& predicted) {
  const std::int64_t* const row = rows.data_ptr<std::int64_t>();
  const double* const actuals = actual.data_ptr<double>();
  const double* const predictions = predicted.data_ptr<double>();
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    // Soon nearly every row ends here: a few operations each.
    const std::uint64_t hash = hash_of(row[i]);
    if (sample_.size() == kSample && hash > sample_.rbegin()->first)
      continue;
    SampledRow sampled{row[i], {}};
    for (std::int64_t k = 0; k < width_; ++k) {
      sampled.numbers.push_back(actuals[i * width_ + k]);
      sampled.numbers.push_back(predictions[i * width_ + k]);
    }
    keep(hash, std::move(sampled));
  }
}

void Residuals::keep(std::uint64_t hash, SampledRow row) {
  sample_.insert_or_assign(hash, std::move(row));
  if (sample_.size() > kSample)
    sample_.erase(std::prev(sample_.end()));
}

void Residuals::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const Residuals&>(other);
  for (const auto& [hash, row] : theirs.sample_)
    keep(hash, row);
  for (std::size_t i = 0; i < histograms_.size(); ++i)
    histograms_[i].merge(theirs.histograms_[i]);
}

MetricResult Residuals::do_compute() const {
  std::vector<const SampledRow*> rows;
  for (const auto& [hash, row] : sample_)
    rows.push_back(&row);
  std::sort(rows.begin(), rows.end(),
            [](const SampledRow* a, const SampledRow* b) { return a->row < b->row; });

  MetricResult result;
  for (std::int64_t k = 0; k < width_; ++k) {
    const std::string suffix = width_ == 1 ? "" : "." + std::to_string(k);
    at::Tensor pairs = at::empty({static_cast<std::int64_t>(rows.size()), 2}, at::kDouble);
    auto cells = pairs.accessor<double, 2>();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::int64_t part = 0; part < 2; ++part)
        cells[static_cast<std::int64_t>(i)][part] =
            rows[i]->numbers[static_cast<std::size_t>(2 * k + part)];
    }
    result.tables.push_back({"residual_sample" + suffix, {}, {"actual", "predicted"}, pairs});
    result.tables.push_back({"residual_histogram" + suffix,
                             {},
                             {"from", "to", "count"},
                             histograms_[static_cast<std::size_t>(k)].table()});
  }
  return result;
}

StateDict Residuals::do_state() const {
  StateDict state;
  auto rows = nlohmann::json::array();
  auto numbers = nlohmann::json::array();
  for (const auto& [hash, row] : sample_) {
    rows.push_back(row.row);
    numbers.push_back(row.numbers);
  }
  state.put("rows", std::move(rows));
  state.put("numbers", std::move(numbers));
  for (std::size_t i = 0; i < histograms_.size(); ++i)
    state.put("histogram-" + std::to_string(i), histograms_[i].state());
  return state;
}

void Residuals::do_load_state(const StateDict& state) {
  do_reset();
  const nlohmann::json& rows = state.value("rows");
  const nlohmann::json& numbers = state.value("numbers");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i].get<std::int64_t>();
    keep(hash_of(row), {row, numbers.at(i).get<std::vector<double>>()});
  }
  for (std::size_t i = 0; i < histograms_.size(); ++i)
    histograms_[i] = Histogram::from_state(state.part("histogram-" + std::to_string(i)));
}

}  // namespace treadle::metrics
