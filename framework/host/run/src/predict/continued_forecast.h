#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <treadle/core/data/batch.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/core/validation/predictions.h>
#include <treadle/engine/evaluation.h>
#include <treadle/host/run/predictor.h>

namespace treadle::internal {

/// A number of a target.
struct PredictedNumber {
  std::size_t target = 0;
  std::int64_t number = 0;
};

/// For each column of the first input the number of a target that it is. `rows` have targets.
/// Throws a DataError that names a column that is none.
std::vector<PredictedNumber> predicted_columns(const RowReader& rows);

/// Forecasts of any number of steps by a model of `horizon` steps. Beyond them it is given what it
/// predicted as if it had been seen, window by window.
///
/// With samples, each sample is a path: the model is given the draws of a path for the next steps
/// of the same path (ancestral sampling; Salinas et al., "DeepAR", 2020, section 3.1). Beyond the
/// horizon the spread of the paths is that of the whole forecast, so their means and quantiles take
/// the place of those of one step: the mean of what is predicted for each path, and the smallest
/// sample that a share of at least `level` does not exceed. Within one horizon, steps are drawn
/// independently, as the loss has them.
class ContinuedForecast {
 public:
  /// Predicts for windows; `samples` may be null.
  using Predict = std::function<Predictions(const Batch&, const engine::DrawRequest* samples)>;

  /// `columns`: predicted_columns(); of no use for as many steps as the horizon.
  ContinuedForecast(Predict predict, std::int64_t horizon, std::vector<PredictedNumber> columns)
      : predict_(std::move(predict)), horizon_(horizon), columns_(std::move(columns)) {}

  /// [B, steps, width], samples [samples, B, steps, width]. Draws are a function of the seed and of
  /// Batch::rows.
  Predictions of(Batch windows, std::int64_t steps, const SampleOptions& samples) const;

 private:
  void move_on(Batch& windows, const Predictions& seen, std::int64_t from,
               std::int64_t paths) const;

  Predict predict_;
  std::int64_t horizon_;
  std::vector<PredictedNumber> columns_;
};

}  // namespace treadle::internal
