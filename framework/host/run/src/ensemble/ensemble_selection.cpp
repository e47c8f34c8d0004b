#include "ensemble/ensemble_selection.h"

#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

using Score = std::function<double(const at::Tensor& mean)>;

struct Step {
  std::size_t candidate = 0;
  double score = 0;  // of the mean with it
};

/// What each candidate would make of the sum of `added` others, the best first; without those that
/// have no score.
std::vector<Step> steps_from(std::span<const at::Tensor> predictions, const at::Tensor& sum,
                             std::size_t added, const Score& score) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const double value = score((sum + predictions[i]) / static_cast<double>(added + 1));
    if (!std::isnan(value))
      steps.push_back({i, value});
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.score < b.score; });
  return steps;
}

}  // namespace

SelectedEnsemble select_ensemble(std::span<const at::Tensor> predictions, std::int64_t size,
                                 std::int64_t initial,
                                 const std::function<double(const at::Tensor& mean)>& score) {
  TREADLE_EXPECTS(size >= 1 && !predictions.empty(), "an ensemble has members to choose from");
  // In float64, in which many additions of float32 are exact enough to compare.
  at::Tensor sum = at::zeros_like(predictions.front(), at::kDouble);
  std::vector<Step> steps;
  std::size_t best_length = 0;
  const auto add = [&](const Step& step) {
    sum += predictions[step.candidate];
    steps.push_back(step);
    if (best_length == 0 || step.score < steps[best_length - 1].score)
      best_length = steps.size();
  };
  const std::vector<Step> alone = steps_from(predictions, sum, 0, score);
  TREADLE_EXPECTS(!alone.empty(), "a candidate has a score");
  const auto first = std::min<std::size_t>(
      alone.size(), static_cast<std::size_t>(std::clamp<std::int64_t>(initial, 1, size)));
  for (std::size_t i = 0; i < first; ++i) {
    const at::Tensor& with = predictions[alone[i].candidate];
    add({alone[i].candidate, score((sum + with) / static_cast<double>(i + 1))});
  }
  best_length = first;
  while (static_cast<std::int64_t>(steps.size()) < size)
    add(steps_from(predictions, sum, steps.size(), score).front());
  std::vector<std::int64_t> times(predictions.size(), 0);
  for (std::size_t i = 0; i < best_length; ++i)
    ++times[steps[i].candidate];
  SelectedEnsemble selected;
  selected.score = steps[best_length - 1].score;
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i] > 0) {
      selected.members.push_back(
          {i, static_cast<double>(times[i]) / static_cast<double>(best_length)});
    }
  }
  return selected;
}

}  // namespace treadle::internal
