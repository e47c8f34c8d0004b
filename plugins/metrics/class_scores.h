#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/validation/metric_computer.h>

#include "class_choice.h"
#include "class_counts.h"

namespace treadle::metrics {

/// A share: undefined where the divisor is 0.
struct Share {
  double part = 0;
  double whole = 0;
};

/// One score of a class against the rest, from its counts.
struct ClassScore {
  std::string_view name;  ///< "recall"
  /// `beta` is the parameter of f_beta; other scores ignore it.
  Share (*share)(const Counts& counts, double beta);
  /// Why it is undefined where the divisor is 0; the name of the class follows.
  std::string_view nothing;
};

/// hits / predicted: the share of predictions of the class that are right.
extern const ClassScore kPrecision;
/// hits / actual: the share of rows of the class that are found.
extern const ClassScore kRecall;
/// The harmonic mean of precision and recall.
extern const ClassScore kF1;
/// (1 + b^2) hits / (b^2 actual + predicted): recall counts b times as much as precision.
extern const ClassScore kFBeta;
/// The share of rows of other classes that are not predicted to be of the class.
extern const ClassScore kSpecificity;

/// A score of one class or label, or an average; see ClassChoice.
///
/// Averages are taken over the classes that occur among targets or predictions, or over all labels,
/// and the score of one of them is 0 where it is undefined, as in scikit-learn (zero_division=0).
/// Macro: the mean. Weighted: each class counts as often as it occurs among the targets. Micro: the
/// sum of the parts over the sum of the wholes.
class ClassScoreMetric : public ClassCountsMetric {
 public:
  ClassScoreMetric(const ClassScore& score, const Config& config);

 private:
  void do_start(const TargetSpec& target) override;
  MetricResult do_compute() const override;

  Number value() const;
  Number of_class(const std::vector<Counts>& counts, std::size_t index) const;
  Number average(const std::vector<Counts>& counts) const;

  const ClassScore& score_;
  double beta_;
  ClassChoice choice_;
};

template <const ClassScore& kScore>
class ClassScoreMetricOf final : public ClassScoreMetric {
 public:
  explicit ClassScoreMetricOf(const Config& config) : ClassScoreMetric(kScore, config) {}
};

}  // namespace treadle::metrics
