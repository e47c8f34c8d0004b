#include "evaluation/ensemble_selection.h"

#include <limits>
#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

constexpr double kWorst = std::numeric_limits<double>::infinity();

struct Step {
  std::size_t candidate = 0;
  double score = kWorst;
};

/// The best candidate to add to the sum of `added` others; nothing where none has a score.
std::optional<Step> best_step(std::span<const at::Tensor> predictions, const at::Tensor& sum,
                              std::int64_t added,
                              const std::function<double(const at::Tensor&)>& score) {
  std::optional<Step> best;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const double value = score((sum + predictions[i]) / static_cast<double>(added + 1));
    if (value < (best ? best->score : kWorst))
      best = Step{i, value};
  }
  return best;
}

}  // namespace

SelectedEnsemble select_ensemble(std::span<const at::Tensor> predictions, std::int64_t size,
                                 const std::function<double(const at::Tensor& mean)>& score) {
  TREADLE_EXPECTS(size >= 1 && !predictions.empty(), "an ensemble has members to choose from");
  // In float64, in which many additions of float32 are exact enough to compare.
  at::Tensor sum = at::zeros_like(predictions.front(), at::kDouble);
  std::vector<Step> steps;
  std::size_t best_length = 0;
  while (static_cast<std::int64_t>(steps.size()) < size) {
    const auto added = static_cast<std::int64_t>(steps.size());
    const std::optional<Step> step = best_step(predictions, sum, added, score);
    if (!step)
      break;
    sum += predictions[step->candidate];
    steps.push_back(*step);
    if (best_length == 0 || step->score < steps[best_length - 1].score)
      best_length = steps.size();
  }
  TREADLE_EXPECTS(best_length > 0, "a candidate has a score");
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
