#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

/// Differentiable search of a network's structure (DARTS, Liu et al. 2019, arXiv:1806.09055): at
/// some places of a network several operations are computed and mixed, and what they are mixed with
/// is learnt beside the weights.
namespace treadle {

/// The operation that gives zeros, at which a place is as good as absent. A search never ends with
/// it: it leaves the place out instead.
constexpr std::string_view kZeroOperation = "zero";

/// A place of a network, such as an edge of a cell, and what may stand there.
struct OperationChoice {
  std::string name;  ///< unique within the structure
  std::string node;  ///< where its output goes: the choices of one node compete
  std::vector<std::string> operations;
};

/// An ability of a Layer: has the weights that operations are mixed with.
class WeighsOperations {
 public:
  /// The parameter of the layer with the numbers that weights are computed from: [choices, most
  /// operations].
  static constexpr std::string_view kParameter = "alphas";

  virtual ~WeighsOperations();
  /// Unique within a model.
  virtual const std::string& structure() const = 0;
  virtual std::span<const OperationChoice> choices() const = 0;
  /// [choices, most operations], of the alphas as they are, without a gradient. A row has its
  /// choice's operations in front; those that are not allowed weigh 0, and the others add up to 1.
  virtual at::Tensor weights() const = 0;
  /// From now on these operations of a choice weigh 0, except for those that are true. With none
  /// the choice contributes nothing. A buffer of the layer: saved with its weights.
  virtual void allow(std::size_t choice, const std::vector<bool>& operations) = 0;
  virtual std::vector<bool> allowed(std::size_t choice) const = 0;
};

/// The result of a structure search.
struct StructureRecord {
  struct Choice {
    OperationChoice of;
    std::vector<double> weights;  ///< of its operations, at the end
    /// An index of the operations; nothing: the place is left out.
    std::optional<std::size_t> chosen;
  };
  std::string structure;
  std::vector<Choice> choices;
};

/// An optional ability of a TrainingWorkflow that searches a structure.
class RecordsStructures {
 public:
  static constexpr std::string_view kInterface = "treadle.records-structures/0";

  virtual ~RecordsStructures();
  /// After train().
  virtual std::vector<StructureRecord> structures() const = 0;
  /// Of a network that is chosen: with more the search has failed.
  virtual std::optional<std::int64_t> max_parameters() const = 0;
};

/// An optional ability of a GraphBuilder: its network may have a structure that is searched.
class DerivesNetwork {
 public:
  static constexpr std::string_view kInterface = "treadle.derives-network/0";

  virtual ~DerivesNetwork();
  /// WeighsOperations::structure() of its network; empty where nothing is mixed in it.
  virtual std::string structure() const = 0;
  /// The parameters of the builder, without "use", for the network with what was chosen and nothing
  /// else.
  virtual nlohmann::json derived(const StructureRecord& record) const = 0;
};

}  // namespace treadle
