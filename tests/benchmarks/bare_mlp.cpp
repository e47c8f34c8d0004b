// The loop that people write by hand for mlp_small.json and mlp_large.json: the same model, numbers of rows, batches and
// optimizer, and nothing beside them. Prints its microseconds per step.
//   bare-mlp small|large [threads of an operator, default 1]
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace {

struct Workload {
  std::int64_t inputs;
  std::int64_t hidden;
  std::int64_t outputs;  // 1: numbers, else classes
  std::int64_t rows;
  std::int64_t batch;
  int epochs;
};

// Four fifths of the documents' rows: the others judge.
constexpr Workload kSmall{32, 64, 1, 51200, 32, 10};
constexpr Workload kLarge{128, 512, 10, 32768, 1024, 5};

struct Net : torch::nn::Module {
  explicit Net(const Workload& workload)
      : first(register_module("first", torch::nn::Linear(workload.inputs, workload.hidden))),
        second(register_module("second", torch::nn::Linear(workload.hidden, workload.hidden))),
        last(register_module("last", torch::nn::Linear(workload.hidden, workload.outputs))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    return last(torch::relu(second(torch::relu(first(x)))));
  }
  torch::nn::Linear first;
  torch::nn::Linear second;
  torch::nn::Linear last;
};

}  // namespace

int main(int argument_count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + argument_count);
  if (words.empty() || (words[0] != "small" && words[0] != "large")) {
    std::cerr << "usage: bare-mlp small|large [THREADS]\n";
    return 2;
  }
  const Workload workload = words[0] == "small" ? kSmall : kLarge;
  at::set_num_threads(words.size() > 1 ? std::atoi(words[1].c_str()) : 1);
  torch::manual_seed(1);
  const bool classes = workload.outputs > 1;
  const torch::Tensor inputs = torch::rand({workload.rows, workload.inputs});
  const torch::Tensor targets = classes ? torch::randint(workload.outputs, {workload.rows}, torch::kLong)
                                        : torch::rand({workload.rows, 1});
  Net net(workload);
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(0.001));

  const auto start = std::chrono::steady_clock::now();
  double loss_sum = 0;
  for (int epoch = 0; epoch < workload.epochs; ++epoch) {
    const torch::Tensor order = torch::randperm(workload.rows);
    for (std::int64_t begin = 0; begin < workload.rows; begin += workload.batch) {
      const torch::Tensor rows = order.narrow(0, begin, workload.batch);
      optimizer.zero_grad();
      const torch::Tensor output = net.forward(inputs.index_select(0, rows));
      const torch::Tensor wanted = targets.index_select(0, rows);
      const torch::Tensor loss = classes ? torch::nn::functional::cross_entropy(output, wanted)
                                         : torch::nn::functional::mse_loss(output, wanted);
      loss.backward();
      optimizer.step();
      loss_sum += loss.item<double>();
    }
  }
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  const std::int64_t steps = workload.epochs * (workload.rows / workload.batch);
  std::cout << time.count() / static_cast<double>(steps) << "\n";
  return loss_sum > 0 ? 0 : 1;
}
