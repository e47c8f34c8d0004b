#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/validation/predictions.h>

#include "positions.h"

namespace treadle::metrics {

/// Positions with the scores that a metric needs all of before it can be computed.
///
/// Memory grows with the positions: 8 bytes each and one score a column, in the dtype it came in;
/// with weights another 8.
class KeptScores {
 public:
  struct Rows {
    at::Tensor scores;   ///< [rows, columns]
    at::Tensor actual;   ///< int64 [rows], or of labels [rows, labels]
    at::Tensor weights;  ///< float64 [rows]; undefined: 1 each
  };

  void clear() { seen_.clear(); }
  /// Copies: callers fill the same tensors again. `weights` may be undefined.
  void add(const at::Tensor& scores, const at::Tensor& actual, const at::Tensor& weights);
  void append(const KeptScores& other);

  /// Undefined scores where nothing was added.
  Rows rows() const;

  StateDict state() const;
  void load_state(const StateDict& state);

 private:
  std::vector<Rows> seen_;
};

/// The scores that positions are ranked by: log-odds of each class or label, float64 [N, classes],
/// where the prediction has logits, else its probabilities. Probabilities of float32 are 1 for
/// log-odds above 17, and rank all those alike.
at::Tensor rank_scores(const Prediction& prediction, const Positions& positions);

/// float64 [N] of zeros and ones: the positions that are of a class, or have a label.
at::Tensor is_of_class(const at::Tensor& actual, std::int64_t index);

/// The weights at or above each different score, from the highest score down. Positions without
/// weight are left out.
struct Ranking {
  at::Tensor scores;     ///< float64 [different scores], descending; a NaN is the first
  at::Tensor positives;  ///< float64, cumulative
  at::Tensor negatives;  ///< likewise

  bool is_empty() const { return scores.size(0) == 0; }
  bool has_nan() const { return !is_empty() && scores[0].isnan().item<bool>(); }
  double all_positives() const { return is_empty() ? 0 : positives[-1].item<double>(); }
  double all_negatives() const { return is_empty() ? 0 : negatives[-1].item<double>(); }
};

/// `scores` [N], `positive` float64 [N] of zeros and ones, `weights` float64 [N] or undefined.
Ranking ranked(const at::Tensor& scores, const at::Tensor& positive, const at::Tensor& weights);

}  // namespace treadle::metrics
