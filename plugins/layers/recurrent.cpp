#include "recurrent.h"

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <ATen/ops/_pack_padded_sequence.h>
#include <ATen/ops/_pad_packed_sequence.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/gru_cell.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/lstm_cell.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/rnn_tanh_cell.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>

#include "padding.h"

namespace treadle::layers {
namespace {

constexpr std::string_view kHidden = "h_n";
constexpr std::string_view kCell = "c_n";

template <Recurrence kRecurrence>
constexpr std::int64_t rows_per_unit() {
  return kRecurrence == Recurrence::kLstm ? 4 : kRecurrence == Recurrence::kGru ? 3 : 1;
}

/// U(-1/√units, 1/√units), as all weights of PyTorch's recurrent modules begin.
at::Tensor drawn(const std::vector<std::int64_t>& sizes, std::int64_t units,
                 c10::ScalarType dtype) {
  const at::NoGradGuard no_gradients;
  const double bound = 1 / std::sqrt(static_cast<double>(units));
  return at::empty(sizes, dtype).uniform_(-bound, bound);
}

/// As "init" wants them, where that is not what drawn() gives. xavier_normal: each matrix of each
/// gate by Glorot and Bengio (2010), biases 0, and those of the forget gate 1, by Jozefowicz et
/// al., "An Empirical Exploration of Recurrent Network Architectures" (2015). Gates stand as i, f,
/// g, o.
template <Recurrence kRecurrence>
void reinitialise(const Config& config, std::span<const at::Tensor> weights, std::int64_t units) {
  if (config.get<std::string>("init") == "pytorch")
    return;
  const at::NoGradGuard no_gradients;
  for (const at::Tensor& weight : weights.first(2)) {
    // Gates draw alike and independently, so all at once.
    const double fans = static_cast<double>(weight.size(1) + units);
    weight.normal_(0, std::sqrt(2 / fans));
  }
  weights[2].zero_();
  weights[3].zero_();
  if constexpr (kRecurrence == Recurrence::kLstm)
    weights[2].narrow(0, units, units).fill_(1);
}

/// [B, units] each. `cell`: of an lstm.
struct State {
  at::Tensor hidden;
  at::Tensor cell;
};

/// `weights`: of one layer and direction: weight_ih, weight_hh, bias_ih, bias_hh.
template <Recurrence kRecurrence>
State after_step(const at::Tensor& x, const State& before, std::span<const at::Tensor> weights) {
  if constexpr (kRecurrence == Recurrence::kLstm) {
    auto [hidden, cell] = at::lstm_cell(x, {before.hidden, before.cell}, weights[0], weights[1],
                                        weights[2], weights[3]);
    return {std::move(hidden), std::move(cell)};
  } else if constexpr (kRecurrence == Recurrence::kGru) {
    return {at::gru_cell(x, before.hidden, weights[0], weights[1], weights[2], weights[3]), {}};
  } else {
    return {at::rnn_tanh_cell(x, before.hidden, weights[0], weights[1], weights[2], weights[3]),
            {}};
  }
}

at::Tensor detached(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach() : tensor;
}

/// `next` where a row goes on, else what there was: with its gradient, for a row's last state is
/// that of its own last step.
at::Tensor carried(const at::Tensor& goes_on, const at::Tensor& next, const at::Tensor& before) {
  return next.defined() ? at::where(goes_on, next, before) : next;
}

/// One layer in one direction over [T, B, in]: [T, B, units], and the last state. Each step takes
/// the state before it as a number. `goes_on`: [T, B, 1], false in padding; undefined: no padding.
template <Recurrence kRecurrence>
std::pair<at::Tensor, State> cut_at_steps(const at::Tensor& x, const at::Tensor& goes_on,
                                          bool backwards, std::span<const at::Tensor> weights) {
  const std::int64_t steps = x.size(0);
  const at::Tensor zeros = at::zeros({x.size(1), weights[1].size(1)}, x.options());
  State state{zeros, kRecurrence == Recurrence::kLstm ? zeros : at::Tensor()};
  std::vector<at::Tensor> sequence(static_cast<std::size_t>(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t time = backwards ? steps - 1 - i : i;
    State next =
        after_step<kRecurrence>(x[time], {detached(state.hidden), detached(state.cell)}, weights);
    at::Tensor& given = sequence[static_cast<std::size_t>(time)];
    if (goes_on.defined()) {
      given = next.hidden.masked_fill(goes_on[time].logical_not(), 0);
      state = {carried(goes_on[time], next.hidden, state.hidden),
               carried(goes_on[time], next.cell, state.cell)};
    } else {
      given = next.hidden;
      state = std::move(next);
    }
  }
  return {at::stack(sequence), std::move(state)};
}

/// Dropout between layers, [T, B, width], with the numbers that libtorch draws: of packed sequences
/// it drops out what is packed.
at::Tensor dropped_out(const at::Tensor& x, const at::Tensor& lengths, double rate) {
  if (!lengths.defined())
    return at::dropout(x, rate, /*train=*/true);
  const auto [data, sizes] = at::_pack_padded_sequence(x, lengths.cpu(), /*batch_first=*/false);
  return std::get<0>(at::_pad_packed_sequence(at::dropout(data, rate, /*train=*/true), sizes,
                                              /*batch_first=*/false, /*padding_value=*/0.0,
                                              /*total_length=*/x.size(0)));
}

}  // namespace

template <Recurrence kRecurrence>
RecurrentCell<kRecurrence>::RecurrentCell(const Config& config, const LayerSpec& spec)
    : units_(config.get<std::int64_t>("hidden_size")) {
  if (spec.inputs.size() > 2)
    throw DataError("takes the stream and one state, got " + std::to_string(spec.inputs.size()) +
                    " inputs");
  const std::int64_t in = expect_dimensions(spec, 2, "rows of numbers [B, width]").width();
  const std::int64_t rows = rows_per_unit<kRecurrence>() * units_;
  weight_ih_ = register_parameter("weight_ih", drawn({rows, in}, units_, spec.dtype));
  weight_hh_ = register_parameter("weight_hh", drawn({rows, units_}, units_, spec.dtype));
  bias_ih_ = register_parameter("bias_ih", drawn({rows}, units_, spec.dtype));
  bias_hh_ = register_parameter("bias_hh", drawn({rows}, units_, spec.dtype));
  reinitialise<kRecurrence>(config, std::array{weight_ih_, weight_hh_, bias_ih_, bias_hh_}, units_);
}

template <Recurrence kRecurrence>
at::Tensor RecurrentCell<kRecurrence>::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& x = inputs[0];
  constexpr std::int64_t kParts = kRecurrence == Recurrence::kLstm ? 2 : 1;
  at::Tensor state = inputs.size() > 1 ? inputs[1] : at::Tensor();
  if (!state.defined())
    state = at::zeros({x.size(0), kParts * units_}, x.options());
  const std::array weights{weight_ih_, weight_hh_, bias_ih_, bias_hh_};
  if constexpr (kRecurrence == Recurrence::kLstm) {
    if (state.size(-1) != kParts * units_) {
      throw DataError("the state of an lstm_cell is [B, " + std::to_string(kParts * units_) +
                      "] (hidden and cell), got " + TensorSpec::of(state).text());
    }
    const std::vector<at::Tensor> hidden_and_cell = state.chunk(2, 1);
    const State next =
        after_step<kRecurrence>(x, {hidden_and_cell[0], hidden_and_cell[1]}, weights);
    return at::cat({next.hidden, next.cell}, 1);
  } else {
    return after_step<kRecurrence>(x, {state, {}}, weights).hidden;
  }
}

template <Recurrence kRecurrence>
Recurrent<kRecurrence>::Recurrent(const Config& config, const LayerSpec& spec)
    : units_(config.get<std::int64_t>("hidden_size")),
      layers_(config.get<std::int64_t>("num_layers")),
      dropout_(config.get<double>("dropout")),
      both_(config.get<bool>("bidirectional")),
      only_last_(!config.get<bool>("return_sequences")) {
  if (const auto reference = padding_reference(spec);
      reference && spec.inputs[*reference].dtype != c10::ScalarType::Long)
    throw DataError("takes the lengths of its sequences, [B] int64, as its reference, got " +
                    spec.inputs[*reference].text());
  std::int64_t in = expect_dimensions(spec, 3, "sequences [B, length, width]").width();
  const std::int64_t rows = rows_per_unit<kRecurrence>() * units_;
  for (std::int64_t layer = 0; layer < layers_; ++layer) {
    for (int direction = 0; direction < (both_ ? 2 : 1); ++direction) {
      const std::string suffix = "_l" + std::to_string(layer) + (direction == 1 ? "_reverse" : "");
      const auto add = [&](const std::string& name, const std::vector<std::int64_t>& sizes) {
        weights_.push_back(register_parameter(name + suffix, drawn(sizes, units_, spec.dtype)));
      };
      add("weight_ih", {rows, in});
      add("weight_hh", {rows, units_});
      add("bias_ih", {rows});
      add("bias_hh", {rows});
      reinitialise<kRecurrence>(config, std::span<const at::Tensor>(weights_).last(4), units_);
    }
    in = units_ * (both_ ? 2 : 1);
  }
}

// A gru over 96 steps makes some 11 000 calls, forward and backward; the others by the number of
// their operations beside it.
template <Recurrence kRecurrence>
double Recurrent<kRecurrence>::calls_per_time_step() const {
  constexpr double kCalls = kRecurrence == Recurrence::kTanh  ? 60
                            : kRecurrence == Recurrence::kGru ? 115
                                                              : 130;
  return kCalls * static_cast<double>(layers_ * (both_ ? 2 : 1));
}

template <Recurrence kRecurrence>
auto Recurrent<kRecurrence>::over_all(const at::Tensor& x) const -> Result {
  const at::Tensor zeros = at::zeros({layers_ * (both_ ? 2 : 1), x.size(0), units_}, x.options());
  const bool training = is_training();
  Result result;
  constexpr bool kBatchFirst = true;
  if constexpr (kRecurrence == Recurrence::kLstm) {
    const std::vector<at::Tensor> state{zeros, zeros};
    std::tie(result.sequence, result.hidden, result.cell) = at::lstm(
        x, state, weights_, /*has_biases=*/true, layers_, dropout_, training, both_, kBatchFirst);
  } else if constexpr (kRecurrence == Recurrence::kGru) {
    std::tie(result.sequence, result.hidden) =
        at::gru(x, zeros, weights_, true, layers_, dropout_, training, both_, kBatchFirst);
  } else {
    std::tie(result.sequence, result.hidden) =
        at::rnn_tanh(x, zeros, weights_, true, layers_, dropout_, training, both_, kBatchFirst);
  }
  return result;
}

template <Recurrence kRecurrence>
auto Recurrent<kRecurrence>::over_packed(const at::Tensor& x, const at::Tensor& lengths) const
    -> Result {
  const auto [data, sizes] = at::_pack_padded_sequence(x, lengths.cpu(), /*batch_first=*/true);
  const at::Tensor zeros = at::zeros({layers_ * (both_ ? 2 : 1), x.size(0), units_}, x.options());
  const bool training = is_training();
  at::Tensor packed;
  Result result;
  if constexpr (kRecurrence == Recurrence::kLstm) {
    const std::vector<at::Tensor> state{zeros, zeros};
    std::tie(packed, result.hidden, result.cell) = at::lstm(
        data, sizes, state, weights_, /*has_biases=*/true, layers_, dropout_, training, both_);
  } else if constexpr (kRecurrence == Recurrence::kGru) {
    std::tie(packed, result.hidden) =
        at::gru(data, sizes, zeros, weights_, true, layers_, dropout_, training, both_);
  } else {
    std::tie(packed, result.hidden) =
        at::rnn_tanh(data, sizes, zeros, weights_, true, layers_, dropout_, training, both_);
  }
  result.sequence = std::get<0>(at::_pad_packed_sequence(
      packed, sizes, /*batch_first=*/true, /*padding_value=*/0.0, /*total_length=*/x.size(1)));
  return result;
}

template <Recurrence kRecurrence>
auto Recurrent<kRecurrence>::step_by_step(const at::Tensor& x, const at::Tensor& lengths) const
    -> Result {
  at::Tensor given = x.transpose(0, 1);
  at::Tensor goes_on;
  if (lengths.defined()) {
    goes_on = real_positions(lengths, x.size(1)).t().unsqueeze(2);
    // Whatever stands there, its slopes times zero are zero.
    given = given.masked_fill(goes_on.logical_not(), 0);
  }
  constexpr std::size_t kWeights = 4;
  const std::span<const at::Tensor> weights(weights_);
  std::vector<at::Tensor> hidden;
  std::vector<at::Tensor> cells;
  for (std::int64_t layer = 0; layer < layers_; ++layer) {
    if (layer > 0 && dropout_ > 0 && is_training())
      given = dropped_out(given, lengths, dropout_);
    std::vector<at::Tensor> directions;
    for (const bool backwards : {false, true}) {
      if (backwards && !both_)
        continue;
      auto [sequence, state] = cut_at_steps<kRecurrence>(
          given, goes_on, backwards, weights.subspan(hidden.size() * kWeights, kWeights));
      directions.push_back(std::move(sequence));
      hidden.push_back(std::move(state.hidden));
      cells.push_back(std::move(state.cell));
    }
    given = both_ ? at::cat(directions, 2) : directions.front();
  }
  return {given.transpose(0, 1), at::stack(hidden),
          kRecurrence == Recurrence::kLstm ? at::stack(cells) : at::Tensor()};
}

template <Recurrence kRecurrence>
auto Recurrent<kRecurrence>::over_lengths(const at::Tensor& x, const at::Tensor& lengths,
                                          bool by_steps) const -> Result {
  // Rows by falling length, as libtorch packs them. Packing has no empty rows: they are cleared.
  const auto [sorted, order] = at::sort(lengths.clamp(1, x.size(1)), /*stable=*/true, /*dim=*/0,
                                        /*descending=*/true);
  const at::Tensor rows = x.index_select(0, order);
  const Result result = by_steps ? step_by_step(rows, sorted) : over_packed(rows, sorted);
  const at::Tensor place = order.argsort();
  const at::Tensor empty = lengths.lt(1).view({-1, 1});
  const auto in_order = [&](const at::Tensor& state) {
    return state.defined() ? state.index_select(1, place).masked_fill(empty, 0) : state;
  };
  return {result.sequence.index_select(0, place).masked_fill(empty.unsqueeze(2), 0),
          in_order(result.hidden), in_order(result.cell)};
}

template <Recurrence kRecurrence>
at::Tensor Recurrent<kRecurrence>::forward(const Inputs& inputs, LayerContext& context) {
  const bool by_steps = context.truncates_bptt() && at::GradMode::is_enabled();
  const Result result = inputs.size() > 1 ? over_lengths(inputs[0], inputs[1], by_steps)
                        : by_steps        ? step_by_step(inputs[0], {})
                                          : over_all(inputs[0]);
  if (context.is_requested(kHidden))
    context.set_output(kHidden, result.hidden.transpose(0, 1));
  if (context.is_requested(kCell))
    context.set_output(kCell, result.cell.transpose(0, 1));
  if (!only_last_)
    return result.sequence;
  const at::Tensor& last = result.hidden;
  return both_ ? at::cat({last[last.size(0) - 2], last[last.size(0) - 1]}, 1)
               : last[last.size(0) - 1];
}

template <Recurrence kRecurrence>
std::vector<std::string> Recurrent<kRecurrence>::output_names() const {
  std::vector<std::string> names{std::string(kHidden)};
  if constexpr (kRecurrence == Recurrence::kLstm)
    names.emplace_back(kCell);
  return names;
}

template class RecurrentCell<Recurrence::kTanh>;
template class RecurrentCell<Recurrence::kGru>;
template class RecurrentCell<Recurrence::kLstm>;
template class Recurrent<Recurrence::kTanh>;
template class Recurrent<Recurrence::kGru>;
template class Recurrent<Recurrence::kLstm>;

}  // namespace treadle::layers
