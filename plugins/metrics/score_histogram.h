#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

namespace treadle::metrics {

/// `score_histogram`, for two classes: how probabilities of the second class are distributed among
/// the positions of either, as a table "score_histogram" with kBins rows. Columns: "from", "to",
/// and for each class its name: the weight of its positions from the one up to, but below, the
/// other; 1 is in the last bin. Memory: two numbers a bin.
class ScoreHistogram final : public MetricComputer {
 public:
  static constexpr std::int64_t kBins = 20;

  explicit ScoreHistogram(const Config&) {}

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::vector<std::string> class_names_;
  at::Tensor weights_;  // float64 [2, kBins]
};

}  // namespace treadle::metrics
