#pragma once

#include <span>

#include <treadle/core/data/row_list.h>

#include "evaluation/fitted_metrics.h"
#include "evaluation/metric.h"

namespace treadle::internal {

/// Readies those of a report's metrics that make_breakdowns() has made for an
/// evaluation of `rows` of `data`. They borrow `fitted`.
void ready_breakdowns(std::span<const Metric> metrics, const FittedMetrics& fitted,
                      const EvaluatedRows& data, const RowList& rows);

}  // namespace treadle::internal
