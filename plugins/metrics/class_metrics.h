#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "class_counts.h"

namespace treadle::metrics {

/// One metric that is a function of counts.
struct CountScore {
  std::string_view name;        ///< "macro_recall"
  std::string_view class_name;  ///< "recall", for the values of single classes
  double (*score)(const Counts& counts);
  enum class Average { kMicro, kMacro } average;
  bool takes_labels = true;
};

/// A score with nothing to divide by is 0, as in scikit-learn.
double precision(const Counts& counts);
double recall(const Counts& counts);
double f1(const Counts& counts);
/// Intersection over union: the Jaccard index.
double iou(const Counts& counts);

inline constexpr CountScore kAccuracy{"accuracy", "", &recall, CountScore::Average::kMicro};
inline constexpr CountScore kMacroPrecision{"macro_precision", "precision", &precision,
                                            CountScore::Average::kMacro};
inline constexpr CountScore kMacroRecall{"macro_recall", "recall", &recall,
                                         CountScore::Average::kMacro};
inline constexpr CountScore kMacroF1{"macro_f1", "f1", &f1, CountScore::Average::kMacro};
inline constexpr CountScore kMeanIou{"mean_iou", "iou", &iou, CountScore::Average::kMacro,
                                     /*takes_labels=*/false};

/// A score of the classes or labels decided for: see decided().
///
/// Micro: over all positions together; of labels all must be right. Macro: the mean over the
/// classes that occur among the targets or the predictions, or over all labels, as scikit-learn
/// takes it.
///
/// Memory: four numbers a class. Without weights counts are whole numbers, and the result does not
/// depend on the order of batches or merges.
class CountMetric : public MetricComputer {
 public:
  CountMetric(const CountScore& score, const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  CountScore score_;
  bool per_class_ = false;
  bool is_labels_ = false;
  std::vector<std::string> class_names_;
  at::Tensor counts_;  // float64 [4, classes or 1]: the rows of Counts
};

/// The metric of one row of the table above.
template <const CountScore& kScore>
class CountMetricOf final : public CountMetric {
 public:
  explicit CountMetricOf(const Config& config) : CountMetric(kScore, config) {}
};

/// A table "confusion_matrix": row = actual class, column = most probable class, value =
/// positions (their weights). Memory: classes squared, so at most kMaxClasses.
class ConfusionMatrix final : public MetricComputer {
 public:
  static constexpr std::int64_t kMaxClasses = 1000;

  explicit ConfusionMatrix(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::vector<std::string> class_names_;
  at::Tensor cells_;  // float64 [classes * classes]
};

}  // namespace treadle::metrics
