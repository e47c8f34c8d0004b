#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <treadle/base/number.h>
#include <treadle/host/record/training_curve.h>

namespace treadle {

/// The first epoch in which a metric of a training was so good.
struct Milestone {
  /// 0.1 to 1: of a metric that is a share, such as an accuracy, the value itself; of others the
  /// part of the way from the first value to the best one.
  double level = 0;
  double value = 0;  ///< of the metric, after that epoch
  std::int64_t epoch = 0;
  double seconds = 0;  ///< of training, up to and with that epoch
};

/// How fast a training got where it got: of `metric`, a name of the curve with its direction, or of
/// the validation loss where it is "loss".
struct Milestones {
  std::string metric;
  bool are_shares = false;  ///< of the way, else values
  std::vector<Milestone> reached = {};
};

/// Nothing is reached where the metric has no value.
Milestones milestones_of(const TrainingCurve& curve, const MetricValue& metric);

}  // namespace treadle
