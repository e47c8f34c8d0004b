#include "evaluation/forecast_sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <treadle/base/error.h>
#include <treadle/core/data/sequence_provider.h>

namespace treadle::internal {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kLeastPast = 24;

}  // namespace

ForecastSample::~ForecastSample() = default;

void ForecastSample::choose_of(const RowList& rows) {
  chosen_.clear();
  const std::size_t count = std::min(rows.size(), kMostForecasts);
  for (std::size_t i = 0; i < count; ++i)
    chosen_.push_back(rows[(2 * i + 1) * rows.size() / (2 * count)]);
  std::sort(chosen_.begin(), chosen_.end());
}

void ForecastSample::do_start(const TargetSpec& target) {
  numbers_ = std::min(target.width(), kMostNumbers);
}

void ForecastSample::do_reset() {
  forecasts_.clear();
}

void ForecastSample::do_update(const Prediction& prediction, const TargetBatch& target) {
  const at::Tensor& rows = target.batch().rows;
  const auto* const row = rows.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < rows.numel(); ++i) {
    if (!std::binary_search(chosen_.begin(), chosen_.end(), row[i]))
      continue;
    const auto shown = [&](const at::Tensor& values) {
      return values[i].narrow(-1, 0, numbers_).to(at::kDouble);
    };
    at::Tensor actual = shown(target.values()).clone();
    if (target.weights().defined() && target.weights().dim() == 2)
      actual.masked_fill_(target.weights()[i].eq(0).unsqueeze(-1), kNone);
    std::vector<at::Tensor> columns{actual, shown(prediction.values)};
    extras_.clear();
    for (const Prediction::Extra& extra : prediction.extras) {
      extras_.push_back(extra.name);
      columns.push_back(shown(extra.values));
    }
    forecasts_.push_back(
        {label_of(row[i]), past_of(row[i], actual.size(0)), at::stack(columns, -1)});
  }
}

/// The target in the rows that the model was given, as many as a picture needs.
at::Tensor ForecastSample::past_of(std::int64_t row, std::int64_t horizon) const {
  const SampleReader* const samples = data_.rows == nullptr ? nullptr : data_.rows->samples();
  if (samples == nullptr || data_.source == nullptr)
    return at::empty({0, numbers_}, at::kDouble);
  const SourceRows touched = samples->source_rows(row);
  const std::int64_t most = std::max(2 * horizon, kLeastPast);
  const std::int64_t begin = std::max(touched.inputs.begin, touched.targets.begin - most);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(touched.targets.begin - begin));
  std::iota(rows.begin(), rows.end(), begin);
  Batch batch;
  data_.source->gather(rows, batch);
  at::Tensor past = batch.targets[target_].narrow(-1, 0, numbers_).to(at::kDouble).clone();
  if (target_ < batch.position_weights.size() && batch.position_weights[target_].defined())
    past.masked_fill_(batch.position_weights[target_].eq(0).unsqueeze(-1), kNone);
  return past;
}

std::string ForecastSample::label_of(std::int64_t row) const {
  if (data_.rows == nullptr)
    return {};
  std::string label;
  if (const at::Tensor groups = data_.rows->groups(); groups.defined()) {
    const auto group = groups[row].item<std::int64_t>();
    label =
        data_.names != nullptr ? data_.names->name_of(group) : "series " + std::to_string(group);
  }
  const std::string time = data_.rows->describe_time(row);
  const std::string place = time.empty() ? "sample " + std::to_string(row) : time;
  return label.empty() ? place : label + ", " + place;
}

void ForecastSample::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const ForecastSample&>(other);
  if (forecasts_.empty())
    extras_ = theirs.extras_;
  if (extras_ == theirs.extras_)
    forecasts_.insert(forecasts_.end(), theirs.forecasts_.begin(), theirs.forecasts_.end());
}

MetricResult ForecastSample::do_compute() const {
  MetricTable table;
  table.name = kTable;
  table.column_labels = {"forecast", "number", "step", "actual", "predicted"};
  table.column_labels.insert(table.column_labels.end(), extras_.begin(), extras_.end());
  std::vector<double> values;
  const std::size_t count = std::min(forecasts_.size(), kMostForecasts);
  for (std::size_t i = 0; i < count; ++i) {
    // Of more, as folds have them together, again some that are evenly spread.
    const Forecast& forecast = forecasts_[(2 * i + 1) * forecasts_.size() / (2 * count)];
    const at::Tensor past = forecast.past.contiguous();
    const at::Tensor steps = forecast.steps.contiguous();
    const std::int64_t width = steps.size(-1);
    for (std::int64_t number = 0; number < numbers_; ++number) {
      const auto begin_row = [&](std::int64_t step) {
        table.row_labels.push_back(forecast.label);
        values.insert(values.end(), {static_cast<double>(i), static_cast<double>(number),
                                     static_cast<double>(step)});
      };
      for (std::int64_t row = 0; row < past.size(0); ++row) {
        begin_row(row + 1 - past.size(0));
        values.push_back(past.data_ptr<double>()[row * numbers_ + number]);
        values.insert(values.end(), static_cast<std::size_t>(width - 1), kNone);
      }
      for (std::int64_t step = 0; step < steps.size(0); ++step) {
        begin_row(step + 1);
        const double* const here = steps.data_ptr<double>() + (step * numbers_ + number) * width;
        values.insert(values.end(), here, here + width);
      }
    }
  }
  if (values.empty())
    return {};
  const auto columns = static_cast<std::int64_t>(table.column_labels.size());
  table.values =
      at::empty({static_cast<std::int64_t>(table.row_labels.size()), columns}, at::kDouble);
  std::copy(values.begin(), values.end(), table.values.data_ptr<double>());
  return {{}, {std::move(table)}};
}

StateDict ForecastSample::do_state() const {
  StateDict state;
  nlohmann::json labels = nlohmann::json::array();
  for (std::size_t i = 0; i < forecasts_.size(); ++i) {
    labels.push_back(forecasts_[i].label);
    StateDict one;
    one.put("past", forecasts_[i].past);
    one.put("steps", forecasts_[i].steps);
    state.put(std::to_string(i), std::move(one));
  }
  state.put("labels", std::move(labels));
  state.put("extras", nlohmann::json(extras_));
  return state;
}

void ForecastSample::do_load_state(const StateDict& state) {
  const auto labels = state.value("labels").get<std::vector<std::string>>();
  extras_ = state.value("extras").get<std::vector<std::string>>();
  forecasts_.clear();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const StateDict& one = state.part(std::to_string(i));
    const at::Tensor& steps = one.tensor("steps");
    const at::Tensor& past = one.tensor("past");
    if (steps.dim() != 3 || steps.size(1) != numbers_ || past.dim() != 2 ||
        past.size(1) != numbers_ || steps.size(2) != static_cast<std::int64_t>(extras_.size()) + 2)
      throw StorageError("the saved forecasts belong to another target");
    forecasts_.push_back({labels[i], past, steps});
  }
}

}  // namespace treadle::internal
