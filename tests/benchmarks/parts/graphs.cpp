// Forward and backward of each network in ../flows: the module people write by hand, the same
// network as a flow, dynamic and compiled; then a whole step, update included: by hand with
// torch::optim::Adam, ours with Treadle's. From the same weights all must give the same numbers, or
// nothing is measured. `peak_kB` is the most that tensors held at once during the first steps,
// parameters and their gradients aside.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <benchmark/benchmark.h>
#include <c10/core/Allocator.h>
#include <c10/core/GradMode.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/optim/adam.h>
#include <nlohmann/json.hpp>

#include <treadle/core/training/loss.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/engine/training_step.h>
#include <treadle/graph/graph.h>
#include <treadle/host/run/runtime.h>
#include <treadle/tensor/task_random.h>

#include "../by_hand/network.h"
#include "parts.h"

namespace treadle::benchmarks {
namespace {

/// What tensors of this thread take, as libtorch's allocator tells.
class Memory final : public c10::MemoryReportingInfoBase {
 public:
  // One of them overrides: libtorch 2 counts without a sign.
  void reportMemoryUsage(void*, std::int64_t size, std::int64_t, std::int64_t, c10::Device) {
    count(size);
  }
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) {
    count(size);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t most() const { return most_; }

 private:
  void count(std::int64_t size) {
    now_ += size;
    most_ = std::max(most_, now_);
  }

  std::int64_t now_ = 0;
  std::int64_t most_ = 0;
};

struct Workload {
  std::string name;
  nlohmann::json document;

  std::vector<std::int64_t> row() const { return document.at("row"); }
  std::int64_t outputs() const { return document.at("outputs"); }

  std::shared_ptr<graph::Graph> flow(const Runtime& runtime) const {
    const TaskRandom random(1);
    ModelSpec spec;
    spec.inputs = {{"input", row(), {}}};
    spec.outputs = {{"output", {outputs()}}};
    spec.dtype = at::kFloat;
    const auto provider =
        runtime.registry().make<ModelProvider>("flow", Config(without_use(document.at("model"))));
    return std::dynamic_pointer_cast<graph::Graph>(provider->create(spec));
  }

  /// With the flow's weights.
  Network by_hand(const graph::Graph& flow) const {
    Network network = make_network(document.at("by_hand"), row(), outputs());
    const at::NoGradGuard no_gradients;
    const std::vector<at::Tensor> from = flow.parameters();
    const std::vector<at::Tensor> to = network.module->parameters();
    // By name both have them in other orders: what a flow makes first, a module may register last.
    std::vector<bool> used(from.size());
    for (const at::Tensor& weight : to) {
      std::size_t i = 0;
      while (i < from.size() && (used[i] || from[i].sizes() != weight.sizes()))
        ++i;
      if (i == from.size())
        throw std::runtime_error(name + ": the flow and the module by hand are not the same");
      used[i] = true;
      weight.detach().copy_(from[i]);
    }
    return network;
  }

  at::Tensor inputs() const {
    const TaskRandom random(2);
    std::vector<std::int64_t> sizes = row();
    sizes.insert(sizes.begin(), document.at("batch").get<std::int64_t>());
    return at::randn(sizes);
  }
  at::Tensor targets() const {
    const TaskRandom random(3);
    return at::randn({document.at("batch").get<std::int64_t>(), outputs()});
  }

  static nlohmann::json without_use(nlohmann::json component) {
    component.erase("use");
    return component;
  }
};

using Forward = std::function<at::Tensor(const at::Tensor&)>;

void prepare_gradients(torch::nn::Module& module) {
  for (const at::Tensor& parameter : module.parameters())
    parameter.mutable_grad() = at::zeros_like(parameter);
}

at::Tensor forward_and_backward(const Forward& forward, const at::Tensor& inputs,
                                const at::Tensor& targets) {
  at::Tensor loss = at::mse_loss(forward(inputs), targets);
  loss.backward();
  return loss;
}

void measure(benchmark::State& state, torch::nn::Module& module, const Forward& forward,
             const Workload& workload) {
  const at::Tensor inputs = workload.inputs();
  const at::Tensor targets = workload.targets();
  prepare_gradients(module);
  const std::vector<at::Tensor> parameters = module.parameters();
  const auto run = [&] {
    for (const at::Tensor& parameter : parameters)
      parameter.grad().zero_();
    forward_and_backward(forward, inputs, targets);
  };
  const auto memory = std::make_shared<Memory>();
  {
    const c10::DebugInfoGuard counted(c10::DebugInfoKind::PROFILER_STATE, memory);
    for (int i = 0; i < 3; ++i)
      run();
  }
  for (auto _ : state)
    run();
  state.counters["peak_kB"] = static_cast<double>(memory->most()) / 1000;
}

/// A flow in one of its ways to run, called as an engine calls a model.
Forward as_model(const std::shared_ptr<graph::Graph>& flow) {
  return [flow](const at::Tensor& inputs) {
    Outputs outputs(1);
    ForwardContext context;
    (*flow)({&inputs, 1}, outputs, context);
    return outputs[0];
  };
}

void expect_same(const Workload& workload, const Forward& one, const Forward& other) {
  const at::Tensor inputs = workload.inputs();
  const at::Tensor a = one(inputs);
  const at::Tensor b = other(inputs);
  const double far = a.sub(b).abs().max().item<double>();
  if (far > 1e-4 * std::max(1.0, b.abs().max().item<double>()))
    throw std::runtime_error(workload.name + ": two ways to compute it are " + std::to_string(far) +
                             " apart");
}

void step_by_hand(benchmark::State& state, const Network& network, const Workload& workload) {
  const at::Tensor inputs = workload.inputs();
  const at::Tensor targets = workload.targets();
  torch::optim::Adam adam(network.module->parameters(), torch::optim::AdamOptions(1e-3));
  for (auto _ : state) {
    adam.zero_grad();
    benchmark::DoNotOptimize(forward_and_backward(network.forward, inputs, targets).item<double>());
    adam.step();
  }
}

const std::vector<TargetSpec> kTargets{number_target("y")};

void step_of_ours(benchmark::State& state, const Runtime& runtime,
                  const std::shared_ptr<graph::Graph>& flow, const Workload& workload) {
  const auto loss = runtime.registry().make<Loss>("mse");
  const auto adam =
      runtime.registry().make<Optimizer>("adam", Config(nlohmann::json{{"learning_rate", 1e-3}}));
  const Objective objective({{.loss = loss.get()}}, kTargets);
  engine::TrainingStep step(*flow, objective, *adam);
  Batch batch;
  batch.inputs = {workload.inputs()};
  batch.targets = {workload.targets()};
  std::int64_t count = 0;
  for (auto _ : state)
    step.run(batch, ++count, 1e-3, 1);
}

void add(const Runtime& runtime, Workload workload) {
  using benchmark::RegisterBenchmark;
  const auto shared = std::make_shared<Workload>(std::move(workload));
  const auto flow_of = [&runtime, shared](graph::Execution execution) {
    auto flow = shared->flow(runtime);
    flow->set_execution(execution);
    return flow;
  };
  const std::string passes = "forward+backward/" + shared->name;
  const std::string steps = "step/" + shared->name;
  RegisterBenchmark((passes + "/by_hand").c_str(), [=](benchmark::State& state) {
    const auto flow = flow_of(graph::Execution::kDynamic);
    const Network network = shared->by_hand(*flow);
    expect_same(*shared, network.forward, as_model(flow));
    measure(state, *network.module, network.forward, *shared);
  });
  for (const auto& [execution, name] : {std::pair(graph::Execution::kDynamic, "dynamic"),
                                        std::pair(graph::Execution::kCompiled, "compiled")}) {
    RegisterBenchmark((passes + "/" + name).c_str(), [=, execution = execution](auto& state) {
      const auto flow = flow_of(execution);
      measure(state, *flow, as_model(flow), *shared);
    });
  }
  RegisterBenchmark((steps + "/by_hand").c_str(), [=](benchmark::State& state) {
    step_by_hand(state, shared->by_hand(*flow_of(graph::Execution::kDynamic)), *shared);
  });
  for (const auto& [execution, name] : {std::pair(graph::Execution::kDynamic, "dynamic"),
                                        std::pair(graph::Execution::kCompiled, "compiled")}) {
    RegisterBenchmark((steps + "/" + name).c_str(),
                      [=, &runtime, execution = execution](auto& state) {
                        step_of_ours(state, runtime, flow_of(execution), *shared);
                      });
  }
}

/// Evaluation of convolutions with batch norms: node by node, compiled, and with constants folded.
void add_predictions(const Runtime& runtime) {
  const auto workload =
      std::make_shared<Workload>(Workload{"convolutions", nlohmann::json::parse(R"({
    "row": [1, 28, 28], "outputs": 10, "batch": 64,
    "model": {"use": "flow", "flow": [
      {"use": "conv2d", "out_channels": 32, "kernel_size": 3, "padding": "same"}, "batch_norm", "relu",
      {"use": "conv2d", "out_channels": 32, "kernel_size": 3, "padding": "same"}, "batch_norm", "relu",
      {"use": "max_pool2d", "kernel_size": 2}, "flatten", "head"]}})")});
  for (const std::string how : {"dynamic", "compiled", "folded"}) {
    benchmark::RegisterBenchmark(
        ("predictions/convolutions/" + how).c_str(), [=, &runtime](auto& state) {
          const at::NoGradGuard no_gradients;
          const auto flow = workload->flow(runtime);
          flow->eval();
          const at::Tensor inputs = workload->inputs();
          flow->set_execution(how == "dynamic" ? graph::Execution::kDynamic
                                               : graph::Execution::kCompiled);
          if (how == "folded")
            flow->prepare_for_inference();
          for (auto _ : state)
            benchmark::DoNotOptimize(flow->forward(inputs));
        });
  }
}

}  // namespace

void add_graphs(const Runtime& runtime) {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(TREADLE_BENCHMARK_FLOWS))
    files.insert(entry.path());
  for (const auto& file : files) {
    std::ifstream text(file);
    add(runtime, {file.stem().string(), nlohmann::json::parse(text)});
  }
  add_predictions(runtime);
}

}  // namespace treadle::benchmarks
