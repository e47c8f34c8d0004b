#include "run/place_text.h"

namespace treadle::graph {

std::string sizes_text(at::IntArrayRef sizes) {
  std::string text;
  for (const std::int64_t size : sizes)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

std::string sizes_text(const at::Tensor& tensor) {
  return tensor.defined() ? sizes_text(tensor.sizes()) : "nothing";
}

std::string node_text(const NodeInfo& node) {
  return "node \"" + node.id + "\"";
}

std::string failed_text(const GraphStructure& graph, std::size_t place,
                        const std::vector<std::string>& sizes) {
  const NodeInfo& node = graph.nodes[place];
  std::string text =
      node_text(node) + (node.type.empty() ? "" : " (" + node.type + ")") + " failed on ";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const NodeInfo& producer = graph.nodes[graph.places[place].inputs[i]];
    text += (i == 0 ? "" : ", ") + sizes[i] + " from \"" + producer.id + "\"";
  }
  return text + ": ";
}

}  // namespace treadle::graph
