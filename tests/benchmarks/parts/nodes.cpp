// What a flow costs besides its layers: nodes that do nothing, one after the other, beside as many
// calls by hand; and what it saves: heavy branches one by one and at once, beside plain threads
// that share the same work, which is what the machine can give at most. `per_node` is the time of
// one.
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/linear.h>

#include <treadle/core/model/layer.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/graph/ready_parts.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/ops.h>
#include <treadle/tensor/task_random.h>

#include "parts.h"

namespace treadle::benchmarks {
namespace {

using graph::FlowBuilder;
using graph::Graph;

constexpr std::int64_t kNodes = 1000;

at::Tensor same(const at::Tensor& x) {
  return x;
}

class Sigmoid final : public Layer, public Lowerable {
 public:
  at::Tensor forward(const Inputs& inputs, LayerContext&) override { return inputs[0].sigmoid(); }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.apply(plan_sigmoid(), inputs[0]);
  }
};

std::shared_ptr<Graph> chain(const std::function<graph::Part()>& part) {
  FlowBuilder flow = FlowBuilder::from(part());
  for (std::int64_t i = 1; i < kNodes; ++i)
    flow.through(part());
  return flow.build();
}

void per_node(benchmark::State& state) {
  state.counters["per_node"] = benchmark::Counter(
      static_cast<double>(kNodes * static_cast<std::int64_t>(state.iterations())),
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void run_chain(benchmark::State& state, Graph& chain, bool profiles) {
  const at::NoGradGuard no_gradients;
  const at::Tensor input = at::ones({1});
  graph::GraphState stream(chain);
  stream.profile(profiles);
  for (auto _ : state)
    benchmark::DoNotOptimize(chain.run({&input, 1}, stream));
  per_node(state);
}

void calls_by_hand(benchmark::State& state) {
  const at::Tensor input = at::ones({1});
  const std::vector<std::function<at::Tensor(const at::Tensor&)>> calls(kNodes, same);
  for (auto _ : state) {
    at::Tensor value = input;
    for (const auto& call : calls)
      value = call(value);
    benchmark::DoNotOptimize(value);
  }
  per_node(state);
}

void kernels_by_hand(benchmark::State& state) {
  const at::NoGradGuard no_gradients;
  const at::Tensor input = at::ones({1});
  at::Tensor even = at::empty_like(input);
  at::Tensor odd = at::empty_like(input);
  for (auto _ : state) {
    at::sigmoid_out(odd, input);
    for (std::int64_t i = 1; i < kNodes; ++i) {
      at::sigmoid_out(even, odd);
      std::swap(even, odd);
    }
    benchmark::DoNotOptimize(odd);
  }
  per_node(state);
}

constexpr std::size_t kBranches = 8;
constexpr std::int64_t kBranchRows = 256;
constexpr std::int64_t kWidth = 768;

std::vector<graph::Part> heavy_parts() {
  const TaskRandom random(1);
  std::vector<graph::Part> parts;
  for (std::size_t i = 0; i < kBranches; ++i)
    parts.emplace_back(std::make_shared<torch::nn::LinearImpl>(kWidth, kWidth));
  return parts;
}

void branches(benchmark::State& state, graph::Branches how) {
  const auto flow = FlowBuilder::from(&same).split(heavy_parts()).merge(graph::add()).build();
  flow->set_branches(how);
  const TaskRandom random(2);
  const at::Tensor input = at::randn({kBranchRows, kWidth});
  for (auto _ : state)
    flow->forward(input).sum().backward();
}

void plain_threads(benchmark::State& state, std::size_t count) {
  const TaskRandom random(2);
  const at::Tensor input = at::randn({kBranchRows, kWidth});
  std::vector<torch::nn::Linear> layers;
  for (std::size_t i = 0; i < kBranches; ++i)
    layers.emplace_back(kWidth, kWidth);
  for (auto _ : state) {
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < count; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::size_t i = thread; i < kBranches; i += count)
          layers[i]->forward(input).sum().backward();
      });
    }
    for (std::thread& thread : threads)
      thread.join();
  }
}

}  // namespace

void add_nodes() {
  using benchmark::RegisterBenchmark;
  RegisterBenchmark("node/by_hand", calls_by_hand);
  for (const bool profiles : {false, true}) {
    RegisterBenchmark(profiles ? "node/dynamic_profiled" : "node/dynamic", [=](auto& state) {
      run_chain(state, *chain([] { return graph::Part(&same); }), profiles);
    });
  }
  RegisterBenchmark("kernel/by_hand", kernels_by_hand);
  for (const auto& [execution, name] :
       {std::pair(graph::Execution::kDynamic, "kernel/dynamic"),
        std::pair(graph::Execution::kCompiled, "kernel/compiled")}) {
    RegisterBenchmark(name, [execution = execution](auto& state) {
      const auto sigmoids = chain([] { return graph::Part(std::make_shared<Sigmoid>()); });
      sigmoids->set_execution(execution);
      run_chain(state, *sigmoids, /*profiles=*/false);
    });
  }
  RegisterBenchmark("branches/one_by_one", [](auto& state) {
    branches(state, graph::Branches::kSequential);
  })->UseRealTime();
  RegisterBenchmark("branches/at_once", [](auto& state) {
    branches(state, graph::Branches::kParallel);
  })->UseRealTime();
  for (const std::size_t count : {1, 2}) {
    RegisterBenchmark(("branches/plain_threads/" + std::to_string(count)).c_str(),
                      [=](auto& state) { plain_threads(state, count); })
        ->UseRealTime();
  }
}

}  // namespace treadle::benchmarks
