#pragma once

/// The options of loops, switches and mixtures of experts.
namespace treadle::graph {

/// How the rows of a condition decide together. A condition of one element needs no choice.
enum class HaltBy {
  kOneElement,  ///< more than one element is an error
  kFirst,       ///< the first element counts
  kAny,         ///< one row that halts, halts all
  kAll          ///< until every row halts
};

/// The unit for which a switch decides.
enum class SwitchBy {
  kBatch,  ///< the router's first element chooses one branch for the whole batch
  kRow     ///< each row goes its own way; the router gives one number per row
};

/// How a mixture of experts is computed.
struct Mixture {
  /// Outputs of narrower experts are filled up with zeros, along the last dimension.
  bool pad = false;
  /// An expert computes only what has a weight for it other than 0: of weights [L..., experts] and
  /// a stream [L..., ...] it is given [n, ...]. It has no state. The host waits for the weights.
  bool sparse = false;
};

/// How a loop lets each row halt by itself; see FlowBuilder::Loop::adaptively().
struct Pondering {
  /// A row halts in the round in which its halting probabilities come to 1 - epsilon.
  double epsilon = 0.01;
  /// The ponder cost of a row: this times (its rounds + its remainder) is added to the loss' sum.
  /// 0: nothing.
  double cost = 0.01;
};

}  // namespace treadle::graph
