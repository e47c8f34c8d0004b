#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/model/layer.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/part.h>

namespace treadle::graph {

/// Defines a network node by node, in any order, where a flow defines it from front to end:
///
///     GraphWiring wiring({"x"});
///     wiring.node("sum", add(), {"x", "change"});
///     wiring.node("change", torch::nn::Linear(8, 8), {"x"});
///     auto net = wiring.build({"sum"});
///
/// The result is a flow in which every node is named and tagged: flow() can go on, be a part,
/// and be written as a document.
class GraphWiring {
 public:
  /// The graph's inputs, in order; one at least.
  explicit GraphWiring(std::vector<std::string> inputs);

  /// A node of this name, which is given what these nodes and inputs give, in this order.
  GraphWiring& node(std::string name, const Part& part, std::vector<std::string> from);
  /// Nodes that need no other: see constant() and parameter() in ready_parts.h. They have as many
  /// rows as the graph's first input.
  GraphWiring& constant(std::string name, const at::Tensor& row);
  GraphWiring& parameter(std::string name, std::vector<std::int64_t> shape, double mean = 0,
                         double std = 0.02);

  /// The flow that gives these nodes' values. Nodes that none of them needs are left out. Throws a
  /// DocumentError with every mistake: names used twice, names of no node, and a cycle, as a path
  /// of names.
  FlowBuilder flow(const std::vector<std::string>& outputs) const;

  /// flow(outputs).build(…)
  std::shared_ptr<Graph> build(const std::vector<std::string>& outputs,
                               const LayerSpec& spec) const;
  std::shared_ptr<Graph> build(const std::vector<std::string>& outputs) const;

 private:
  struct WiredNode {
    std::string name;
    Part part;
    std::vector<std::string> from;
  };

  std::vector<std::string> inputs_;
  std::vector<WiredNode> nodes_;
};

}  // namespace treadle::graph
