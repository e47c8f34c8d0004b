#include "document/shard_count.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include <treadle/core/components/module_state.h>
#include <treadle/core/model/abilities/estimates_work.h>
#include <treadle/engine/statistics_refresh.h>

namespace treadle::internal {
namespace {

// A core of a present machine, between the 25 (LSTM, small convolutions) and 120 (large products)
// GFLOP/s that were measured on one. Constants, because results depend on the number of shards.
constexpr double kOperationsPerSecond = 50e9;
constexpr double kBytesPerSecond = 10e9;
constexpr double kSecondsOfACall = 0.9e-6;
/// Of a step in several shards: batches are cut out, workers are woken and waited for.
constexpr double kSecondsOfSharding = 0.08e-3;
constexpr std::int64_t kMost = 8;
/// Statistics over fewer rows are noisier, and the training goes another way: a small resnet's loss
/// was twice as high after 40 steps with 8 rows as with 64. With 16 rows, four convolutions on the
/// digits reach the loss of 32 rows: 0.086 ± 0.015 and 0.082 ± 0.006 over five seeds at a rate of
/// 0.001, 0.091 ± 0.025 and 0.127 ± 0.023 at 0.01; 8 rows reach 0.100 ± 0.021 at 0.001.
constexpr std::int64_t kRowsOfANorm = 16;
constexpr double kSlower = 1.03;

/// The seconds of a step, by what divides them.
struct StepTime {
  double calls = 0;  // in each shard, on a core of its own
  double memory =
      0;            // weights read, gradients written and added: for each shard, and cores share it
  double rows = 0;  // of all of them, which shards divide

  /// With two workers, the fewest that shards are for.
  double seconds(std::int64_t shards) const {
    const auto count = static_cast<double>(shards);
    return shards == 1 ? calls + memory + rows
                       : kSecondsOfSharding + std::ceil(count / 2) * (calls + rows / count) +
                             count * memory;
  }
};

double parameter_bytes(const Model& model) {
  double sum = 0;
  for (const at::Tensor& parameter : distinct_parameters(model))
    sum += static_cast<double>(parameter.nbytes());
  return sum;
}

/// Of a model that does not tell: each weight is used once for a row. Of a convolution that is too
/// little, so it is rather cut too seldom.
StepWork work_by_parameters(const Model& model) {
  double count = 0;
  for (const at::Tensor& parameter : distinct_parameters(model))
    count += static_cast<double>(parameter.numel());
  return {6 * count, 0, 20 * static_cast<double>(distinct_parameters(model).size())};
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g ms", seconds * 1e3);
  return text;
}

}  // namespace

ShardChoice choose_shards(const Model& model, std::int64_t rows) {
  const auto* tells = dynamic_cast<const EstimatesWork*>(&model);
  const std::optional<StepWork> told = tells != nullptr ? tells->training_work() : std::nullopt;
  const StepWork work = told ? *told : work_by_parameters(model);
  StepTime step;
  step.rows = static_cast<double>(rows) *
              (work.operations / kOperationsPerSecond + work.bytes / kBytesPerSecond);
  step.calls = work.calls * kSecondsOfACall;
  step.memory = 3 * parameter_bytes(model) / kBytesPerSecond;
  const bool has_statistics = engine::gathers_statistics(model);
  const std::int64_t most = std::min(kMost, has_statistics ? rows / kRowsOfANorm : rows);
  ShardChoice choice;
  // More shards than two serve machines with more workers, where they cost two workers next to
  // nothing.
  for (std::int64_t shards = 2; shards <= most; shards *= 2) {
    const bool is_first = shards == 2;
    const double allowed = is_first ? step.seconds(1) / kSlower : step.seconds(2) * kSlower;
    if (step.seconds(shards) <= allowed)
      choice.shards = shards;
  }
  choice.reason = "a step of about " + milliseconds(step.rows) + ", and " +
                  milliseconds(step.calls + step.memory) + " for each shard" +
                  (told ? "" : ", by its parameters");
  if (has_statistics && choice.shards > 1) {
    choice.reason += "; batch normalization sees " + std::to_string(rows / choice.shards) +
                     " rows at a time instead of " + std::to_string(rows);
  }
  return choice;
}

}  // namespace treadle::internal
