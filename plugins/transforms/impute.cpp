#include "impute.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/where.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::transforms {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double mean(std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1)
    return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double most_frequent(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  double best = values.front();
  std::ptrdiff_t longest = 0;
  for (auto run = values.begin(); run != values.end();) {
    const auto end = std::upper_bound(run, values.end(), *run);
    if (end - run > longest) {
      longest = end - run;
      best = *run;
    }
    run = end;
  }
  return best;
}

// For an even number of values scikit-learn's median is the mean of the two in the middle as well.
struct Strategy {
  const char* name;
  double (*statistic)(std::vector<double>&);
};
constexpr std::array kStrategies = {Strategy{"mean", mean}, Strategy{"median", median},
                                    Strategy{"most_frequent", most_frequent},
                                    Strategy{"constant", nullptr}};

std::string port_key(std::size_t port) {
  return "input_" + std::to_string(port) + "_fill";
}

}  // namespace

Impute::Impute(const Config& config)
    : choice_(config, "impute"),
      value_(config.get_or("value", 0.0)),
      category_(config.find<std::string>("category")),
      indicator_(config.get_or("indicator", false)) {
  const auto name = config.get_or("strategy", std::string("mean"));
  const auto* const found = std::find_if(kStrategies.begin(), kStrategies.end(),
                                         [&](const Strategy& s) { return name == s.name; });
  if (found == kStrategies.end())
    config.fail("strategy", "must be mean, median, most_frequent or constant");
  statistic_ = found->statistic;
  if (statistic_ != nullptr && config.has("value"))
    config.fail("value", "has no effect with \"strategy\": \"" + name + "\"");
}

Impute::~Impute() = default;

std::vector<std::vector<bool>> Impute::choose(const DataSpec& spec) const {
  // A column that is named may be one without missing values; one that is not named is left alone.
  const bool by_name = choice_.has_names();
  std::vector<std::vector<bool>> chosen = choice_.choose(
      spec, [&](const Column& column) { return by_name || column.may_be_missing; }, "");
  if (!any_chosen(chosen)) {
    throw DataError(
        "impute: no column has missing values; leave the transform out, or name columns in "
        "\"columns\"; the inputs are " +
        described_inputs(spec));
  }
  return chosen;
}

double Impute::fill_for(const RowReader& reader, const RowList& rows, std::size_t port,
                        std::size_t column) const {
  const Column& description = reader.spec().inputs[port].columns[column];
  const std::vector<std::string>& categories = description.categories;
  if (categories.empty() && statistic_ == nullptr)
    return value_;
  if (!categories.empty() && category_) {
    const auto found = std::find(categories.begin(), categories.end(), *category_);
    return static_cast<double>(found - categories.begin());  // behind the last: a new one
  }
  std::vector<double> values;
  for_each_chunk(reader, rows, [&](const Batch& batch) {
    const at::Tensor chunk = batch.inputs[port]
                                 .select(1, static_cast<std::int64_t>(column))
                                 .to(at::kDouble)
                                 .contiguous();
    const double* const begin = chunk.data_ptr<double>();
    std::copy_if(begin, begin + chunk.numel(), std::back_inserter(values), [&](double value) {
      return categories.empty() ? !std::isnan(value) : value >= 0;
    });
  });
  if (values.empty()) {
    throw DataError("impute: column " + quote_text(description.name) +
                    " has no value in the training rows; leave it out of the data's \"columns\", "
                    "or give it one with " +
                    (categories.empty() ? "\"strategy\": \"constant\"" : "\"category\""));
  }
  return categories.empty() ? statistic_(values) : most_frequent(values);
}

void Impute::prepare(const DataSpec& before, std::vector<at::Tensor> fills) {
  before_.inputs = before.inputs;
  std::vector<std::size_t> places;
  after_ = ports_after(before_, places);
  fillings_.assign(fills.size(), Filling());
  const std::vector<std::vector<bool>> chosen = choose(before_);
  for (std::size_t port = 0; port < fills.size(); ++port) {
    if (!fills[port].defined())
      continue;
    Filling& filling = fillings_[port];
    filling.fill = std::move(fills[port]);
    if (filling.fill.scalar_type() == at::kDouble)
      filling.single_fill = filling.fill.to(at::kFloat);
    if (!indicator_)
      continue;
    filling.indicators = places[port];
    const auto count = std::count(chosen[port].begin(), chosen[port].end(), true);
    filling.indicated = at::empty({count}, at::kLong);
    auto* next = filling.indicated.data_ptr<std::int64_t>();
    for (std::size_t c = 0; c < chosen[port].size(); ++c) {
      if (chosen[port][c])
        *next++ = static_cast<std::int64_t>(c);
    }
  }
}

void Impute::do_fit(const RowReader& reader, const RowList& training_rows) {
  const DataSpec& spec = reader.spec();
  const std::vector<std::vector<bool>> chosen = choose(spec);
  std::vector<at::Tensor> fills(spec.inputs.size());
  for (std::size_t port = 0; port < fills.size(); ++port) {
    const bool categories = spec.inputs[port].role == Role::kCategories;
    for (std::size_t c = 0; c < chosen[port].size(); ++c) {
      if (!chosen[port][c])
        continue;
      if (!fills[port].defined()) {
        const auto width = static_cast<std::int64_t>(chosen[port].size());
        fills[port] =
            categories ? at::full({width}, -1, at::kLong) : at::full({width}, kNan, at::kDouble);
      }
      const double fill = fill_for(reader, training_rows, port, c);
      if (categories) {
        fills[port].data_ptr<std::int64_t>()[c] = static_cast<std::int64_t>(fill);
      } else {
        fills[port].data_ptr<double>()[c] = fill;
      }
    }
  }
  prepare(spec, std::move(fills));
}

std::vector<PortSpec> Impute::ports_after(const DataSpec& before,
                                          std::vector<std::size_t>& places) const {
  const std::vector<std::vector<bool>> chosen = choose(before);
  std::vector<PortSpec> after = before.inputs;
  places.assign(after.size(), 0);
  for (std::size_t port = 0; port < before.inputs.size(); ++port) {
    std::vector<Column> indicators;
    for (std::size_t c = 0; c < chosen[port].size(); ++c) {
      if (!chosen[port][c])
        continue;
      Column& column = after[port].columns[c];
      column.may_be_missing = false;
      if (!column.categories.empty() && category_ &&
          std::find(column.categories.begin(), column.categories.end(), *category_) ==
              column.categories.end()) {
        column.categories.push_back(*category_);
      }
      if (indicator_)
        indicators.push_back({column.name + " is missing", {}});
    }
    if (indicators.empty())
      continue;
    places[port] = port;
    if (before.inputs[port].role == Role::kCategories) {
      const std::string name = features_beside(before.inputs[port].name);
      const auto features = std::find_if(after.begin(), after.end(),
                                         [&](const PortSpec& one) { return one.name == name; });
      places[port] = static_cast<std::size_t>(features - after.begin());
      if (features == after.end())
        after.push_back(
            {name, before.inputs[port].shape, {}, Role::kFeatures, number_dtype(before)});
    }
    PortSpec& owner = after[places[port]];
    owner.columns.insert(owner.columns.end(), indicators.begin(), indicators.end());
    owner.shape.back() = static_cast<std::int64_t>(owner.columns.size());
  }
  return after;
}

DataSpec Impute::do_output_spec(const DataSpec& before) const {
  DataSpec after = before;
  std::vector<std::size_t> places;
  after.inputs = ports_after(before, places);
  return after;
}

void Impute::do_apply(Batch& batch, const ApplyContext&) const {
  TREADLE_EXPECTS(batch.inputs.size() == fillings_.size(),
                  "the batch has other inputs than the data this transform was fitted on");
  std::vector<std::vector<at::Tensor>> parts(after_.size());
  for (std::size_t port = 0; port < fillings_.size(); ++port) {
    const Filling& filling = fillings_[port];
    at::Tensor& values = batch.inputs[port];
    if (!filling.fill.defined())
      continue;
    TREADLE_EXPECTS(values.size(-1) == filling.fill.size(0),
                    "the batch has other columns than the data this transform was fitted on");
    const at::Tensor missing = values.scalar_type() == at::kLong ? values.lt(0) : at::isnan(values);
    values = at::where(
        missing, values.scalar_type() == at::kFloat ? filling.single_fill : filling.fill, values);
    if (filling.indicated.defined()) {
      parts[filling.indicators].push_back(
          at::index_select(missing, -1, filling.indicated).to(after_[filling.indicators].dtype));
    }
  }
  for (std::size_t port = 0; port < parts.size(); ++port) {
    if (parts[port].empty())
      continue;
    if (port < batch.inputs.size())
      parts[port].insert(parts[port].begin(), batch.inputs[port]);
    batch.inputs.resize(std::max(batch.inputs.size(), port + 1));
    batch.inputs[port] = at::cat(parts[port], -1);
  }
}

StateDict Impute::do_state() const {
  StateDict state;
  state.put("before", to_json(before_));
  for (std::size_t port = 0; port < fillings_.size(); ++port) {
    if (fillings_[port].fill.defined())
      state.put(port_key(port), fillings_[port].fill);
  }
  return state;
}

void Impute::do_load_state(const StateDict& state) {
  const DataSpec before = data_spec_from_json(state.value("before"));
  std::vector<at::Tensor> fills(before.inputs.size());
  for (std::size_t port = 0; port < fills.size(); ++port) {
    if (!state.has_tensor(port_key(port)))
      continue;
    fills[port] = state.tensor(port_key(port));
    const auto width = static_cast<std::int64_t>(before.inputs[port].columns.size());
    const bool categories = before.inputs[port].role == Role::kCategories;
    if (fills[port].scalar_type() != (categories ? at::kLong : at::kDouble) ||
        fills[port].dim() != 1 || fills[port].size(0) != width) {
      throw StorageError("saved fill values must be a vector of " + std::to_string(width) +
                         (categories ? " int64" : " float64"));
    }
  }
  prepare(before, std::move(fills));
}

}  // namespace treadle::transforms
