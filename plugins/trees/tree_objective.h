#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/model/model_spec.h>
#include <treadle/core/training/objective.h>

namespace treadle::trees {

/// How many margins trees have for the target of a model: one for each number, label or class, and
/// one for two classes. Throws a DataError where the loss requires other outputs.
std::int64_t margins_for(const ModelSpec& spec);

/// The objective of XGBoost that has the gradients of a document's loss.
struct TreeObjective {
  /// "reg:squarederror", "binary:logistic" or "multi:softprob".
  std::string name;
  /// How much a row of each class counts: float64 [classes]. Undefined: 1 each.
  at::Tensor class_weights;
};

/// Finds it by the gradients of the loss, which are compared with those of the objective for some
/// outputs; so class weights count, and a loss of any plugin may be used. Throws a DataError, which
/// names losses that work, where they differ: for XGBoost has second derivatives of its own
/// objectives only.
TreeObjective find_objective(const Objective& objective);

/// The rows to learn from.
struct TreeTargets {
  /// float32 [n, columns]: numbers or labels; the indices of classes.
  at::Tensor labels;
  /// float32 [n]: weights of rows times those of their classes; undefined: 1 each.
  at::Tensor weights;
};

TreeTargets targets_of(const Batch& rows, const Objective& objective, const TreeObjective& its);

/// The margins of a model without inputs, float32: means of numbers, log odds of labels and of the
/// second of two classes, logarithms of the shares of more. `margins`: as margins_for() has it.
std::vector<float> base_of(const TreeTargets& targets, const TreeObjective& its,
                           std::int64_t margins);

}  // namespace treadle::trees
