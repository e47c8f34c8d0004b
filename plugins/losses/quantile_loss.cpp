#include "quantile_loss.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include <ATen/TensorOperators.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/tensor.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::losses {

Quantile::Quantile(const Config& config)
    : quantiles_(config.get<std::vector<double>>("quantiles")),
      levels_(at::tensor(quantiles_, at::kDouble)) {
  if (std::adjacent_find(quantiles_.begin(), quantiles_.end(), std::greater_equal<>()) !=
      quantiles_.end())
    config.fail("quantiles", "must ascend, each greater than the one before");
  if (std::find(quantiles_.begin(), quantiles_.end(), 0.5) == quantiles_.end())
    config.fail("quantiles", "must contain 0.5: the median is the prediction");
  for (const double quantile : quantiles_)
    names_.push_back("q" + nlohmann::json(quantile).dump());
}

std::vector<OutputSpec> Quantile::do_outputs_for(const TargetSpec& target) const {
  expect_kind("quantile", {TargetKind::kNumbers}, target);
  const auto quantiles = static_cast<std::int64_t>(quantiles_.size());
  return {{"quantiles", shape_per_position(target, quantiles * target.width()),
           std::vector<Estimate>(quantiles_.size(), Estimate::kLocation)}};
}

LossTerms Quantile::do_forward(const std::vector<at::Tensor>& outputs,
                               const TargetBatch& target) const {
  const Positions numbers(outputs[0], target);
  const at::Tensor& targets = numbers.target;
  const auto quantiles = static_cast<std::int64_t>(quantiles_.size());
  const at::Tensor q = levels_.with(numbers.output.options()).view({quantiles, 1});
  const at::Tensor d = targets.unsqueeze(1) - numbers.output.view({-1, quantiles, targets.size(1)});
  const at::Tensor each = at::maximum(d * q, d * (q - 1));
  return {
      numbers.weights.defined() ? at::mv(each.flatten(1).t(), numbers.weights).sum() : each.sum(),
      do_weight(target)};
}

at::Tensor Quantile::do_weight(const TargetBatch& target) const {
  return weight_of_values(target,
                          target.values().size(-1) * static_cast<std::int64_t>(quantiles_.size()));
}

Prediction Quantile::do_prediction(const std::vector<at::Tensor>& outputs) const {
  Prediction prediction;
  const auto count = static_cast<std::int64_t>(quantiles_.size());
  std::vector<std::int64_t> sizes = outputs[0].sizes().vec();
  sizes.back() /= count;
  sizes.insert(sizes.end() - 1, count);
  const at::Tensor by_level = outputs[0].reshape(sizes);  // [B, positions..., quantiles, width]
  const at::Tensor ordered = std::get<0>(by_level.sort(-2));
  if (count > 1)
    prediction.crossed = ordered.ne(by_level).any(-1).any(-1);
  for (std::size_t i = 0; i < quantiles_.size(); ++i) {
    const at::Tensor values = ordered.select(-2, static_cast<std::int64_t>(i));
    if (quantiles_[i] == 0.5)
      prediction.values = values;
    else
      prediction.extras.push_back({names_[i], values, quantiles_[i]});
  }
  return prediction;
}

}  // namespace treadle::losses
