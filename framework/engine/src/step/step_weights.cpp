#include "step/step_weights.h"

#include <algorithm>
#include <span>

#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>

#include <treadle/core/model/abilities/logs_values.h>

namespace treadle::engine {
namespace {

/// Of each shard that is here and has rows.
void add_own(const Objective& objective, const StepRows& rows, StepWeights& sums) {
  for (const Batch& shard : rows.shards) {
    if (shard.size() == 0)
      continue;
    sums.positions += objective.positions(shard);
    const std::vector<at::Tensor> weights = objective.weights(shard);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const at::Tensor weight = weights[i].to(at::kDouble);
      sums.of_terms[i] = sums.of_terms[i].defined() ? sums.of_terms[i].add(weight) : weight;
    }
  }
}

/// Numbers of each shard: its weights, and its positions.
std::vector<double> numbers_of(const Objective& objective, const Batch& shard) {
  std::vector<double> numbers(objective.terms().size() + 1);
  if (shard.size() == 0)
    return numbers;
  const std::vector<at::Tensor> weights = objective.weights(shard);
  std::transform(weights.begin(), weights.end(), numbers.begin(),
                 [](const at::Tensor& weight) { return weight.item<double>(); });
  numbers.back() = static_cast<double>(objective.positions(shard));
  return numbers;
}

}  // namespace

StepWeights weights_of(const Objective& objective, const StepRows& rows, ShardGroup* group,
                       c10::Device device, std::exception_ptr& error) {
  const at::NoGradGuard no_gradients;
  StepWeights sums{std::vector<at::Tensor>(objective.terms().size())};
  if (group == nullptr) {
    add_own(objective, rows, sums);
    return sums;
  }
  const std::size_t size = objective.terms().size() + 1;
  const std::size_t most = group->most_shards();
  std::vector<double> mine(most * size);
  try {
    if (!error) {
      for (std::size_t i = 0; i < rows.shards.size(); ++i) {
        const std::vector<double> numbers = numbers_of(objective, rows.shards[i]);
        std::copy(numbers.begin(), numbers.end(),
                  mine.begin() + static_cast<std::ptrdiff_t>(i * size));
      }
    }
  } catch (...) {
    error = std::current_exception();
  }
  std::vector<double> all(mine.size() * static_cast<std::size_t>(group->world_size()));
  group->all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<double> sum(size);
  for (std::int64_t rank = 0; rank < group->world_size(); ++rank) {
    const double* number = all.data() + static_cast<std::size_t>(rank) * mine.size();
    for (std::size_t i = 0; i < group->shards_of(rank).size() * size; ++i)
      sum[i % size] += number[i];
  }
  for (std::size_t i = 0; i + 1 < size; ++i)
    sums.of_terms[i] = at::scalar_tensor(sum[i], at::TensorOptions(at::kDouble).device(device));
  sums.positions = static_cast<std::int64_t>(sum.back());
  return sums;
}

bool may_add_losses(const Model& model) {
  const auto* const logs = dynamic_cast<const LogsValues*>(&model);
  return logs == nullptr || !logs->logged_names().empty();
}

}  // namespace treadle::engine
