#include "linear_scaler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/data/sequence_provider.h>

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

/// As a table with one column per line; lines are in the last dimension.
at::Tensor as_table(const at::Tensor& values, std::int64_t lines) {
  return values.reshape({-1, lines});
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

LinearScaler::LinearScaler(const Config& config, std::string component)
    : columns_(config, std::move(component)),
      input_names_(config.find<std::vector<std::string>>("inputs")) {
  const auto axis = config.get_or("axis", std::string("auto"));
  axis_ = axis == "first"  ? Axis::kFirst
          : axis == "last" ? Axis::kLast
          : axis == "none" ? Axis::kNone
                           : Axis::kAuto;
  by_group_ = config.get_or("by", std::string("all")) == "group";
  has_overall_ = config.get_or("handle_unknown", std::string("error")) == "overall";
  if (has_overall_ && !by_group_)
    config.fail("handle_unknown", "has no effect without \"by\": \"group\"");
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
    const bool as_whole = is_named || (!input_names_ && !columns_.has_names() && takes_whole(port));
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

std::vector<LinearScaler::TargetChoice> LinearScaler::choose_targets(const DataSpec& spec) const {
  std::vector<TargetChoice> chosen(spec.targets.size());
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
    chosen[i].is_chosen =
        target.kind == TargetKind::kNumbers && (is_named || target_names_.empty());
    if (!target.padded_like.empty())
      chosen[i].lengths = lengths_of(spec, target.padded_like);
  }
  for (const std::string& name : target_names_) {
    if (std::find(present.begin(), present.end(), name) == present.end()) {
      throw DataError(columns_.component() + ": there is no target " + quote_text(name) +
                      "; the targets are " + name_list(present) + did_you_mean(name, present));
    }
  }
  if (std::none_of(chosen.begin(), chosen.end(),
                   [](const TargetChoice& choice) { return choice.is_chosen; })) {
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

std::size_t LinearScaler::lines_in(std::size_t input) const {
  const std::vector<std::int64_t>& shape = before_.inputs[input].shape;
  const Axis axis = choices_[input].axis;
  return axis == Axis::kNone
             ? 1
             : static_cast<std::size_t>(axis == Axis::kFirst ? shape.front() : shape.back());
}

LinearScaler::Fits LinearScaler::start() const {
  Fits fits;
  for (std::size_t i = 0; i < choices_.size(); ++i)
    fits.inputs.push_back(choices_[i].is_chosen ? start_fit(lines_in(i)) : nullptr);
  for (std::size_t i = 0; i < chosen_targets_.size(); ++i) {
    const auto width = static_cast<std::size_t>(before_.targets[i].width());
    fits.targets.push_back(chosen_targets_[i].is_chosen ? start_fit(width) : nullptr);
  }
  return fits;
}

void LinearScaler::add(const Batch& batch, Fits& fits) const {
  for (std::size_t i = 0; i < fits.inputs.size(); ++i) {
    if (fits.inputs[i] == nullptr)
      continue;
    const at::Tensor values = without_padding(batch.inputs[i], batch, choices_[i].lengths);
    fits.inputs[i]->add(
        choices_[i].axis == Axis::kFirst  ? as_table(values.movedim(1, -1), batch.inputs[i].size(1))
        : choices_[i].axis == Axis::kLast ? as_table(values, batch.inputs[i].size(-1))
                                          : as_table(values, 1));
  }
  for (std::size_t i = 0; i < fits.targets.size(); ++i) {
    if (fits.targets[i] != nullptr)
      fits.targets[i]->add(as_table(counted_values(batch, i, chosen_targets_[i].lengths),
                                    batch.targets[i].size(-1)));
  }
}

void LinearScaler::Fits::join(const Fits& more) {
  for (const auto part : {&Fits::inputs, &Fits::targets}) {
    for (std::size_t i = 0; i < (this->*part).size(); ++i) {
      if ((this->*part)[i] != nullptr)
        (this->*part)[i]->join(*(more.*part)[i]);
    }
  }
}

std::vector<LinearScaler::Fits> LinearScaler::fitted(const RowReader& reader, const RowList& rows) {
  std::vector<Fits> by_place;
  if (!by_group_) {
    by_place.push_back(start());
    for_each_chunk(
        reader, rows, [&](const Batch& batch) { add(batch, by_place.front()); },
        rows_at_a_time(reader.spec()));
    return by_place;
  }
  std::map<std::int64_t, Fits> fits;
  const auto add_runs = [&](const Batch& batch) {
    // Rows of a group mostly follow one another.
    const auto* const group = batch.groups.data_ptr<std::int64_t>();
    for (std::int64_t begin = 0, end = 0; begin < batch.size(); begin = end) {
      while (end < batch.size() && group[end] == group[begin])
        ++end;
      auto found = fits.find(group[begin]);
      if (found == fits.end()) {
        found = fits.emplace(group[begin], start()).first;
        found->second.first_row = batch.rows[begin].item<std::int64_t>();
      }
      add(batch.slice(begin, end - begin), found->second);
    }
  };
  expect_groups(reader.groups(), columns_.component());
  for_each_chunk(reader, rows, add_runs, rows_at_a_time(reader.spec()));
  std::vector<std::int64_t> groups;
  Fits overall = start();
  for (auto& [group, fit] : fits) {
    groups.push_back(group);
    if (has_overall_)
      overall.join(fit);
    by_place.push_back(std::move(fit));
  }
  if (has_overall_)
    by_place.push_back(std::move(overall));
  places_ = GroupPlaces(std::move(groups), has_overall_);
  return by_place;
}

// A column without numbers stays as it is; that of a group needs numbers, or those of all groups.
Line LinearScaler::line_of(const std::vector<Fits>& by_place, std::size_t place, FitsOfPart part,
                           std::size_t index, std::size_t column, const RowReader& reader) const {
  std::optional<Line> line = (by_place[place].*part)[index]->line(column);
  if (line || !by_group_)
    return line.value_or(Line());
  if (has_overall_)
    return (by_place.back().*part)[index]->line(column).value_or(Line());
  const bool is_input = part == &Fits::inputs;
  const std::vector<Column> columns =
      is_input ? before_.inputs[index].columns : std::vector<Column>();
  throw DataError(columns_.component() + ": " +
                  (columns.empty()
                       ? (is_input ? "input " + quote_text(before_.inputs[index].name)
                                   : "target " + quote_text(before_.targets[index].name))
                       : "column " + quote_text(columns[column].name)) +
                  " has no number in the training rows of the group that " +
                  reader.describe_row(by_place[place].first_row) +
                  " is of; leave the group out, or set \"handle_unknown\": \"overall\"");
}

void LinearScaler::do_fit(const RowReader& reader, const RowList& training_rows) {
  prepare(reader.spec());
  // A row that is in many samples counts once: the statistics are those of the data.
  const SampleReader* const samples = reader.samples();
  const RowReader* const steps = samples != nullptr ? samples->steps() : nullptr;
  const bool by_step =
      steps != nullptr && std::all_of(choices_.begin(), choices_.end(), [](const Choice& choice) {
        return choice.axis != Axis::kFirst;
      });
  const RowReader& source = by_step ? *steps : reader;
  const std::vector<Fits> by_place =
      fitted(source, by_step ? touched_rows(*samples, training_rows) : training_rows);
  const auto lines_of = [&](FitsOfPart part, std::size_t index, std::size_t count,
                            const std::vector<bool>& chosen) {
    std::vector<Line> lines;
    for (std::size_t place = 0; place < by_place.size(); ++place) {
      for (std::size_t c = 0; c < count; ++c) {
        lines.push_back(chosen.empty() || chosen[c]
                            ? line_of(by_place, place, part, index, c, source)
                            : Line());
      }
    }
    return lines;
  };
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (choices_[i].is_chosen)
      inputs_[i] = Lines(lines_of(&Fits::inputs, i, lines_in(i), choices_[i].columns), places_,
                         choices_[i].dimension());
  }
  for (std::size_t i = 0; i < chosen_targets_.size(); ++i) {
    const auto width = static_cast<std::size_t>(before_.targets[i].width());
    if (chosen_targets_[i].is_chosen)
      targets_[i] = Lines(lines_of(&Fits::targets, i, width, {}), places_, Lines::Dimension::kLast);
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
  const at::Tensor places = places_.of(batch.groups, columns_.component());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].defined())
      continue;
    at::Tensor& values = batch.inputs[i];
    inputs_[i].apply(values, places);
    if (choices_[i].lengths)
      values.masked_fill_(padding_of(values, batch.inputs[*choices_[i].lengths]), 0);
  }
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    if (!targets_.at(i).defined())
      continue;
    // The original targets are the same tensor, and metrics need them.
    batch.targets[i] = batch.targets[i].clone();
    targets_[i].apply(batch.targets[i], places);
  }
}

at::Tensor LinearScaler::do_invert(const at::Tensor& predictions, std::string_view target) const {
  return do_invert_groups(predictions, target, {});
}

at::Tensor LinearScaler::do_invert_groups(const at::Tensor& predictions, std::string_view target,
                                          const at::Tensor& groups) const {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (before_.targets[i].name == target && targets_[i].defined())
      return targets_[i].inverted(predictions, places_.of(groups, columns_.component()));
  }
  return predictions;
}

void* LinearScaler::do_ask(std::string_view interface_id) {
  return by_group_ && interface_id == FitsGroups::kInterface ? static_cast<FitsGroups*>(this)
                                                             : nullptr;
}

at::Tensor LinearScaler::do_groups() const {
  return at::tensor(places_.groups(), at::kLong);
}

StateDict LinearScaler::do_state() const {
  StateDict state;
  state.put("before", to_json(before_));
  if (by_group_)
    state.put("groups", do_groups());
  const auto put = [&](const char* of, const std::vector<Lines>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].defined()) {
        state.put(line_key(of, i, "shift"), all[i].shift());
        state.put(line_key(of, i, "scale"), all[i].scale());
      }
    }
  };
  put("input", inputs_);
  put("target", targets_);
  return state;
}

void LinearScaler::do_load_state(const StateDict& state) {
  prepare(data_spec_from_json(state.value("before")));
  if (by_group_) {
    const at::Tensor groups = state.tensor("groups").to(at::kLong).contiguous();
    const auto* const begin = groups.data_ptr<std::int64_t>();
    if (!std::is_sorted(begin, begin + groups.numel()))
      throw StorageError("saved groups must ascend");
    places_ = GroupPlaces({begin, begin + groups.numel()}, has_overall_);
  }
  const auto saved = [&](const char* of, std::size_t i, Lines::Dimension dimension) {
    return Lines(state.tensor(line_key(of, i, "shift")), state.tensor(line_key(of, i, "scale")),
                 places_, dimension);
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (choices_[i].is_chosen)
      inputs_[i] = saved("input", i, choices_[i].dimension());
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (chosen_targets_[i].is_chosen)
      targets_[i] = saved("target", i, Lines::Dimension::kLast);
  }
}

std::unique_ptr<LineFit> Standardize::start_fit(std::size_t columns) const {
  return std::make_unique<StatisticsFit>(columns, [](const ColumnStatistics& column) {
    return Line{column.mean, column.is_constant() ? 1 : 1 / std::sqrt(column.variance())};
  });
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

std::unique_ptr<LineFit> MinMax::start_fit(std::size_t columns) const {
  return std::make_unique<StatisticsFit>(
      columns, [lower = lower_, upper = upper_](const ColumnStatistics& column) {
        const double extent = column.maximum - column.minimum;
        const double scale = (upper - lower) / (extent > 0 ? extent : 1);
        return Line{column.minimum - lower / scale, scale};
      });
}

Robust::Robust(const Config& config) : LinearScaler(config, "robust") {
  if (!config.has("quantile_range"))
    return;
  const auto range = config.get<std::vector<double>>("quantile_range");
  if (range.size() != 2 || !(range[0] < range[1]))
    config.fail("quantile_range", "must have a lower and an upper percentage, the lower one first");
  lower_ = range[0] / 100;
  upper_ = range[1] / 100;
}

std::unique_ptr<LineFit> Robust::start_fit(std::size_t /*columns*/) const {
  return std::make_unique<QuantileFit>(lower_, upper_);
}

}  // namespace treadle::transforms
