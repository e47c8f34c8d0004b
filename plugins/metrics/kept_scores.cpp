#include "kept_scores.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <ATen/ops/cat.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/stack.h>

namespace treadle::metrics {
namespace {

/// float64 [N, C], of logits [N, C] or, for two classes, [N, 1].
at::Tensor log_odds(const at::Tensor& logits) {
  const at::Tensor exact = logits.to(at::kDouble);
  if (exact.size(1) == 1)
    return at::cat({exact.neg(), exact}, 1);
  if (exact.size(1) == 2) {
    const at::Tensor second = exact.select(1, 1).sub(exact.select(1, 0));
    return at::stack({second.neg(), second}, 1);
  }
  const at::Tensor logs = at::log_softmax(exact, 1);
  const at::Tensor first = exact.argmax(1, /*keepdim=*/true);
  // ln p - ln(1 - p). Only the likeliest class may have a p above 1/2, whose 1 - p is the sum of
  // the others.
  at::Tensor odds = logs.sub(at::log1p(logs.exp().clamp_max(0.5).neg()));
  const at::Tensor others =
      exact.scatter(1, first, -std::numeric_limits<double>::infinity()).logsumexp(1, true);
  return odds.scatter_(1, first, exact.gather(1, first).sub(others));
}

}  // namespace

void KeptScores::add(const at::Tensor& scores, const at::Tensor& actual,
                     const at::Tensor& weights) {
  seen_.push_back({scores.clone(at::MemoryFormat::Contiguous), actual.clone(),
                   weights.defined() ? weights.clone() : at::Tensor()});
}

void KeptScores::append(const KeptScores& other) {
  seen_.insert(seen_.end(), other.seen_.begin(), other.seen_.end());
}

KeptScores::Rows KeptScores::rows() const {
  if (seen_.empty())
    return {};
  const bool weighted = std::any_of(seen_.begin(), seen_.end(),
                                    [](const Rows& rows) { return rows.weights.defined(); });
  std::vector<at::Tensor> scores;
  std::vector<at::Tensor> actual;
  std::vector<at::Tensor> weights;
  for (const Rows& rows : seen_) {
    scores.push_back(rows.scores);
    actual.push_back(rows.actual);
    if (weighted)
      weights.push_back(rows.weights.defined() ? rows.weights
                                               : at::ones({rows.actual.size(0)}, at::kDouble));
  }
  return {at::cat(scores), at::cat(actual), weighted ? at::cat(weights) : at::Tensor()};
}

StateDict KeptScores::state() const {
  StateDict state;
  const Rows all = rows();
  if (!all.scores.defined())
    return state;
  state.put("scores", all.scores);
  state.put("classes", all.actual);
  if (all.weights.defined())
    state.put("weights", all.weights);
  return state;
}

void KeptScores::load_state(const StateDict& state) {
  clear();
  if (state.has_tensor("scores")) {
    seen_.push_back({state.tensor("scores"), state.tensor("classes"),
                     state.has_tensor("weights") ? state.tensor("weights") : at::Tensor()});
  }
}

at::Tensor rank_scores(const Prediction& prediction, const Positions& positions) {
  if (!prediction.logits.defined())
    return positions.predicted();
  const at::Tensor logits = positions.flat(prediction.logits);
  return prediction.kind == TargetKind::kLabels ? logits.to(at::kDouble) : log_odds(logits);
}

at::Tensor is_of_class(const at::Tensor& actual, std::int64_t index) {
  return (actual.dim() > 1 ? actual.select(1, index).gt(0.5) : actual.eq(index)).to(at::kDouble);
}

Ranking ranked(const at::Tensor& scores, const at::Tensor& positive, const at::Tensor& weights) {
  at::Tensor exact = scores.to(at::kDouble);
  at::Tensor positives = positive;
  at::Tensor all = weights.defined() ? weights : at::ones({scores.size(0)}, at::kDouble);
  if (weights.defined()) {
    const at::Tensor counted = weights.nonzero().squeeze(1);
    exact = exact.index_select(0, counted);
    positives = positives.index_select(0, counted);
    all = all.index_select(0, counted);
  }
  const auto [sorted, order] = at::sort(exact, 0, /*descending=*/true);
  all = all.index_select(0, order);
  positives = positives.index_select(0, order).mul(all);
  const std::int64_t count = sorted.size(0);
  if (count == 0)
    return {sorted, positives, all};
  const at::Tensor is_last = at::cat(
      {at::ne(sorted.slice(0, 1), sorted.slice(0, 0, count - 1)), at::ones({1}, at::kBool)});
  const at::Tensor last = is_last.nonzero().squeeze(1);
  return {sorted.index_select(0, last), positives.cumsum(0).index_select(0, last),
          all.sub(positives).cumsum(0).index_select(0, last)};
}

}  // namespace treadle::metrics
