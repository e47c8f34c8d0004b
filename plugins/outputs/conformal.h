#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/output_stage.h>

#include "fold_residuals.h"

namespace treadle::outputs {

/// Split conformal prediction: with n held-out rows and their scores, a set of all answers whose
/// score is at most the ceil((n + 1) coverage)-th smallest of them contains the truth with at least
/// that probability, for rows that are exchangeable with those (V. Vovk, A. Gammerman, G. Shafer,
/// "Algorithmic Learning in a Random World", 2005).
///
/// Numbers get the extras "lower" and "upper". Scores: |y - prediction|, or how far y is outside
/// the outermost predicted quantiles (Y. Romano, E. Patterson, E. Candes, "Conformalized Quantile
/// Regression", 2019). Each of a fixed number of positions, such as the steps of a horizon, has a
/// quantile of its own.
///
/// Classes get the extra "in_set", 1 or 0 for each. Scores: 1 - p of the class (lac); or the sum of
/// all larger probabilities and a part u of its own (aps: Y. Romano, M. Sesia, E. Candes,
/// "Classification with Valid and Adaptive Coverage", 2020), where u in [0, 1) is a function of the
/// row's probabilities, so that a row has one set wherever it stands. The score of the likeliest
/// class is 0: no set is empty, and as held-out rows count it likewise, the coverage is not the
/// larger for it, unless the likeliest class alone is right more often than asked for.
///
/// CV+ (R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani, "Predictive inference with the
/// jackknife+", 2021): row i of the training is predicted by the model mu of fold k(i), which was
/// not trained on it, and is off by R_i. With n rows and a = 1 - coverage, an interval goes from
/// the floor(a (n + 1))-th smallest mu_k(i)(x) - R_i to the ceil((1 - a)(n + 1))-th smallest
/// mu_k(i)(x) + R_i. It contains the truth with a probability of at least
/// 1 - 2 a - sqrt(2 / n), and of about 1 - a in practice. Numbers alone; see
/// OutputStage::needs_folds().
///
/// By class, a class is held to the scores of its own rows; by group, a row to those of its group,
/// and to all where the group has too few or is new.
class Conformal final : public OutputStage {
 public:
  explicit Conformal(const Config& config);

 private:
  enum class Score { kAuto, kResidual, kQuantiles, kAps, kLac };
  enum class By { kAll, kClass, kGroup };
  enum class Method { kSplit, kCvPlus };

  void do_start(const TargetSpec& target) override;
  void do_expect_enough(const TargetBatch& target) const override;
  void do_fit(const Prediction& prediction, const TargetBatch& target) override;
  Prediction do_apply(Prediction prediction, const Batch& rows) const override;
  bool do_needs_groups() const override { return by_ == By::kGroup; }
  bool do_needs_folds() const override { return method_ == Method::kCvPlus; }
  std::vector<MetricValue> do_learned() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  bool has_fixed_positions() const;
  void fit_numbers(const Prediction& prediction, const TargetBatch& target);
  void fit_folds(const Prediction& prediction, const TargetBatch& target);
  Prediction with_intervals_of_folds(Prediction prediction) const;
  /// Of how many numbers a row has residuals: [B, ...] as [B, columns].
  std::int64_t columns() const;
  void fit_classes(const Prediction& prediction, const TargetBatch& target);
  /// Of scores [N, ...], NaN where they do not count, for each of the others: [...].
  at::Tensor quantile_of(const at::Tensor& scores, const std::string& of) const;
  std::int64_t place_among(std::int64_t rows) const;
  at::Tensor places_among(const at::Tensor& rows) const;
  /// Throws the DataError of too few rows.
  void expect_enough_rows(std::int64_t rows, const std::string& of) const;
  void fit_groups(const at::Tensor& scores, const at::Tensor& groups);
  at::Tensor limits(const at::Tensor& groups, std::int64_t rows) const;
  at::Tensor class_scores(const at::Tensor& probabilities) const;
  struct Bounds {
    at::Tensor lower;
    at::Tensor upper;
  };
  Bounds bounds(const Prediction& prediction) const;

  const double coverage_;
  const Method method_;
  Score score_;
  By by_ = By::kAll;
  TargetSpec target_;
  at::Tensor quantiles_;        // float64: of numbers [positions..., width] or [width]; classes [1]
                                // or, by class, [C]
  at::Tensor groups_;           // int64 [G], ascending
  at::Tensor group_quantiles_;  // float64 [G, ...]
  FoldResiduals residuals_;     // of CV+, which has no quantiles
};

}  // namespace treadle::outputs
