#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

namespace treadle {

/// What the last layer of a model is given, and what it should make of it, for some positions of a
/// batch. Positions of weight 0 are left out.
struct LastLayerRows {
  at::Tensor features;  ///< [n, in], computed in eval mode and without gradients
  /// [n, width], of the features' dtype: the numbers of the target as transforms left them; of
  /// classes, 1 for the one that is right and 0 for the others.
  at::Tensor targets;
  at::Tensor weights;     ///< [n], > 0; undefined: 1 each
  bool has_bias = false;  ///< of the layer
};

/// A TrainingSession whose model ends with a linear layer, for a loop that computes this layer from
/// all rows of an epoch instead of in steps. All other layers stay as they are.
///
///     while (session.next_epoch()) {
///       while (solver.read_rows(add)) {
///       }
///       solver.set_last_layer(weight, bias);
///       session.finish_epoch();
///     }
///
/// The loop's schema has `"x-treadle-solves": true`; documents with an optimizer, a schedule or
/// anything else that is about steps are refused. Found by dynamic_cast of the session. Used from
/// the training thread.
class SolvesLastLayer {
 public:
  virtual ~SolvesLastLayer();

  /// Hands the next batch of the epoch to `take`; false: there is none, call set_last_layer(). A
  /// batch counts as a step: a checkpoint may follow, in which the state of the loop has what it
  /// took. Throws like TrainingSession::step(), and a DataError where the model does not end with a
  /// linear layer as wide as the target.
  virtual bool read_rows(const std::function<void(const LastLayerRows&)>& take) = 0;

  /// The layer is now x weightᵀ + bias: [width, in], and [width] where it has one. Evaluates the
  /// training rows with it: their loss is that of the epoch. Throws like step().
  virtual void set_last_layer(const at::Tensor& weight, const at::Tensor& bias) = 0;
};

}  // namespace treadle
