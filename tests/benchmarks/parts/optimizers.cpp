// One update of six tensors of the same size, together of 1 k to 10 M float32, given their
// gradients; beside the optimizer of libtorch that computes the same, where it has one. Large ones
// also with two workers, and libtorch's with two threads.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/rand.h>
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <treadle/core/training/optimizer.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/host/run/runtime.h>

#include "parts.h"

namespace treadle::benchmarks {
namespace {

constexpr int kTensors = 6;
constexpr double kRate = 1e-3;
constexpr std::int64_t kLarge = 1'000'000;  // from here on with two workers, too

using Parameters = std::vector<at::Tensor>;
using MakeTorch = std::function<std::unique_ptr<torch::optim::Optimizer>(Parameters)>;

struct Pair {
  std::string name;
  nlohmann::json parameters;
  MakeTorch make_torch;  ///< empty: libtorch has none
};

template <typename Torch, typename Options>
MakeTorch torch_with(Options options) {
  return [options](Parameters parameters) {
    return std::make_unique<Torch>(std::move(parameters), options);
  };
}

std::vector<Pair> pairs() {
  using namespace torch::optim;
  const nlohmann::json defaults = nlohmann::json::object();
  return {{"sgd", {{"momentum", 0.9}}, torch_with<SGD>(SGDOptions(kRate).momentum(0.9))},
          {"adam", defaults, torch_with<Adam>(AdamOptions(kRate))},
          {"adamw", defaults, torch_with<AdamW>(AdamWOptions(kRate))},
          {"rmsprop", defaults, torch_with<RMSprop>(RMSpropOptions(kRate))},
          {"adagrad", defaults, torch_with<Adagrad>(AdagradOptions(kRate))},
          {"lion", defaults, {}},
          {"lamb", defaults, {}}};
}

std::shared_ptr<torch::nn::Module> make_module(std::int64_t parameters) {
  auto module = std::make_shared<torch::nn::Module>("Module");
  for (int i = 0; i < kTensors; ++i)
    module->register_parameter("weight" + std::to_string(i),
                               at::rand({(parameters + kTensors - 1) / kTensors}));
  return module;
}

void fill_gradients(const Parameters& parameters) {
  const at::NoGradGuard no_gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined())
      parameter.grad().uniform_(-1, 1);
    else
      parameter.mutable_grad() = at::rand(parameter.sizes()).mul_(2).sub_(1);
  }
}

void update_with_treadle(benchmark::State& state, const Optimizer& optimizer) {
  const auto module = make_module(state.range(0));
  ParameterArena arena(*module);
  OptimizerSlots slots(optimizer.slots(), arena);
  arena.zero_gradients();
  fill_gradients(module->parameters());
  arena.collect();
  ParameterView view(arena, slots);
  std::int64_t step = 0;
  engine::ThreadBudget budget(static_cast<int>(state.range(1)));
  budget.run([&] {
    for (auto _ : state) {
      view.begin_step({.step = ++step, .learning_rate = kRate, .gradient_scale = 1});
      optimizer.update(view);
    }
  });
}

void update_with_torch(benchmark::State& state, const MakeTorch& make) {
  at::set_num_threads(static_cast<int>(state.range(1)));
  const auto module = make_module(state.range(0));
  fill_gradients(module->parameters());
  const auto optimizer = make(module->parameters());
  for (auto _ : state)
    optimizer->step();
  at::set_num_threads(1);
}

template <typename Benchmark>
void add_sizes(Benchmark* update, const std::string& threads) {
  update->ArgNames({"parameters", threads})->UseRealTime();
  update->Unit(benchmark::kMicrosecond);
  for (const std::int64_t size : {1'000, 10'000, 100'000, 1'000'000, 10'000'000}) {
    update->Args({size, 1});
    if (size >= kLarge)
      update->Args({size, 2});
  }
}

}  // namespace

void add_optimizers(const Runtime& runtime) {
  for (Pair& pair : pairs()) {
    const std::shared_ptr<const Optimizer> ours =
        runtime.registry().make<Optimizer>(pair.name, Config(pair.parameters));
    add_sizes(benchmark::RegisterBenchmark(
                  (pair.name + "/treadle").c_str(),
                  [ours](benchmark::State& state) { update_with_treadle(state, *ours); }),
              "workers");
    if (pair.make_torch) {
      add_sizes(benchmark::RegisterBenchmark((pair.name + "/libtorch").c_str(),
                                             [make = pair.make_torch](benchmark::State& state) {
                                               update_with_torch(state, make);
                                             }),
                "threads");
    }
  }
}

}  // namespace treadle::benchmarks
