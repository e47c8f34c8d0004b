#pragma once

#include <treadle/base/config.h>
#include <treadle/core/training/training_callback.h>

namespace treadle::callbacks {

/// Evaluates, and ends with, an exponential moving average of the weights. The session keeps it.
class ExponentialMovingAverage final : public TrainingCallback {
 public:
  explicit ExponentialMovingAverage(const Config& config) {
    averaging_.start = config.get<Duration>("start");
    averaging_.decay = config.get<double>("decay");
  }

 private:
  void do_begin(TrainingControl& control) override { control.average_weights(averaging_); }

  WeightAveraging averaging_;
};

/// Evaluates, and ends with, the mean of the weights at several moments.
class StochasticWeightAveraging final : public TrainingCallback {
 public:
  explicit StochasticWeightAveraging(const Config& config) {
    averaging_.start = config.get<Duration>("start");
    averaging_.every = config.get<Duration>("every");
  }

 private:
  void do_begin(TrainingControl& control) override { control.average_weights(averaging_); }

  WeightAveraging averaging_;
};

}  // namespace treadle::callbacks
