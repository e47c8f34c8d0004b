// The loop that people write by hand for mlp_small.json: the same model, rows, batches and optimizer, and nothing
// beside them. Prints its microseconds per step.
#include <chrono>
#include <iostream>

#include <ATen/Parallel.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace {

struct Net : torch::nn::Module {
  Net() {
    register_module("first", first);
    register_module("second", second);
    register_module("last", last);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return last(torch::relu(second(torch::relu(first(x)))));
  }
  torch::nn::Linear first{32, 64};
  torch::nn::Linear second{64, 64};
  torch::nn::Linear last{64, 1};
};

}  // namespace

int main() {
  constexpr std::int64_t kRows = 51200;  // four fifths of 64000
  constexpr std::int64_t kBatch = 32;
  constexpr int kEpochs = 10;
  at::set_num_threads(1);  // at this size a team of threads is slower
  torch::manual_seed(1);
  const torch::Tensor inputs = torch::rand({kRows, 32});
  const torch::Tensor targets = torch::rand({kRows, 1});
  Net net;
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(0.001));

  const auto start = std::chrono::steady_clock::now();
  double loss_sum = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const torch::Tensor order = torch::randperm(kRows);
    for (std::int64_t begin = 0; begin < kRows; begin += kBatch) {
      const torch::Tensor rows = order.narrow(0, begin, kBatch);
      optimizer.zero_grad();
      const torch::Tensor loss = torch::nn::functional::mse_loss(
          net.forward(inputs.index_select(0, rows)), targets.index_select(0, rows));
      loss.backward();
      optimizer.step();
      loss_sum += loss.item<double>();
    }
  }
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  constexpr std::int64_t kSteps = kEpochs * (kRows / kBatch);
  std::cout << time.count() / static_cast<double>(kSteps) << "\n";
  return loss_sum > 0 ? 0 : 1;
}
