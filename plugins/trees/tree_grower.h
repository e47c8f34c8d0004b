#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>

#include "tree_objective.h"
#include "tree_sum.h"

namespace treadle::trees {

/// XGBoost's parameters of a tree, by its own names.
struct GrowthOptions {
  explicit GrowthOptions(const Config& config);

  std::vector<std::pair<std::string, std::string>> parameters;
};

/// "1.7.4": of the library that is loaded.
std::string library_version();

/// Grows trees by XGBoost's `hist` from rows that it keeps a copy of, in bins.
///
/// **Rationale:** each round has a booster of its own, which begins at the margins of the rounds
/// before. A booster of several rounds keeps random generators and sums of float32 that none of
/// its files has, so one that is loaded grows other trees than one that goes on. Here a round is a
/// function of rows, margins and seed. Predictions are TreeSum's.
///
/// Used from one thread. XGBoost starts no others and prints nothing.
class TreeGrower {
 public:
  /// `rows`: float32 [n, columns], contiguous, on the CPU; NaN is a missing value. Throws a
  /// DataError for values that are infinite, and for targets that XGBoost refuses.
  TreeGrower(const at::Tensor& rows, const TreeTargets& targets, std::string objective,
             const GrowthOptions& options, std::int64_t margins);
  ~TreeGrower();
  TreeGrower(const TreeGrower&) = delete;
  TreeGrower& operator=(const TreeGrower&) = delete;

  /// One tree for each margin, from the gradients at `margins`, float32 [n, margins]. The same bits
  /// for the same margins and seed, in this version of the library. Throws a TrainingError where
  /// XGBoost fails.
  std::vector<Tree> grow(const at::Tensor& margins, std::uint64_t seed);

 private:
  struct Matrix;

  std::unique_ptr<Matrix> matrix_;
  std::vector<std::pair<std::string, std::string>> parameters_;
  std::int64_t margins_;
};

}  // namespace treadle::trees
