#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "positions.h"

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

  struct Rows {
    at::Tensor scores;   // [rows, 1 or classes]
    at::Tensor classes;  // int64 [rows]
    at::Tensor weights;  // float64 [rows]; undefined: 1 each
  };

  Rows all_rows() const;  // undefined scores when there are none
  Number value() const;
  Number area(const Rows& rows, std::int64_t column, std::int64_t positive) const;

  std::vector<std::string> class_names_;
  std::vector<Rows> seen_;
};

/// -log p(right class), or of a distribution t -sum_c t_c log p_c: float64 [N]. p is kept within
/// [eps, 1 - eps], eps the machine epsilon of the predictions' dtype, as in scikit-learn.
at::Tensor minus_log_likelihood(const Positions& positions);

/// One metric that is a mean over positions.
struct PositionScore {
  std::string_view name;
  std::initializer_list<TargetKind> kinds;
  /// float64 [N]
  at::Tensor (*each)(const Positions& positions);
  double (*of_mean)(double mean) = nullptr;  ///< null: the mean itself
};

/// A mean over positions, lower is better. Memory: two numbers.
class PositionMetric : public MetricComputer {
 public:
  explicit PositionMetric(const PositionScore& score) : score_(score) {}

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  const PositionScore& score_;
  double sum_ = 0;
  double weight_ = 0;
};

/// The mean of minus_log_likelihood().
extern const PositionScore kLogLoss;
/// exp of the log loss of classes.
extern const PositionScore kPerplexity;
/// sum_c t_c (log t_c - log p_c), p kept as for the log loss; 0 log 0 is 0.
extern const PositionScore kKlDiv;
/// The share of labels that are wrong, a label being present where its probability is above one
/// half.
extern const PositionScore kHammingLoss;

template <const PositionScore& kScore>
class PositionMetricOf final : public PositionMetric {
 public:
  explicit PositionMetricOf(const Config&) : PositionMetric(kScore) {}
};

}  // namespace treadle::metrics
