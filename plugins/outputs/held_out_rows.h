#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/target_spec.h>
#include <treadle/core/validation/predictions.h>

namespace treadle::outputs {

/// The targets at the positions that a stage learns from, one beneath the other and without
/// padding: N of them.
struct HeldOutTargets {
  HeldOutTargets(TargetKind kind, const TargetBatch& target);

  at::Tensor actual;   ///< classes int64 [N]; labels float64 [N, C]
  at::Tensor weights;  ///< float64 [N]
  at::Tensor counted;  ///< bool, of all positions: which of them; undefined: all

  std::int64_t count() const { return actual.size(0); }
  /// 1 where it is the class, or the label is there, float64 [N].
  at::Tensor is_class(std::int64_t index) const;
};

/// The same with predictions.
struct HeldOutRows : HeldOutTargets {
  HeldOutRows(const Prediction& prediction, const TargetBatch& target);

  at::Tensor log_odds;  ///< float64 [N, C]; see log_odds_of()
  at::Tensor values;    ///< float64 [N, C]: probabilities
};

/// [B, positions..., C] as [N, C], float64.
at::Tensor flat(const at::Tensor& wide);

/// The log-odds of each class or label against the rest, [N, C] or, of two classes, [N, 1]: that of
/// the second. From logits where there are some: probabilities of float32 are 1 above 17, and would
/// all be alike.
at::Tensor log_odds_of(const Prediction& prediction);

/// The inputs of the softmax, or for labels and two classes of the sigmoid, behind the
/// probabilities: float64 [N, C] or, of two classes, [N, 1].
at::Tensor logits_of(const Prediction& prediction);

/// Probabilities float64 [N, C] or, of two classes, [N, 1] as values [B, positions..., C] like
/// those of the prediction.
at::Tensor as_values(const at::Tensor& probabilities, const Prediction& like);

/// Throws the DataError that says for what targets a stage is.
void expect_kind(std::string_view stage, std::initializer_list<TargetKind> kinds,
                 const TargetSpec& target);

/// Throws a DataError unless each class occurs, or each label is there and not there.
void expect_each_class(std::string_view stage, const HeldOutTargets& rows,
                       const TargetSpec& target);

}  // namespace treadle::outputs
