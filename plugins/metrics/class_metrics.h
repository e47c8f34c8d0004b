#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/base/config.h>
#include <treadle/core/metric_computer.h>

namespace treadle::metrics {

/// What a score is made of: weights of rows, per class or over all classes.
struct Counts {
  double hits = 0;       ///< of the class and predicted as it
  double predicted = 0;  ///< predicted as the class
  double actual = 0;     ///< of the class
};

/// One metric that is a function of counts.
struct CountScore {
  std::string_view name;        ///< "macro_recall"
  std::string_view class_name;  ///< "recall", for the values of single classes
  double (*score)(const Counts& counts);
  enum class Average { kMicro, kMacro } average;
};

/// A score with nothing to divide by is 0, as in scikit-learn.
double precision(const Counts& counts);
double recall(const Counts& counts);
double f1(const Counts& counts);

inline constexpr CountScore kAccuracy{"accuracy", "", &recall, CountScore::Average::kMicro};
inline constexpr CountScore kMacroPrecision{"macro_precision", "precision", &precision,
                                            CountScore::Average::kMacro};
inline constexpr CountScore kMacroRecall{"macro_recall", "recall", &recall,
                                         CountScore::Average::kMacro};
inline constexpr CountScore kMacroF1{"macro_f1", "f1", &f1, CountScore::Average::kMacro};
inline constexpr CountScore kMicroPrecision{"micro_precision", "", &precision,
                                            CountScore::Average::kMicro};
inline constexpr CountScore kMicroRecall{"micro_recall", "", &recall, CountScore::Average::kMicro};
inline constexpr CountScore kMicroF1{"micro_f1", "", &f1, CountScore::Average::kMicro};

/// A score of the most probable class (the first of equals). Micro: over all rows together. Macro:
/// the mean over the classes that occur among the targets or the predictions, as scikit-learn takes
/// it.
///
/// Memory: three numbers a class. Without row weights counts are whole numbers, and the result does
/// not depend on the order of batches or merges.
class CountMetric : public MetricComputer {
 public:
  CountMetric(const CountScore& score, const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Predictions& predictions, const Batch& batch) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  CountScore score_;
  bool per_class_ = false;
  std::vector<std::string> class_names_;
  at::Tensor counts_;  // float64 [3, classes or 1]: the rows of Counts
};

/// The metric of one row of the table above.
template <const CountScore& kScore>
class CountMetricOf final : public CountMetric {
 public:
  explicit CountMetricOf(const Config& config) : CountMetric(kScore, config) {}
};

/// A table "confusion_matrix": row = actual class, column = most probable class, value = rows
/// (their weights). Memory: classes squared, so at most kMaxClasses.
class ConfusionMatrix final : public MetricComputer {
 public:
  static constexpr std::int64_t kMaxClasses = 1000;

  explicit ConfusionMatrix(const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Predictions& predictions, const Batch& batch) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  std::vector<std::string> class_names_;
  at::Tensor cells_;  // float64 [classes * classes]
};

}  // namespace treadle::metrics
