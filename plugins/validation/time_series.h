#pragma once

#include <cstdint>
#include <optional>

#include <treadle/base/config.h>
#include <treadle/core/validation/cross_validator.h>
#include <treadle/core/validation/time_steps.h>

#include "split_parameters.h"
#include "test_rows.h"

namespace treadle::validation {

/// Training rows before the rows that are judged, in steps of time: what `time_series` and
/// `walk_forward` have in common.
class PastRows {
 public:
  explicit PastRows(const Config& config);

  /// The fold that is judged by the steps [begin, end): it trains on what is at least `gap` steps
  /// before them. With `validation_size` the last of those validate, and the judged rows test.
  Fold fold(const TimeSteps& steps, std::int64_t begin, std::int64_t end) const;
  /// Of the run's model: the last steps, as many as a fold may train on.
  Fold refit(const TimeSteps& steps) const;
  /// The fewest steps before those that are judged.
  std::int64_t fewest(const TimeSteps& steps) const;
  std::int64_t gap() const { return gap_; }

 private:
  std::int64_t gap_ = 0;
  std::optional<std::int64_t> most_;  // nothing: the training rows grow from fold to fold
  std::optional<Size> validation_;
};

/// `time_series`: a given number of folds at the end of the data, each judged by the steps after
/// its training rows. Where each row has its own time, the folds are those of scikit-learn's
/// TimeSeriesSplit.
class TimeSeries final : public CrossValidator {
 public:
  explicit TimeSeries(const Config& config);
  ~TimeSeries() override;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;
  ValidationPlan folds_of(const SplitRequest& request) const;

  std::int64_t folds_ = 5;
  std::optional<Size> test_size_;
  PastRows past_;
  bool refit_ = true;
  TestRows test_;
};

/// `walk_forward`: from `start` on, a model judges the next `retrain_every` blocks of `test_size`
/// steps; then the next one is trained on all that is known by then.
class WalkForward final : public CrossValidator {
 public:
  explicit WalkForward(const Config& config);
  ~WalkForward() override;

 private:
  ValidationPlan do_plan(const SplitRequest& request) const override;
  ValidationPlan folds_of(const SplitRequest& request) const;

  Size start_;
  Size test_size_;
  std::int64_t retrain_every_ = 1;
  bool warm_start_ = false;
  PastRows past_;
  bool refit_ = true;
  TestRows test_;
};

}  // namespace treadle::validation
