#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <treadle/core/validation/metric_computer.h>

namespace treadle::internal {

/// A metric with the target it is computed for, started.
struct Metric {
  std::unique_ptr<MetricComputer> computer;
  std::size_t target = 0;
  TargetSpec spec = {};
  std::string prefix = {};

  TargetMetric view() const { return {computer.get(), target, spec, prefix}; }
};

inline std::vector<TargetMetric> views(const std::vector<Metric>& metrics) {
  std::vector<TargetMetric> views;
  for (const Metric& metric : metrics)
    views.push_back(metric.view());
  return views;
}

}  // namespace treadle::internal
