#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "kept_scores.h"

namespace treadle::metrics {

/// Which of the points of a curve to keep so that straight lines between them stay closest to it
/// (U. Ramer, 1972; D. Douglas and T. Peucker, 1973): ascending indices, both ends and at most
/// `most` in all, fewer where further ones lie on the lines already. `x`, `y`: float64 [points].
std::vector<std::int64_t> corners_of(const at::Tensor& x, const at::Tensor& y, std::size_t most);

/// `curves`: the ROC curve, the precision-recall curve and the gains of a class against the rest,
/// as one table "curves" of at most kMostPoints rows a class, from the highest threshold down. Its
/// row labels are the class. Two classes: the second one; more: each for which there are positions
/// inside and outside.
///
/// A row is a threshold: positions whose probability of the class is at or above it are selected.
/// Columns: "threshold"; "false_positive_rate"; "true_positive_rate" (recall); "precision";
/// "selected", their share of all; "lift", precision over the share of the class. The first row
/// selects nothing: its threshold is infinite and its precision 1, as in scikit-learn. The points
/// are the corners of the ROC curve, between which precision and recall are exact, too, where the
/// rates are interpolated (J. Davis and M. Goadrich, 2006).
///
/// Memory grows with the positions, as that of Auc.
class Curves final : public MetricComputer {
 public:
  static constexpr std::size_t kMostPoints = 200;
  static constexpr std::int64_t kMostClasses = 100;

  explicit Curves(const Config&) {}

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  at::Tensor curve(const Ranking& ranking) const;

  std::vector<std::string> class_names_;
  KeptScores seen_;
  bool are_log_odds_ = false;  // or else probabilities
};

}  // namespace treadle::metrics
