#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "kept_scores.h"

namespace treadle::metrics {

/// `thresholds`, for two classes: how decisions change with the probability from which on the
/// second class is chosen, as a table "thresholds". Its rows are the thresholds 0.05, 0.1 ... 0.95,
/// and the probabilities among those predicted that are best as thresholds for F1 ("best_f1") and
/// for the Matthews correlation ("best_mcc"), of equals the highest; each is left out where its
/// score is undefined.
///
/// A position whose probability is at or above the threshold is predicted to be of the second
/// class. Columns: "threshold"; "true_positives", "false_positives", "true_negatives",
/// "false_negatives", in weights; "precision", "recall", "f1", "mcc", NaN where undefined; and with
/// the parameter "costs" {"false_positive": x, "false_negative": y} "cost", the sum of both counts
/// times theirs.
///
/// Memory grows with the positions, as that of Auc.
class Thresholds final : public MetricComputer {
 public:
  explicit Thresholds(const Config& config);

 private:
  struct Costs {
    double false_positive = 1;
    double false_negative = 1;
  };

  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::optional<Costs> costs_;
  KeptScores seen_;
};

}  // namespace treadle::metrics
