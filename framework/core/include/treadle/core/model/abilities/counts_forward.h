#pragma once

#include <optional>

/// What a forward pass of a model costs, by count: for searches that weigh how good a model is
/// against how large or slow. Needed by authors of models that are not flows.
namespace treadle {

/// Of one row, in evaluation.
struct ForwardCost {
  /// Floating-point operations of products, convolutions, and sums and products of elements: a
  /// multiplication and an addition are two.
  double operations = 0;
  /// Of all parameters, each read once, and of the values between layers, each written once.
  double bytes = 0;
  /// Calls of layers, without identities: in a loop in each round, in a branch of a switch with its
  /// share.
  double calls = 0;

  bool operator==(const ForwardCost&) const = default;
};

/// A model that counts, found by dynamic_cast.
class CountsForward {
 public:
  virtual ~CountsForward();
  /// The same on every machine. A size that varies from row to row, such as the length of a text,
  /// counts as 1. Nothing where the sizes of inputs are not known. May run a forward pass: no other
  /// one meanwhile.
  virtual std::optional<ForwardCost> forward_cost() = 0;
};

}  // namespace treadle
