#pragma once

#include <cstdint>
#include <span>

#include "evaluation/fitted_metrics.h"
#include "load/metric.h"

namespace treadle::internal {

/// Readies those of a report's metrics that DocumentComponents::make_breakdowns() has made for an
/// evaluation of `rows` of `data`. They borrow `fitted`.
void ready_breakdowns(std::span<const Metric> metrics, const FittedMetrics& fitted,
                      const EvaluatedRows& data, std::span<const std::int64_t> rows);

}  // namespace treadle::internal
