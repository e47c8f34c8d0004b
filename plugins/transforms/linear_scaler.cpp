#include "linear_scaler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/sequence_provider.h>

namespace treadle::transforms {
namespace {

std::string line_key(const char* of, std::size_t index, const char* what) {
  return std::string(of) + "_" + std::to_string(index) + "_" + what;
}

/// True where a row has padding: [B, longest, 1, …] for `values`, [B, longest, …].
at::Tensor padding_of(const at::Tensor& values, const at::Tensor& lengths) {
  at::Tensor padding =
      at::arange(values.size(1), lengths.options()).unsqueeze(0).ge(lengths.unsqueeze(1));
  for (std::int64_t d = 2; d < values.dim(); ++d)
    padding = padding.unsqueeze(-1);
  return padding;
}

std::optional<std::size_t> lengths_of(const DataSpec& spec, const std::string& port) {
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (spec.inputs[i].role == Role::kLengths && spec.inputs[i].of == port)
      return i;
  }
  return std::nullopt;
}

/// The batch's values without padding: [.., the dimensions of a position].
at::Tensor without_padding(const at::Tensor& values, const Batch& batch,
                           std::optional<std::size_t> lengths) {
  if (!lengths)
    return values;
  const at::Tensor real = padding_of(values, batch.inputs[*lengths]).flatten(1).logical_not();
  return values.flatten(0, 1).index({real.flatten()});
}

/// The values of a target at the positions that count: [.., width].
at::Tensor counted_values(const Batch& batch, std::size_t target,
                          std::optional<std::size_t> lengths) {
  const at::Tensor& values = batch.targets[target];
  if (target >= batch.position_weights.size() || !batch.position_weights[target].defined())
    return without_padding(values, batch, lengths);
  const at::Tensor counts = batch.position_weights[target].gt(0);
  return values.flatten(0, counts.dim() - 1).index({counts.flatten()});
}

/// As a table with one column per line.
at::Tensor as_table(const at::Tensor& values, bool by_first, std::int64_t lines) {
  return by_first ? values.movedim(1, -1).reshape({-1, lines}) : values.reshape({-1, lines});
}

// Rows of a table as ever; of arrays, which may be large, fewer.
std::size_t rows_at_a_time(const DataSpec& spec) {
  constexpr std::size_t kRows = 8192;
  constexpr std::size_t kMostItems = std::size_t{1} << 24;
  std::size_t items = 1;
  for (const PortSpec& port : spec.inputs) {
    std::size_t of_port = port.columns.empty() ? 1 : 0;
    for (const std::int64_t extent : port.shape)
      of_port *= extent == kVaries ? 1024 : static_cast<std::size_t>(extent);
    items = std::max(items, of_port);
  }
  return std::clamp<std::size_t>(kMostItems / items, 1, kRows);
}

}  // namespace

LinearScaler::Lines::Lines(const at::Tensor& shift_values, const at::Tensor& scale_values,
                           Axis axis, std::size_t dimensions) {
  if (shift_values.scalar_type() != at::kDouble || scale_values.scalar_type() != at::kDouble ||
      shift_values.dim() != 1 || !shift_values.sizes().equals(scale_values.sizes())) {
    throw StorageError("saved shift and scale must be two float64 vectors of one size");
  }
  // Broadcast against [B, first, …, last]: the first dimension of a row has the others behind it.
  std::vector<std::int64_t> view = {shift_values.size(0)};
  if (axis == Axis::kFirst)
    view.resize(dimensions, 1);
  shift = DeviceConstant(shift_values.view(view));
  scale = DeviceConstant(scale_values.view(view));
}

LinearScaler::Lines::Lines(const std::vector<Line>& lines, Axis axis, std::size_t dimensions) {
  const auto count = static_cast<std::int64_t>(lines.size());
  at::Tensor shifts = at::empty({count}, at::kDouble);
  at::Tensor scales = at::empty({count}, at::kDouble);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    shifts.data_ptr<double>()[i] = lines[i].shift;
    scales.data_ptr<double>()[i] = lines[i].scale;
  }
  *this = Lines(shifts, scales, axis, dimensions);
}

void LinearScaler::Lines::apply(at::Tensor& values) const {
  const at::Tensor& lines = shift.numbers();
  const std::int64_t dimension = lines.dim() == 1 ? -1 : 1;
  TREADLE_EXPECTS(values.dim() >= 2 && values.dim() > lines.dim() &&
                      (lines.numel() == 1 || values.size(dimension) == lines.numel()),
                  "the batch has other columns than the data this transform was fitted on");
  values.sub_(shift.with(values.options())).mul_(scale.with(values.options()));
}

LinearScaler::LinearScaler(const Config& config, std::string component)
    : columns_(config, std::move(component)),
      input_names_(config.find<std::vector<std::string>>("inputs")) {
  const auto axis = config.get_or("axis", std::string("auto"));
  axis_ = axis == "first"  ? Axis::kFirst
          : axis == "last" ? Axis::kLast
          : axis == "none" ? Axis::kNone
                           : Axis::kAuto;
  if (!config.has("target"))
    return;
  const nlohmann::json& target = config.json()["target"];
  scales_targets_ = !target.is_boolean() || target.get<bool>();
  if (target.is_array())
    target_names_ = target.get<std::vector<std::string>>();
}

LinearScaler::~LinearScaler() = default;

// Three dimensions are an image's, whose first is that of its channels; what a sequence has at each
// time step is its last. Numbers of which there is one per time step have one line.
LinearScaler::Axis LinearScaler::axis_of(const PortSpec& port) const {
  if (!port.columns.empty())
    return Axis::kLast;
  const bool is_series = port.shape.size() == 1 && port.shape[0] == kVaries;
  if (axis_ == Axis::kAuto) {
    const bool is_image = port.role == Role::kImage || port.shape.size() == 3;
    return is_series                              ? Axis::kNone
           : is_image && port.shape[0] != kVaries ? Axis::kFirst
                                                  : Axis::kLast;
  }
  const bool varies = axis_ == Axis::kFirst ? port.shape.front() == kVaries
                                            : axis_ == Axis::kLast && port.shape.back() == kVaries;
  if (varies) {
    throw DataError(columns_.component() + ": the " + (axis_ == Axis::kFirst ? "first" : "last") +
                    " dimension of input " + quote_text(port.name) +
                    " varies from row to row; set \"axis\" to another one");
  }
  return axis_;
}

std::vector<LinearScaler::Choice> LinearScaler::choose(const DataSpec& spec) const {
  const std::string& component = columns_.component();
  const std::vector<std::vector<bool>> columns = columns_.choose(
      spec, [](const Column& column) { return column.categories.empty(); },
      "is a category; only numbers can be scaled, one_hot makes numbers of it");
  std::vector<std::string> present;
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const PortSpec& port = spec.inputs[i];
    present.push_back(port.name);
    const bool is_named = input_names_ && std::find(input_names_->begin(), input_names_->end(),
                                                    port.name) != input_names_->end();
    if (is_named && !is_numbers(port)) {
      throw DataError(component + ": input " + quote_text(port.name) +
                      " cannot be scaled; the inputs are " + described_inputs(spec));
    }
    Choice& choice = choices.emplace_back();
    if (!is_numbers(port))
      continue;
    const bool as_whole = is_named || (!input_names_ && !columns_.has_names());
    choice.columns =
        columns_.has_names() ? columns[i] : std::vector<bool>(columns[i].size(), false);
    if (as_whole)
      choice.columns.assign(columns[i].size(), true);
    choice.is_chosen = as_whole || std::find(choice.columns.begin(), choice.columns.end(), true) !=
                                       choice.columns.end();
    if (!choice.is_chosen)
      continue;
    choice.axis = axis_of(port);
    choice.lengths = port.shape[0] == kVaries ? lengths_of(spec, port.name) : std::nullopt;
  }
  for (const std::string& name : input_names_.value_or(std::vector<std::string>())) {
    if (std::find(present.begin(), present.end(), name) == present.end()) {
      throw DataError(component + ": there is no input " + quote_text(name) + "; the inputs are " +
                      name_list(present) + did_you_mean(name, present));
    }
  }
  bool has_array = false;
  bool has_any = scales_targets_;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    has_any = has_any || choices[i].is_chosen;
    has_array = has_array || (choices[i].is_chosen && spec.inputs[i].columns.empty());
  }
  if (!has_any) {
    throw DataError(component + ": no input has numbers to scale; the inputs are " +
                    described_inputs(spec));
  }
  if (axis_ != Axis::kAuto && !has_array) {
    throw DataError(component +
                    ": \"axis\" is for images and sequences; the columns of a table are scaled "
                    "one by one");
  }
  return choices;
}

std::vector<bool> LinearScaler::choose_targets(const DataSpec& spec) const {
  std::vector<bool> chosen(spec.targets.size(), false);
  if (!scales_targets_ || spec.targets.empty())
    return chosen;
  std::vector<std::string> present;
  std::string kinds;
  for (std::size_t i = 0; i < spec.targets.size(); ++i) {
    const TargetSpec& target = spec.targets[i];
    present.push_back(target.name);
    kinds += (kinds.empty() ? "" : ", ") + quote_text(target.name) + " is " +
             std::string(name_of(target.kind));
    const bool is_named =
        std::find(target_names_.begin(), target_names_.end(), target.name) != target_names_.end();
    if (is_named && target.kind != TargetKind::kNumbers) {
      throw DataError(columns_.component() + ": \"target\" names " + quote_text(target.name) +
                      ", which is " + std::string(name_of(target.kind)) +
                      "; only numbers can be scaled");
    }
    chosen[i] = target.kind == TargetKind::kNumbers && (is_named || target_names_.empty());
  }
  for (const std::string& name : target_names_) {
    if (std::find(present.begin(), present.end(), name) == present.end()) {
      throw DataError(columns_.component() + ": there is no target " + quote_text(name) +
                      "; the targets are " + name_list(present) + did_you_mean(name, present));
    }
  }
  if (std::find(chosen.begin(), chosen.end(), true) == chosen.end()) {
    throw DataError(columns_.component() + ": \"target\": true needs a target of numbers, but " +
                    kinds);
  }
  return chosen;
}

void LinearScaler::prepare(const DataSpec& before) {
  before_ = before;
  choices_ = choose(before_);
  chosen_targets_ = choose_targets(before_);
  inputs_.assign(choices_.size(), Lines());
  targets_.assign(chosen_targets_.size(), Lines());
}

std::vector<LinearScaler::Line> LinearScaler::lines_for(
    const std::vector<ColumnStatistics>& columns) const {
  std::vector<Line> lines(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].count > 0)
      lines[i] = line_for(columns[i]);
  }
  return lines;
}

void LinearScaler::add_all(const RowReader& reader, const RowList& training_rows,
                           Statistics& inputs, Statistics& targets,
                           const std::vector<std::optional<std::size_t>>& target_lengths) const {
  const auto add = [&](const Batch& batch) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].empty())
        continue;
      const at::Tensor values = without_padding(batch.inputs[i], batch, choices_[i].lengths);
      add_rows(inputs[i], as_table(values, choices_[i].axis == Axis::kFirst,
                                   static_cast<std::int64_t>(inputs[i].size())));
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (targets[i].empty())
        continue;
      const at::Tensor values = counted_values(batch, i, target_lengths[i]);
      add_rows(targets[i], as_table(values, false, static_cast<std::int64_t>(targets[i].size())));
    }
  };
  for_each_chunk(reader, training_rows, add, rows_at_a_time(reader.spec()));
}

void LinearScaler::do_fit(const RowReader& reader, const RowList& training_rows) {
  const DataSpec& spec = reader.spec();
  prepare(spec);
  Statistics inputs(spec.inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!choices_[i].is_chosen)
      continue;
    const std::vector<std::int64_t>& shape = spec.inputs[i].shape;
    inputs[i].resize(static_cast<std::size_t>(choices_[i].axis == Axis::kFirst  ? shape.front()
                                              : choices_[i].axis == Axis::kLast ? shape.back()
                                                                                : 1));
  }
  Statistics targets(spec.targets.size());
  std::vector<std::optional<std::size_t>> target_lengths(spec.targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!chosen_targets_[i])
      continue;
    targets[i].resize(static_cast<std::size_t>(spec.targets[i].width()));
    if (!spec.targets[i].padded_like.empty())
      target_lengths[i] = lengths_of(spec, spec.targets[i].padded_like);
  }
  // A row that is in many samples counts once: the statistics are those of the data.
  const SampleReader* const samples = reader.samples();
  const RowReader* const steps = samples != nullptr ? samples->steps() : nullptr;
  const bool by_step =
      steps != nullptr && std::all_of(choices_.begin(), choices_.end(), [](const Choice& choice) {
        return choice.axis != Axis::kFirst;
      });
  add_all(by_step ? *steps : reader,
          by_step ? touched_rows(*samples, training_rows) : training_rows, inputs, targets,
          target_lengths);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].empty())
      continue;
    std::vector<Line> lines = lines_for(inputs[i]);
    for (std::size_t c = 0; c < choices_[i].columns.size(); ++c) {
      if (!choices_[i].columns[c])
        lines[c] = Line();
    }
    inputs_[i] = Lines(lines, choices_[i].axis, spec.inputs[i].shape.size());
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!targets[i].empty())
      targets_[i] = Lines(lines_for(targets[i]), Axis::kLast, spec.targets[i].shape.size());
  }
}

DataSpec LinearScaler::do_output_spec(const DataSpec& before) const {
  choose(before);
  choose_targets(before);
  return before;
}

void LinearScaler::do_apply(Batch& batch, const ApplyContext&) const {
  TREADLE_EXPECTS(batch.inputs.size() == inputs_.size(),
                  "the batch has other inputs than the data this transform was fitted on");
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].defined())
      continue;
    at::Tensor& values = batch.inputs[i];
    inputs_[i].apply(values);
    if (choices_[i].lengths)
      values.masked_fill_(padding_of(values, batch.inputs[*choices_[i].lengths]), 0);
  }
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    if (!targets_.at(i).defined())
      continue;
    // The original targets are the same tensor, and metrics need them.
    batch.targets[i] = batch.targets[i].clone();
    targets_[i].apply(batch.targets[i]);
  }
}

at::Tensor LinearScaler::do_invert(const at::Tensor& predictions, std::string_view target) const {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (before_.targets[i].name == target && targets_[i].defined()) {
      return predictions.div(targets_[i].scale.with(predictions.options()))
          .add(targets_[i].shift.with(predictions.options()));
    }
  }
  return predictions;
}

StateDict LinearScaler::do_state() const {
  StateDict state;
  state.put("before", to_json(before_));
  const auto put = [&](const char* of, const std::vector<Lines>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].defined()) {
        state.put(line_key(of, i, "shift"), all[i].shift.numbers().flatten());
        state.put(line_key(of, i, "scale"), all[i].scale.numbers().flatten());
      }
    }
  };
  put("input", inputs_);
  put("target", targets_);
  return state;
}

void LinearScaler::do_load_state(const StateDict& state) {
  prepare(data_spec_from_json(state.value("before")));
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (choices_[i].is_chosen) {
      inputs_[i] = Lines(state.tensor(line_key("input", i, "shift")),
                         state.tensor(line_key("input", i, "scale")), choices_[i].axis,
                         before_.inputs[i].shape.size());
    }
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (chosen_targets_[i]) {
      targets_[i] = Lines(state.tensor(line_key("target", i, "shift")),
                          state.tensor(line_key("target", i, "scale")), Axis::kLast,
                          before_.targets[i].shape.size());
    }
  }
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
