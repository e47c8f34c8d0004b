#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/config.h>
#include <treadle/core/model/tensor_spec.h>
#include <treadle/core/training/structure_search.h>

namespace treadle::cells {

/// A cell: nodes 0 … n-1, each the sum of what comes over the edges from all nodes before it; node
/// 0 is the input, the last one the output. n(n-1)/2 edges, in the order 0-1, 0-2, 1-2, 0-3, …:
/// those into a node follow one another. On each stands an operation, or a mixture of several.
///
/// The space of such a cell: NAS-Bench-201 (Dong and Yang 2020, arXiv:2001.00326), operations^edges
/// cells, with four nodes and five operations 15625.
class Structure {
 public:
  /// Reads "nodes", "edges", "operations" and "structure". Fails at "edges" where there are not as
  /// many as the nodes have.
  explicit Structure(const Config& config);

  struct Edge {
    std::int64_t from;
    std::int64_t to;
    std::vector<std::string> operations;  ///< one: nothing is mixed

    std::string name() const { return std::to_string(from) + "_" + std::to_string(to); }
    bool is_mixed() const { return operations.size() > 1; }
  };

  /// For such an input, which decides what the usual operations are.
  std::vector<Edge> edges(const TensorSpec& input) const;
  /// Whether edges may be mixed.
  bool is_searched() const;
  const std::string& name() const { return name_; }
  std::int64_t nodes() const { return nodes_; }

  /// The mixed ones among the edges, as the layer that weighs them has them.
  static std::vector<OperationChoice> choices(const std::vector<Edge>& edges);

  /// The parameter "edges" with what was chosen; a place that is left out is "zero".
  nlohmann::json derived_edges(const StructureRecord& record) const;

 private:
  std::int64_t nodes_;
  std::string name_;
  std::vector<std::string> operations_;          // of edges that name none; empty: the usual
  std::vector<std::vector<std::string>> edges_;  // by edge; empty: all have operations_
};

}  // namespace treadle::cells
