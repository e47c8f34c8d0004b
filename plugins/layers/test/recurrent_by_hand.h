#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <treadle/testing/model/layer_contract.h>

namespace treadle::testing {

/// rnn, gru and lstm by the equations of torch.nn's pages, one step after the other, and sequences
/// with lengths one row after the other.
class RecurrentByHand {
 public:
  RecurrentByHand(std::string kind, const nlohmann::json& parameters)
      : kind_(std::move(kind)),
        layers_(parameters.value("num_layers", 1)),
        both_(parameters.value("bidirectional", false)),
        only_last_(!parameters.value("return_sequences", true)),
        dropout_(parameters.value("dropout", 0.0)) {}

  at::Tensor operator()(const Layer& layer, const std::vector<at::Tensor>& inputs,
                        const HandOn& hand_on) const {
    if (inputs.size() == 1)
      return over(layer, inputs[0], hand_on);
    std::vector<at::Tensor> rows;
    for (std::int64_t row = 0; row < inputs[0].size(0); ++row) {
      const auto length = inputs[1][row].item<std::int64_t>();
      const at::Tensor own = over(layer, inputs[0].narrow(0, row, 1).narrow(1, 0, length), hand_on);
      rows.push_back(only_last_ ? own
                                : at::constant_pad_nd(own, {0, 0, 0, inputs[0].size(1) - length}));
    }
    return at::cat(rows, 0);
  }

  /// The last state of each layer and direction, [B, layers · directions, units]; of an lstm hidden
  /// and cell side by side.
  at::Tensor last_states(const Layer& layer, const std::vector<at::Tensor>& inputs) const {
    const auto whole = [](const at::Tensor& state) { return state; };
    std::vector<at::Tensor> rows;
    for (std::int64_t row = 0; row < inputs[0].size(0); ++row) {
      const std::int64_t length =
          inputs.size() == 1 ? inputs[0].size(1) : inputs[1][row].item<std::int64_t>();
      std::vector<at::Tensor> states;
      over(layer, inputs[0].narrow(0, row, 1).narrow(1, 0, length), whole, &states);
      rows.push_back(at::stack(states, 1));
    }
    return at::cat(rows, 0);
  }

 private:
  at::Tensor over(const Layer& layer, const at::Tensor& x, const HandOn& hand_on,
                  std::vector<at::Tensor>* states = nullptr) const {
    const std::vector<at::Tensor> weights = layer.parameters();
    auto next = weights.begin();
    at::Tensor given = x.transpose(0, 1);
    std::vector<at::Tensor> ends;
    for (int i = 0; i < layers_; ++i) {
      if (i > 0 && dropout_ > 0)
        given = at::dropout(given, dropout_, layer.is_training());
      std::vector<at::Tensor> sequences;
      ends.clear();
      for (int direction = 0; direction < (both_ ? 2 : 1); ++direction, next += 4) {
        const at::Tensor read = direction == 1 ? given.flip(0) : given;
        std::vector<at::Tensor> hidden;
        at::Tensor state;
        for (std::int64_t time = 0; time < read.size(0); ++time) {
          state = after(read[time], state.defined() ? hand_on(state) : state, &*next);
          hidden.push_back(state.narrow(1, 0, next[1].size(1)));
        }
        ends.push_back(hidden.back());
        if (states != nullptr)
          states->push_back(state);
        const at::Tensor sequence = at::stack(hidden);
        sequences.push_back(direction == 1 ? sequence.flip(0) : sequence);
      }
      given = at::cat(sequences, 2);
    }
    return only_last_ ? at::cat(ends, 1) : given.transpose(0, 1);
  }

  /// `w`: weight_ih, weight_hh, bias_ih, bias_hh. The state of an lstm is hidden and cell.
  at::Tensor after(const at::Tensor& x, at::Tensor state, const at::Tensor* w) const {
    const std::int64_t units = w[1].size(1);
    if (!state.defined())
      state = at::zeros({x.size(0), kind_ == "lstm" ? 2 * units : units}, x.options());
    const at::Tensor hidden = state.narrow(1, 0, units);
    const at::Tensor of_x = at::linear(x, w[0], w[2]);
    const at::Tensor of_state = at::linear(hidden, w[1], w[3]);
    if (kind_ == "rnn")
      return of_x.add(of_state).tanh();
    if (kind_ == "gru") {
      const auto ours = of_x.chunk(3, 1);
      const auto theirs = of_state.chunk(3, 1);
      const at::Tensor reset = at::sigmoid(ours[0].add(theirs[0]));
      const at::Tensor update = at::sigmoid(ours[1].add(theirs[1]));
      const at::Tensor fresh = ours[2].add(reset.mul(theirs[2])).tanh();
      return update.mul(hidden).add(update.neg().add(1).mul(fresh));
    }
    const auto gates = of_x.add(of_state).chunk(4, 1);
    const at::Tensor cell = at::sigmoid(gates[1])
                                .mul(state.narrow(1, units, units))
                                .add(at::sigmoid(gates[0]).mul(gates[2].tanh()));
    return at::cat({at::sigmoid(gates[3]).mul(cell.tanh()), cell}, 1);
  }

  std::string kind_;
  int layers_;
  bool both_;
  bool only_last_;
  double dropout_;
};

}  // namespace treadle::testing
