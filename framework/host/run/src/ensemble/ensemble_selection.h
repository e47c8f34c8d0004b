#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace treadle::internal {

struct EnsembleMember {
  std::size_t candidate = 0;
  double weight = 0;
};

struct SelectedEnsemble {
  std::vector<EnsembleMember> members;  ///< in the order of the candidates; weights sum to 1
  double score = 0;                     ///< of their weighted mean
};

/// Greedy ensemble selection with replacement (R. Caruana et al., "Ensemble selection from
/// libraries of models", ICML 2004): `size` times the candidate is added with which the mean of all
/// added ones scores best; the ensemble is the shortest beginning with the best score. A candidate
/// that was added k of n times has the weight k/n. The `initial` best candidates are added first,
/// and are in the ensemble in any case, so that few rows decide less: their sorted initialization.
///
/// `predictions` are those of the candidates for rows that none of them was trained on, all of the
/// same shape. `score` is of such a mean, lower is better; a candidate whose score is NaN is never
/// added. Of equal candidates the first is added, so the result is a function of the arguments.
/// Expects a candidate whose score is a number, and size >= 1.
///
/// Takes size * candidates scores.
SelectedEnsemble select_ensemble(std::span<const at::Tensor> predictions, std::int64_t size,
                                 std::int64_t initial,
                                 const std::function<double(const at::Tensor& mean)>& score);

}  // namespace treadle::internal
