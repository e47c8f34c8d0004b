#include "linear_scaler.h"

#include <cmath>
#include <utility>

#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::transforms {
namespace {

std::string port_key(std::size_t port, const char* what) {
  return "input_" + std::to_string(port) + "_" + what;
}

void expect_numbers(const std::string& component, const TargetSpec& target) {
  if (target.kind == TargetKind::kClasses) {
    throw DataError(component + ": \"target\": true needs number targets, but the target " +
                    quote_text(target.name) + " is classes");
  }
}

}  // namespace

LinearScaler::Lines::Lines(at::Tensor shift_values, at::Tensor scale_values)
    : shift(std::move(shift_values)), scale(std::move(scale_values)) {
  if (shift.scalar_type() != at::kDouble || scale.scalar_type() != at::kDouble ||
      shift.dim() != 1 || !shift.sizes().equals(scale.sizes())) {
    throw StorageError("saved shift and scale must be two float64 vectors of one size");
  }
  single_shift = shift.to(at::kFloat);
  single_scale = scale.to(at::kFloat);
}

LinearScaler::Lines::Lines(const std::vector<Line>& lines) {
  const auto count = static_cast<std::int64_t>(lines.size());
  at::Tensor shifts = at::empty({count}, at::kDouble);
  at::Tensor scales = at::empty({count}, at::kDouble);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    shifts.data_ptr<double>()[i] = lines[i].shift;
    scales.data_ptr<double>()[i] = lines[i].scale;
  }
  *this = Lines(std::move(shifts), std::move(scales));
}

void LinearScaler::Lines::apply(at::Tensor& values) const {
  TREADLE_EXPECTS(values.dim() == 2 && values.size(1) == shift.size(0),
                  "the batch has other columns than the data this transform was fitted on");
  const bool single = values.scalar_type() == at::kFloat;
  values.sub_(single ? single_shift : shift).mul_(single ? single_scale : scale);
}

LinearScaler::LinearScaler(const Config& config, std::string component)
    : choice_(config, std::move(component)), scales_target_(config.get_or("target", false)) {}

LinearScaler::~LinearScaler() = default;

std::vector<std::vector<bool>> LinearScaler::choose(const DataSpec& spec) const {
  return choice_.choose(
      spec, [](const Column& column) { return column.categories.empty(); },
      "is a category; only numbers can be scaled, one_hot makes numbers of it");
}

LinearScaler::Lines LinearScaler::lines_for(const std::vector<ColumnStatistics>& columns,
                                            const std::vector<bool>& chosen) const {
  std::vector<Line> lines(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (chosen[i] && columns[i].count > 0)
      lines[i] = line_for(columns[i]);
  }
  return Lines(lines);
}

void LinearScaler::do_fit(const RowReader& reader, std::span<const std::int64_t> training_rows) {
  const DataSpec& spec = reader.spec();
  const std::vector<std::vector<bool>> chosen = choose(spec);
  if (scales_target_)
    expect_numbers(choice_.component(), spec.target);
  std::vector<std::vector<ColumnStatistics>> inputs(spec.inputs.size());
  for (std::size_t port = 0; port < inputs.size(); ++port)
    inputs[port].resize(chosen[port].size());
  std::vector<ColumnStatistics> targets(scales_target_ ? static_cast<std::size_t>(spec.target.width)
                                                       : 0);
  for_each_chunk(reader, training_rows, [&](const Batch& batch) {
    for (std::size_t port = 0; port < inputs.size(); ++port) {
      if (!inputs[port].empty())
        add_rows(inputs[port], batch.inputs[port]);
    }
    if (!targets.empty())
      add_rows(targets, batch.targets);
  });
  inputs_.assign(inputs.size(), Lines());
  for (std::size_t port = 0; port < inputs.size(); ++port) {
    if (!inputs[port].empty())
      inputs_[port] = lines_for(inputs[port], chosen[port]);
  }
  target_ = targets.empty() ? Lines() : lines_for(targets, std::vector<bool>(targets.size(), true));
}

DataSpec LinearScaler::do_output_spec(const DataSpec& before) const {
  choose(before);
  if (scales_target_)
    expect_numbers(choice_.component(), before.target);
  return before;
}

void LinearScaler::do_apply(Batch& batch, const ApplyContext&) const {
  TREADLE_EXPECTS(batch.inputs.size() == inputs_.size(),
                  "the batch has other inputs than the data this transform was fitted on");
  for (std::size_t port = 0; port < inputs_.size(); ++port) {
    if (inputs_[port].defined())
      inputs_[port].apply(batch.inputs[port]);
  }
  if (target_.defined() && batch.targets.defined()) {
    // The original targets are the same tensor, and metrics need them.
    batch.targets = batch.targets.clone();
    target_.apply(batch.targets);
  }
}

at::Tensor LinearScaler::do_invert(const at::Tensor& predictions) const {
  if (!target_.defined())
    return predictions;
  return predictions.div(target_.scale.to(predictions.options()))
      .add(target_.shift.to(predictions.options()));
}

StateDict LinearScaler::do_state() const {
  StateDict state;
  state.put("inputs", nlohmann::json(inputs_.size()));
  for (std::size_t port = 0; port < inputs_.size(); ++port) {
    if (inputs_[port].defined()) {
      state.put(port_key(port, "shift"), inputs_[port].shift);
      state.put(port_key(port, "scale"), inputs_[port].scale);
    }
  }
  if (target_.defined()) {
    state.put("target_shift", target_.shift);
    state.put("target_scale", target_.scale);
  }
  return state;
}

void LinearScaler::do_load_state(const StateDict& state) {
  const nlohmann::json& count = state.value("inputs");
  constexpr int kMostInputs = 1024;
  if (!count.is_number_unsigned() || count > kMostInputs)
    throw StorageError("saved number of inputs is not one: " + count.dump());
  inputs_.assign(count.get<std::size_t>(), Lines());
  for (std::size_t port = 0; port < inputs_.size(); ++port) {
    if (state.has_tensor(port_key(port, "shift"))) {
      inputs_[port] =
          Lines(state.tensor(port_key(port, "shift")), state.tensor(port_key(port, "scale")));
    }
  }
  target_ =
      scales_target_ ? Lines(state.tensor("target_shift"), state.tensor("target_scale")) : Lines();
}

LinearScaler::Line Standardize::line_for(const ColumnStatistics& column) const {
  return {column.mean, column.is_constant() ? 1 : 1 / std::sqrt(column.variance())};
}

MinMax::MinMax(const Config& config) : LinearScaler(config, "min_max") {
  if (!config.has("range"))
    return;
  const auto range = config.get<std::vector<double>>("range");
  if (range.size() != 2 || !(range[0] < range[1]))
    config.fail("range", "must have a lower and an upper end, the lower one first");
  lower_ = range[0];
  upper_ = range[1];
}

LinearScaler::Line MinMax::line_for(const ColumnStatistics& column) const {
  const double extent = column.maximum - column.minimum;
  const double scale = (upper_ - lower_) / (extent > 0 ? extent : 1);
  return {column.minimum - lower_ / scale, scale};
}

}  // namespace treadle::transforms
