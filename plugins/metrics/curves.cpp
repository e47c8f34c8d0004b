#include "curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "target_check.h"

namespace treadle::metrics {
namespace {

/// Between two kept points: the point furthest from the line through them.
struct Stretch {
  double distance = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t furthest = 0;

  /// The furthest first, of equals the first.
  bool operator<(const Stretch& other) const {
    return std::pair(distance, -begin) < std::pair(other.distance, -other.begin);
  }
};

Stretch stretch_of(const double* x, const double* y, std::int64_t begin, std::int64_t end) {
  const double dx = x[end] - x[begin];
  const double dy = y[end] - y[begin];
  const double length = std::hypot(dx, dy);
  Stretch stretch{0, begin, end, begin};
  for (std::int64_t i = begin + 1; length > 0 && i < end; ++i) {
    const double distance = std::abs(dx * (y[i] - y[begin]) - dy * (x[i] - x[begin])) / length;
    if (distance > stretch.distance) {
      stretch.distance = distance;
      stretch.furthest = i;
    }
  }
  return stretch;
}

const std::vector<std::string>& columns() {
  static const std::vector<std::string> names{
      "threshold", "false_positive_rate", "true_positive_rate", "precision", "selected", "lift"};
  return names;
}

}  // namespace

std::vector<std::int64_t> corners_of(const at::Tensor& x, const at::Tensor& y, std::size_t most) {
  constexpr double kOnTheLine = 1e-12;  // up to rounding
  const at::Tensor xs = x.contiguous();
  const at::Tensor ys = y.contiguous();
  const double* const xs_data = xs.data_ptr<double>();
  const double* const ys_data = ys.data_ptr<double>();
  const std::int64_t last = x.size(0) - 1;
  std::vector<std::int64_t> kept{0};
  if (last > 0)
    kept.push_back(last);
  std::priority_queue<Stretch> stretches;
  stretches.push(stretch_of(xs_data, ys_data, 0, last));
  while (kept.size() < most && stretches.top().distance > kOnTheLine) {
    const Stretch stretch = stretches.top();
    stretches.pop();
    kept.push_back(stretch.furthest);
    stretches.push(stretch_of(xs_data, ys_data, stretch.begin, stretch.furthest));
    stretches.push(stretch_of(xs_data, ys_data, stretch.furthest, stretch.end));
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

void Curves::do_start(const TargetSpec& target) {
  expect_classes("curves", target);
  if (target.class_count() > kMostClasses) {
    throw DataError("metric \"curves\" takes at most " + std::to_string(kMostClasses) +
                    " classes, but the target " + quote_text(target.name) + " has " +
                    std::to_string(target.class_count()));
  }
  class_names_ = target.class_names;
}

void Curves::do_reset() {
  seen_.clear();
  are_log_odds_ = false;
}

void Curves::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  const at::Tensor scores = rank_scores(prediction, positions);
  are_log_odds_ = prediction.logits.defined();
  seen_.add(class_names_.size() == 2 ? scores.narrow(1, 1, 1) : scores, positions.actual(),
            positions.weights());
}

void Curves::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const Curves&>(other);
  seen_.append(theirs.seen_);
  are_log_odds_ = are_log_odds_ || theirs.are_log_odds_;
}

at::Tensor Curves::curve(const Ranking& ranking) const {
  const double positives = ranking.all_positives();
  const double negatives = ranking.all_negatives();
  const at::Tensor nothing = at::zeros({1}, at::kDouble);
  const at::Tensor hits = at::cat({nothing, ranking.positives});
  const at::Tensor misses = at::cat({nothing, ranking.negatives});
  const at::Tensor true_rate = hits.div(positives);
  const at::Tensor false_rate = misses.div(negatives);
  const at::Tensor kept = at::tensor(corners_of(false_rate, true_rate, kMostPoints), at::kLong);

  const at::Tensor scores = are_log_odds_ ? at::sigmoid(ranking.scores) : ranking.scores;
  const at::Tensor thresholds =
      at::cat({at::full({1}, std::numeric_limits<double>::infinity(), at::kDouble), scores});
  const at::Tensor selected = hits.add(misses);
  const at::Tensor precision =
      at::cat({at::ones({1}, at::kDouble), hits.slice(0, 1).div(selected.slice(0, 1))});
  const double all = positives + negatives;
  return at::stack({thresholds, false_rate, true_rate, precision, selected.div(all),
                    precision.mul(all / positives)},
                   1)
      .index_select(0, kept);
}

MetricResult Curves::do_compute() const {
  const KeptScores::Rows rows = seen_.rows();
  MetricTable table{"curves", {}, columns(), {}};
  std::vector<at::Tensor> curves;
  const std::int64_t count = rows.scores.defined() ? rows.scores.size(1) : 0;
  for (std::int64_t column = 0; column < count; ++column) {
    const std::int64_t of = count == 1 ? 1 : column;
    const Ranking ranking =
        ranked(rows.scores.select(1, column), is_of_class(rows.actual, of), rows.weights);
    if (ranking.all_positives() == 0 || ranking.all_negatives() == 0 || ranking.has_nan())
      continue;
    curves.push_back(curve(ranking));
    table.row_labels.insert(table.row_labels.end(), static_cast<std::size_t>(curves.back().size(0)),
                            class_names_[static_cast<std::size_t>(of)]);
  }
  table.values = curves.empty()
                     ? at::zeros({0, static_cast<std::int64_t>(columns().size())}, at::kDouble)
                     : at::cat(curves);
  return {{}, {std::move(table)}};
}

StateDict Curves::do_state() const {
  StateDict state = seen_.state();
  state.put("log_odds", nlohmann::json(are_log_odds_));
  return state;
}

void Curves::do_load_state(const StateDict& state) {
  seen_.load_state(state);
  are_log_odds_ = state.value("log_odds").get<bool>();
}

}  // namespace treadle::metrics
