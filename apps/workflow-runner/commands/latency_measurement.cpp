#include "commands/latency_measurement.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/part.h>
#include <treadle/tensor/task_random.h>

#include "terminal/text_table.h"

namespace treadle::cli {
namespace {

/// A sample is as many passes as take this long, so that reading the clock does not count.
constexpr double kSecondsOfASample = 2e-3;
constexpr double kSecondsOfWarmUp = 20e-3;
constexpr int kSamples = 21;

/// Of this thread alone: what other programs take meanwhile is no latency of the network.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Zeros for each of the graph's inputs, one row.
std::vector<at::Tensor> row_for(const graph::Graph& graph) {
  std::vector<std::string> names{std::string(graph::kDefaultInput)};
  names.insert(names.end(), graph.input_names().begin(), graph.input_names().end());
  std::vector<at::Tensor> row;
  for (const std::string& name : names) {
    const auto node =
        std::find_if(graph.nodes().begin(), graph.nodes().end(), [&](const graph::NodeInfo& info) {
          return info.kind == graph::NodeKind::kInput && info.id == name;
        });
    std::vector<std::int64_t> sizes = node->result->sizes;
    std::replace(sizes.begin(), sizes.end(), TensorSpec::kVaries, std::int64_t{1});
    row.push_back(at::zeros(sizes, at::TensorOptions(node->result->dtype)));
  }
  return row;
}

/// One thread, until the end of the scope.
class OneThread {
 public:
  OneThread() : before_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

template <typename Pass>
double median_seconds(Pass&& pass) {
  const auto timed = [&](std::int64_t passes) {
    const double begun = thread_seconds();
    for (std::int64_t i = 0; i < passes; ++i)
      pass();
    return thread_seconds() - begun;
  };
  const double begun = thread_seconds();
  double once = timed(1);
  while (thread_seconds() - begun < kSecondsOfWarmUp)
    once = timed(1);
  const auto passes =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(kSecondsOfASample / once));
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i)
    samples.push_back(timed(passes) / static_cast<double>(passes));
  std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
  return samples[kSamples / 2];
}

LatencyModel::Pass measure_flow(const graph::FlowBuilder& flow,
                                const std::vector<std::int64_t>& row, std::string name) {
  const TaskRandom random(0);
  LayerSpec spec;
  spec.inputs = {TensorSpec(row, at::kFloat)};
  const std::shared_ptr<graph::Graph> graph = flow.build(spec);
  graph->set_execution(graph::Execution::kAuto);
  return measure_pass(*graph, std::move(name));
}

std::string microseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", seconds * 1e6);
  return text;
}

std::string rounded(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

LatencyModel::Pass measure_pass(graph::Graph& graph, std::string name) {
  const std::optional<ForwardCost> cost = graph.forward_cost();
  if (!cost) {
    throw UsageError(quote_text(name) +
                     ": its inputs have sizes that are not known, so a pass cannot be measured");
  }
  const OneThread one_thread;
  const at::NoGradGuard no_gradients;
  graph.eval();
  graph::GraphState state(graph);
  const std::vector<at::Tensor> row = row_for(graph);
  const double seconds = median_seconds([&] { graph.run(row, state); });
  return {std::move(name), cost->operations, cost->bytes, cost->calls, seconds};
}

std::vector<LatencyModel::Pass> measure_known_networks(const Runtime& runtime) {
  struct Dense {
    std::int64_t width;
    std::vector<int> depths;
  };
  struct Convolution {
    std::int64_t channels;
    std::int64_t side;
    std::vector<int> depths;
  };
  // A product reads each weight once, a convolution many times: so FLOPs and bytes can be told
  // apart. No larger weights, which caches do not hold: of 1024 by 1024 a byte takes ten times as
  // long.
  static const std::vector<Dense> kDense{
      {16, {1, 4, 12}}, {64, {1, 4, 12}}, {256, {1, 4, 12}}, {512, {1, 4}}};
  static const std::vector<Convolution> kConvolutions{
      {4, 8, {1, 4}}, {8, 16, {1, 4}}, {16, 32, {1, 4}}, {32, 16, {1, 4}}, {32, 32, {1, 2}}};
  const PluginRegistry& registry = runtime.registry();
  std::vector<LatencyModel::Pass> passes;
  for (const Dense& network : kDense) {
    for (const int depth : network.depths) {
      graph::FlowBuilder flow;
      for (int i = 0; i < depth; ++i) {
        flow.through(graph::layer(registry, "dense", {{"out_features", network.width}}))
            .through(graph::layer(registry, "relu"));
      }
      passes.push_back(
          measure_flow(flow, {TensorSpec::kVaries, network.width},
                       std::to_string(depth) + " x dense " + std::to_string(network.width)));
    }
  }
  for (const Convolution& network : kConvolutions) {
    for (const int depth : network.depths) {
      graph::FlowBuilder flow;
      for (int i = 0; i < depth; ++i) {
        flow
            .through(graph::layer(
                registry, "conv2d",
                {{"out_channels", network.channels}, {"kernel_size", 3}, {"padding", "same"}}))
            .through(graph::layer(registry, "relu"));
      }
      const std::string side = std::to_string(network.side);
      passes.push_back(
          measure_flow(flow, {TensorSpec::kVaries, network.channels, network.side, network.side},
                       std::to_string(depth) + " x conv2d " + std::to_string(network.channels) +
                           ", " + side + " x " + side));
    }
  }
  return passes;
}

std::string latency_text(const LatencyModel::Fit& fit,
                         const std::vector<LatencyModel::Pass>& passes, const Terminal& terminal) {
  std::vector<Cells> rows;
  for (const LatencyModel::Pass& pass : passes) {
    rows.push_back({pass.name, rounded("%.0f", pass.flops), rounded("%.0f", pass.bytes),
                    rounded("%.4g", pass.calls), microseconds(pass.seconds),
                    microseconds(fit.model.seconds(pass.flops, pass.bytes, pass.calls))});
  }
  std::string text = table_text(
      {"network", "FLOPs", "bytes", "calls", "measured us", "predicted us"}, rows, 1, terminal);
  text += "\nR² " + rounded("%.4f", fit.r_squared) + ", median error " +
          rounded("%.0f", fit.relative_error * 100) + " %; alpha " +
          rounded("%.4g", fit.model.alpha()) + ", beta " + rounded("%.4g", fit.model.beta()) +
          ", bias " + microseconds(fit.model.bias()) + " us a call\n";
  return text;
}

}  // namespace treadle::cli
