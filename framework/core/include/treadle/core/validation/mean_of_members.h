#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/validation/predictions.h>

namespace treadle {

/// The entropy of each distribution of `probabilities`, in nats: [..., C] as [...] for classes and
/// distributions, as [..., C] for labels, each of which is a distribution of two.
at::Tensor entropy(TargetKind kind, const at::Tensor& probabilities);

/// The weighted mean of several predictions for the same rows, and its uncertainty: of the members
/// of an ensemble, or of passes with dropout. Adds one at a time, so its memory does not grow with
/// them.
///
/// With weights w_m that sum to 1 (they are divided by their sum), probabilities p_m:
///
///     total = H(sum_m w_m p_m),  aleatoric = sum_m w_m H(p_m),  epistemic = total - aleatoric
///
/// The last is the mutual information of prediction and model, never negative (N. Houlsby et al.,
/// "Bayesian Active Learning for Classification and Preference Learning", 2011). Of numbers with
/// means x_m and variances v_m:
///
///     aleatoric^2 = sum_m w_m v_m,  epistemic^2 = sum_m w_m (x_m - sum_k w_k x_k)^2
///
/// the law of total variance; where a member's own uncertainty has an epistemic part, it counts
/// among the epistemic one.
class MeanOfMembers {
 public:
  /// `weight`: of probabilities 0-dim or [1], of labels and numbers also [width]; not negative.
  /// Expects members of one kind, with the same shapes and extras.
  void add(const Prediction& member, const at::Tensor& weight);

  /// Values, extras and uncertainty, in the dtypes of the first member; no logits, decision or
  /// samples. `crossed` where any member has crossed. Expects a member with a weight.
  Prediction mean() const;
  /// That of mean(). Undefined for members without values.
  Prediction::Uncertainty uncertainty() const;

 private:
  struct Sums {
    at::Tensor values;     // of w x
    at::Tensor aleatoric;  // of w H, or w v; undefined: a member has none
    at::Tensor epistemic;  // of the members' own, likewise; undefined: none has one
  };

  Prediction first_;    // without what is summed
  at::Tensor weights_;  // their sum so far
  Sums sums_;
  std::vector<at::Tensor> extras_;
  at::Tensor mean_;     // of numbers, so far
  at::Tensor squares_;  // of numbers: the weighted sum of (x - mean)^2, so far
  std::int64_t members_ = 0;
};

}  // namespace treadle
