#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/metric_computer.h>

namespace treadle::metrics {

/// Area under the ROC curve, exact, from the ranks of the scores; ties count half (Mann-Whitney).
///
/// Two classes: of the second one. More: one class against the rest, mean over the classes for
/// which there are rows inside and outside (scikit-learn: multi_class="ovr", average="macro").
///
/// Memory grows with the rows: 8 bytes a row plus one score (two classes) or one a class, in the
/// run's dtype. **Rationale:** an area from a fixed number of bins is not the number people
/// compare.
class Auc final : public MetricComputer {
 public:
  explicit Auc(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Predictions& predictions, const Batch& batch) override;
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
  double area(const Rows& rows, std::int64_t column, std::int64_t positive) const;

  std::int64_t class_count_ = 0;
  std::vector<Rows> seen_;
};

/// Mean of -log p(right class), where p is kept within [eps, 1 - eps] and eps is the machine
/// epsilon of the predictions' dtype, as in scikit-learn.
class LogLoss final : public MetricComputer {
 public:
  explicit LogLoss(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Predictions& predictions, const Batch& batch) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  double sum_ = 0;
  double weight_ = 0;
};

}  // namespace treadle::metrics
