#pragma once

#include <cstdint>
#include <tuple>

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

namespace treadle::benchmarks {

/// One layer of libtorch's LSTM; a linear layer makes the outputs of its last state. Takes
/// [B, steps, features], gives [B, outputs].
class Lstm final : public torch::nn::Module {
 public:
  Lstm(std::int64_t features, std::int64_t hidden, std::int64_t outputs)
      : lstm_(register_module(
            "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(features, hidden).batch_first(true)))),
        output_(register_module("output", torch::nn::Linear(hidden, outputs))) {}

  at::Tensor forward(const at::Tensor& sequences) {
    const at::Tensor last = std::get<0>(std::get<1>(lstm_->forward(sequences)));
    return output_->forward(last.select(0, 0));
  }

 private:
  torch::nn::LSTM lstm_;
  torch::nn::Linear output_;
};

}  // namespace treadle::benchmarks
