#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/output_stage.h>

namespace treadle::outputs {

/// Decides for the second of two classes, or for each label, where its probability is at least t.
///
/// t is given, or the one that is best on held-out rows: by a score, or by the cost of
/// wrong decisions. Then it lies halfway between two probabilities that occur, or between the
/// largest and 1; the higher one of equals.
class Threshold final : public OutputStage {
 public:
  explicit Threshold(const Config& config);

  /// The decisions at a threshold: sums of weights.
  struct Decided {
    double true_positive = 0;
    double false_positive = 0;
    double false_negative = 0;
    double true_negative = 0;
  };
  using Score = double (*)(const Decided& decided);

 private:
  struct Cost {
    double false_positive;
    double false_negative;
  };

  void do_start(const TargetSpec& target) override;
  void do_expect_enough(const TargetBatch& target) const override;
  void do_fit(const Prediction& prediction, const TargetBatch& target) override;
  Prediction do_apply(Prediction prediction, const Batch& rows) const override;
  std::vector<MetricValue> do_learned() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  double best(const at::Tensor& scores, const at::Tensor& is_class,
              const at::Tensor& weights) const;
  double value_of(const Decided& decided) const;

  std::optional<double> given_;
  std::optional<Cost> cost_;
  Score score_ = nullptr;
  TargetSpec target_;
  at::Tensor thresholds_;  // float64 [1], or of labels [C]
};

}  // namespace treadle::outputs
