#include "load/shard_count.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include <treadle/core/model_abilities.h>
#include <treadle/core/module_state.h>
#include <treadle/engine/statistics_refresh.h>

namespace treadle::internal {
namespace {

// A core of a present machine, between the 25 (LSTM, small convolutions) and 120 (large products)
// GFLOP/s that were measured on one. Constants, because results depend on the number of shards.
constexpr double kOperationsPerSecond = 50e9;
constexpr double kBytesPerSecond = 10e9;
// Less would not pay for a replica of the step.
constexpr double kSecondsOfAShard = 1e-3;
constexpr std::int64_t kMost = 8;

double parameter_bytes(const Model& model) {
  double sum = 0;
  for (const at::Tensor& parameter : distinct_parameters(model))
    sum += static_cast<double>(parameter.nbytes());
  return sum;
}

/// Of a model that does not tell: each weight is used once for a row. Of a convolution that is too
/// little, so it is rather cut too seldom.
RowWork work_by_parameters(const Model& model) {
  double count = 0;
  for (const at::Tensor& parameter : distinct_parameters(model))
    count += static_cast<double>(parameter.numel());
  return {6 * count, 0};
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g ms", seconds * 1e3);
  return text;
}

}  // namespace

ShardChoice choose_shards(const Model& model, std::int64_t rows) {
  const auto* tells = dynamic_cast<const EstimatesWork*>(&model);
  const std::optional<RowWork> told = tells != nullptr ? tells->training_work() : std::nullopt;
  const RowWork row = told ? *told : work_by_parameters(model);
  const double seconds = static_cast<double>(rows) *
                         (row.operations / kOperationsPerSecond + row.bytes / kBytesPerSecond);
  // Each shard reads the weights and writes gradients that are added, however few rows it has.
  const double of_each = 3 * parameter_bytes(model) / kBytesPerSecond;
  const bool has_statistics = engine::gathers_statistics(model);
  const std::int64_t most = std::min(kMost, has_statistics ? rows / 2 : rows);
  const double wanted = std::floor(seconds / std::max(kSecondsOfAShard, of_each));
  ShardChoice choice;
  choice.shards = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::min(wanted, static_cast<double>(most))));
  choice.reason =
      "about " + milliseconds(seconds) + " of work in a step" + (told ? "" : ", by its parameters");
  if (has_statistics && choice.shards > 1) {
    choice.reason += "; batch normalization sees " + std::to_string(rows / choice.shards) +
                     " rows at a time instead of " + std::to_string(rows);
  }
  return choice;
}

}  // namespace treadle::internal
