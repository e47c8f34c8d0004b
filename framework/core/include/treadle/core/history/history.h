#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/core/history/run_observer.h>
#include <treadle/core/history/trend.h>

namespace treadle {

/// A number of a row of history: "train_loss", "val_loss", "learning_rate", a metric or a logged
/// value. Where two have one name, the first of these counts.
std::optional<MetricValue> find_value(const EpochSummary& row, std::string_view name);

/// How that number went; rows that do not have it, or where it is undefined, are left out.
Trend trend_of(std::span<const EpochSummary> history, std::string_view name);

}  // namespace treadle
