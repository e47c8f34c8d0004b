#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include <treadle/core/components/state_dict.h>
#include <treadle/core/data/row_list.h>

#include "data/evaluated_rows.h"
#include "evaluation/metric.h"

namespace treadle::internal {

/// State of the document's metrics from the training rows of one training (FitsTrainingRows), in
/// the order of make_metrics().
class FittedMetrics {
 public:
  /// `rows`: the training rows, of `data.rows`.
  void fit(std::span<const Metric> metrics, const EvaluatedRows& data, const RowList& rows);

  /// Hands it to metrics of the document, made anew, that will see rows of those `groups`.
  void use_in(std::span<const Metric> metrics, const at::Tensor& groups) const;
  void use_in(MetricComputer& metric, std::size_t index, const at::Tensor& groups) const;

  /// Adds it to a training's preprocessing, and takes it from there.
  void save_in(StateDict& preprocessing) const;
  void load_from(const StateDict& preprocessing);

 private:
  std::vector<StateDict> states_;  // by metric; empty: it takes nothing
};

}  // namespace treadle::internal
