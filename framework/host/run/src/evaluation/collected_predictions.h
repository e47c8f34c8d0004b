#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/validation/metric_computer.h>

namespace treadle::internal {

/// Keeps what a model predicts for the rows it is evaluated on: as a metric of the report, so that
/// the predictions of the folds of a cross-validation come together, are stored with each fit and
/// are there again after a resume. They are what the members of an ensemble are chosen by.
///
/// Its memory grows with the rows: all numbers that are predicted for them, and the target.
class CollectedPredictions final : public MetricComputer {
 public:
  ~CollectedPredictions() override;

  /// All of it, in the order of the rows in the data. On the CPU.
  struct Rows {
    at::Tensor rows;    ///< int64 [N]; a row that was in several validation parts is there as often
    at::Tensor groups;  ///< int64 [N]; undefined where the data has none
    Prediction prediction;
    at::Tensor targets;  ///< as TargetBatch::values: [N, target.shape...]
    at::Tensor weights;  ///< [N, positions...]; undefined: 1 each
  };
  /// Expects at least one batch.
  Rows collected() const;
  bool is_empty() const { return rows_.empty(); }

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override { return {}; }
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  // One for each batch.
  std::vector<at::Tensor> rows_;
  std::vector<at::Tensor> groups_;  // none where the data has none
  std::vector<Prediction> predictions_;
  std::vector<at::Tensor> targets_;
  std::vector<at::Tensor> weights_;  // none where each counts 1
};

}  // namespace treadle::internal
