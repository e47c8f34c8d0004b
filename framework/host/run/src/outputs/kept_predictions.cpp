#include "outputs/kept_predictions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/isin.h>
#include <ATen/ops/ones.h>

#include <treadle/base/error.h>

#include "evaluation/collected_predictions.h"

namespace treadle::internal {

std::optional<KeptPredictions> kept_in(std::span<const Metric> metrics) {
  std::optional<KeptPredictions> kept;
  for (const Metric& metric : metrics) {
    const auto* const collecting = dynamic_cast<const CollectedPredictions*>(metric.computer.get());
    if (collecting == nullptr || collecting->is_empty())
      continue;
    CollectedPredictions::Rows of_target = collecting->collected();
    if (!kept)
      kept.emplace();
    kept->rows.rows = of_target.rows;
    kept->rows.groups = of_target.groups;
    kept->predictions.push_back(std::move(of_target.prediction));
    kept->rows.targets.push_back(of_target.targets);
    kept->rows.position_weights.push_back(of_target.weights);
  }
  if (kept)
    kept->rows.original_targets = kept->rows.targets;
  return kept;
}

void align(std::span<KeptPredictions> parts) {
  for (std::size_t target = 0; !parts.empty() && target < parts[0].predictions.size(); ++target) {
    const auto any = [&](const auto& holds) {
      return std::any_of(parts.begin(), parts.end(), [&](const KeptPredictions& part) {
        return holds(part.predictions[target]);
      });
    };
    const bool are_decided = any([](const Prediction& one) { return one.decision.defined(); });
    const bool lack_logits = any([](const Prediction& one) { return !one.logits.defined(); });
    std::vector<Prediction::Extra> extras;  // of all, with any values
    for (const KeptPredictions& part : parts) {
      for (const Prediction::Extra& extra : part.predictions[target].extras) {
        if (std::none_of(extras.begin(), extras.end(),
                         [&](const auto& other) { return other.name == extra.name; }))
          extras.push_back(extra);
      }
    }
    for (KeptPredictions& part : parts) {
      Prediction& prediction = part.predictions[target];
      if (lack_logits)
        prediction.logits = at::Tensor();
      if (are_decided)
        prediction.decision = decided(prediction);
      std::vector<Prediction::Extra> own = std::exchange(prediction.extras, extras);
      for (Prediction::Extra& extra : prediction.extras) {
        const auto found = std::find_if(
            own.begin(), own.end(), [&](const auto& other) { return other.name == extra.name; });
        extra.values =
            found != own.end() ? found->values : at::full_like(prediction.values, std::nan(""));
      }
    }
  }
}

KeptPredictions joined(std::span<const KeptPredictions> parts) {
  TREADLE_EXPECTS(!parts.empty(), "there are predictions to join");
  KeptPredictions all = parts.front();
  const auto join = [&](auto&& tensor_of) {
    std::vector<at::Tensor> tensors;
    for (const KeptPredictions& part : parts)
      tensors.push_back(tensor_of(part));
    return tensors.front().defined() ? at::cat(tensors) : at::Tensor();
  };
  all.rows.rows = join([](const KeptPredictions& part) { return part.rows.rows; });
  all.rows.groups = join([](const KeptPredictions& part) { return part.rows.groups; });
  for (std::size_t target = 0; target < all.predictions.size(); ++target) {
    for (std::size_t part = 1; part < parts.size(); ++part)
      append(all.predictions[target], parts[part].predictions[target]);
    all.rows.targets[target] =
        join([&](const KeptPredictions& part) { return part.rows.targets[target]; });
    bool has_weights = false;
    for (const KeptPredictions& part : parts)
      has_weights = has_weights || part.rows.position_weights[target].defined();
    if (!has_weights)
      continue;
    // A part may have no padding where another one has some.
    all.rows.position_weights[target] = join([&](const KeptPredictions& part) {
      const at::Tensor& weights = part.rows.position_weights[target];
      const at::Tensor& values = part.predictions[target].values;
      return weights.defined() ? weights.to(at::kDouble)
                               : at::ones(values.sizes().slice(0, values.dim() - 1), at::kDouble);
    });
  }
  all.rows.original_targets = all.rows.targets;
  return all;
}

KeptPredictions without(const KeptPredictions& kept, const at::Tensor& others) {
  const at::Tensor places =
      at::isin(kept.rows.rows, others, /*assume_unique=*/false, /*invert=*/true)
          .nonzero()
          .squeeze(1);
  const auto chosen = [&](const at::Tensor& tensor, std::int64_t dimension = 0) {
    return tensor.defined() ? at::index_select(tensor, dimension, places) : tensor;
  };
  KeptPredictions part = kept;
  for (Prediction& prediction : part.predictions) {
    for_each_tensor(prediction, [&](at::Tensor& tensor, std::int64_t dimension) {
      tensor = chosen(tensor, dimension);
    });
  }
  part.rows.rows = chosen(part.rows.rows);
  part.rows.groups = chosen(part.rows.groups);
  for (at::Tensor& tensor : part.rows.targets)
    tensor = chosen(tensor);
  for (at::Tensor& tensor : part.rows.position_weights)
    tensor = chosen(tensor);
  part.rows.original_targets = part.rows.targets;
  return part;
}

}  // namespace treadle::internal
