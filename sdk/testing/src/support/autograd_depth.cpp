#include <treadle/testing/support/autograd_depth.h>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

namespace treadle::testing {

std::size_t autograd_depth(const at::Tensor& result) {
  using torch::autograd::Node;
  std::unordered_map<const Node*, std::size_t> depths;
  const auto depth_of = [&](const Node* node) { return node == nullptr ? 0 : depths.at(node); };
  // Without recursion: the graph of a long sequence is deep.
  std::vector<std::pair<const Node*, std::size_t>> way;
  const Node* const end = result.grad_fn().get();
  if (end != nullptr)
    way.emplace_back(end, 0);
  while (!way.empty()) {
    auto& [node, next] = way.back();
    if (next < node->num_outputs()) {
      const Node* const from = node->next_edge(next++).function.get();
      if (from != nullptr && depths.count(from) == 0)
        way.emplace_back(from, 0);
      continue;
    }
    std::size_t deepest = 0;
    for (const auto& edge : node->next_edges())
      deepest = std::max(deepest, depth_of(edge.function.get()));
    depths[node] = deepest + 1;
    way.pop_back();
  }
  return depth_of(end);
}

}  // namespace treadle::testing
