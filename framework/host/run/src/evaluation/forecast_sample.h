#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <treadle/core/data/row_list.h>
#include <treadle/core/validation/metric_computer.h>

#include "data/evaluated_rows.h"

namespace treadle::internal {

/// A few forecasts beside what came and what went before, for the report to draw: the table
/// "forecast_sample", a row for each step of each number. Steps are counted from the first that is
/// predicted, 1; those up to 0 are given to the model (or lie in the gap), and have no prediction.
class ForecastSample final : public MetricComputer {
 public:
  static constexpr const char* kTable = "forecast_sample";
  static constexpr std::size_t kMostForecasts = 6;
  /// Of a target of many numbers the first are drawn.
  static constexpr std::int64_t kMostNumbers = 8;

  /// `data` has samples, and is borrowed; its parts may be null where nothing is updated.
  ForecastSample(const EvaluatedRows& data, std::size_t target) : data_(data), target_(target) {}
  ~ForecastSample() override;

  /// Before the first update: which rows there will be. Some of them, evenly spread, are drawn.
  void choose_of(const RowList& rows);

 private:
  struct Forecast {
    std::string label;  // of the first predicted step
    at::Tensor past;    // float64 [steps, numbers]
    at::Tensor steps;   // float64 [horizon, numbers, 2 + extras]: actual, predicted, extras
  };

  void do_start(const TargetSpec& target) override;
  void do_reset() override;
  void do_update(const Prediction& prediction, const TargetBatch& target) override;
  void do_merge(const MetricComputer& other) override;
  MetricResult do_compute() const override;
  StateDict do_state() const override;
  void do_load_state(const StateDict& state) override;

  at::Tensor past_of(std::int64_t row, std::int64_t horizon) const;
  std::string label_of(std::int64_t row) const;

  const EvaluatedRows data_;
  const std::size_t target_;
  std::int64_t numbers_ = 1;
  std::vector<std::int64_t> chosen_;  // ascending
  std::vector<std::string> extras_;   // names
  std::vector<Forecast> forecasts_;
};

}  // namespace treadle::internal
