#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "class_choice.h"
#include "kept_scores.h"

namespace treadle::metrics {

/// Area under the ROC curve, exact, from the ranks of the scores; ties count half (Mann-Whitney).
///
/// Two classes: of the second one. More: one class against the rest, mean over the classes for
/// which there are positions inside and outside (scikit-learn: multi_class="ovr", average="macro").
///
/// Memory grows with the positions: 8 bytes each plus one score (two classes) or one a class, in
/// the run's dtype. **Rationale:** an area from a fixed number of bins is not the number people
/// compare.
class Auc final : public MetricComputer {
 public:
  explicit Auc(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  Number value() const;
  Number area(const KeptScores::Rows& rows, std::int64_t column, std::int64_t positive) const;

  std::vector<std::string> class_names_;
  KeptScores seen_;
};

/// `average_precision`: the area under the precision-recall curve in steps, without interpolation:
///
///     sum_n (R_n - R_{n-1}) P_n
///
/// over the different scores from the highest down; equal scores are one step. (scikit-learn:
/// average_precision_score.)
///
/// Of one class, or an average over classes or labels; see ClassChoice. Those without rows are left
/// out. Weighted: each counts as often as it occurs. Micro: all pairs of a position and a class are
/// ranked together.
///
/// Memory grows with the positions, as that of Auc.
class AveragePrecision final : public MetricComputer {
 public:
  explicit AveragePrecision(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  Number value() const;
  Number micro(const KeptScores::Rows& rows) const;

  ClassChoice choice_;
  KeptScores seen_;
};

}  // namespace treadle::metrics
