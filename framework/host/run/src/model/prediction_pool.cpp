#include "model/prediction_pool.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logit.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/validation/mean_of_members.h>

namespace treadle::internal {
namespace {

constexpr double kLeast = std::numeric_limits<float>::epsilon();

/// sum_m w_m x_m, where each x_m has the shape of the predictions.
template <typename Member>
at::Tensor weighted_sum(const at::Tensor& weights, std::size_t members, Member&& member) {
  at::Tensor sum;
  for (std::size_t m = 0; m < members; ++m) {
    const at::Tensor x = member(m);
    const at::Tensor part = x.mul(weights[static_cast<std::int64_t>(m)].to(x.options()));
    sum = sum.defined() ? sum.add_(part) : part;
  }
  return sum;
}

constexpr const char* kLogarithmic = "logarithmic";

nlohmann::json json_of(const at::Tensor& numbers) {
  const at::Tensor of = numbers.contiguous();
  return std::vector<double>(of.data_ptr<double>(), of.data_ptr<double>() + of.numel());
}

/// float64 [numbers] of a list of numbers, or of one.
at::Tensor tensor_of(const nlohmann::json& stored) {
  const nlohmann::json list = stored.is_array() ? stored : nlohmann::json::array({stored});
  for (const nlohmann::json& number : list) {
    if (!number.is_number())
      throw StorageError("a weight of the ensemble is no number: " + describe_value(number));
  }
  return at::tensor(list.get<std::vector<double>>(), at::kDouble);
}

}  // namespace

void write_pool(const PredictionPool& pool, EnsembleResult& ensemble) {
  ensemble.pool = pool.kind == PredictionPool::Kind::kLinear ? "linear" : kLogarithmic;
  if (pool.intercept.defined())
    ensemble.intercept = json_of(pool.intercept);
  std::int64_t number = 0;
  for (EnsembleResult::Member& member : ensemble.members) {
    const nlohmann::json weights = json_of(pool.weights[number++]);
    member.weight = weights.size() == 1 ? weights.front() : weights;
  }
}

PredictionPool read_pool(const EnsembleResult& ensemble) {
  PredictionPool pool;
  pool.kind = ensemble.pool == kLogarithmic ? PredictionPool::Kind::kLogarithmic
                                            : PredictionPool::Kind::kLinear;
  if (!ensemble.intercept.is_null())
    pool.intercept = tensor_of(ensemble.intercept);
  if (ensemble.members.empty())
    throw StorageError("the ensemble has no members");
  std::vector<at::Tensor> weights;
  for (const EnsembleResult::Member& member : ensemble.members) {
    weights.push_back(tensor_of(member.weight));
    if (weights.back().numel() == 0 || weights.back().numel() != weights.front().numel())
      throw StorageError("the members of the ensemble have weights of different lengths");
  }
  pool.weights = at::stack(weights);
  return pool;
}

Prediction::Uncertainty pooled_uncertainty(const PredictionPool& pool,
                                           std::span<const Prediction> members) {
  const at::Tensor sums = pool.weights.sum(0, /*keepdim=*/true);
  const at::Tensor shares = at::where(sums > 0, pool.weights, at::ones_like(pool.weights));
  MeanOfMembers mean;
  for (std::size_t m = 0; m < members.size(); ++m)
    mean.add(members[m], shares[static_cast<std::int64_t>(m)]);
  return mean.uncertainty();
}

at::Tensor logits_of(TargetKind target, const at::Tensor& probabilities) {
  const at::Tensor p = probabilities.to(at::kDouble);
  return target == TargetKind::kLabels ? at::logit(p, kLeast) : p.clamp_min(kLeast).log();
}

at::Tensor PredictionPool::operator()(TargetKind target,
                                      std::span<const at::Tensor> predictions) const {
  TREADLE_EXPECTS(static_cast<std::int64_t>(predictions.size()) == weights.size(0),
                  "there is a weight for each member");
  if (kind == Kind::kLinear)
    return weighted_sum(weights, predictions.size(), [&](std::size_t m) { return predictions[m]; });
  at::Tensor logits = weighted_sum(weights, predictions.size(), [&](std::size_t m) {
    return logits_of(target, predictions[m]);
  });
  if (intercept.defined())
    logits += intercept.to(logits.device());
  const at::Tensor pooled =
      target == TargetKind::kLabels ? at::sigmoid(logits) : at::softmax(logits, -1);
  return pooled.to(predictions.front().scalar_type());
}

}  // namespace treadle::internal
