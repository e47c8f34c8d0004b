#include "thresholds.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "target_check.h"

namespace treadle::metrics {
namespace {

constexpr std::int64_t kSteps = 20;  // of the interval [0, 1]

/// Of several thresholds: float64, one a threshold. Undefined scores are NaN.
struct Decisions {
  at::Tensor true_positives;
  at::Tensor false_positives;
  at::Tensor true_negatives;
  at::Tensor false_negatives;

  at::Tensor precision() const { return true_positives / (true_positives + false_positives); }
  at::Tensor recall() const { return true_positives / (true_positives + false_negatives); }
  at::Tensor f1() const {
    return 2 * true_positives / (2 * true_positives + false_positives + false_negatives);
  }
  /// 0 where all are predicted to be of one class.
  at::Tensor mcc() const {
    const at::Tensor selected = true_positives + false_positives;
    const at::Tensor others = true_negatives + false_negatives;
    const at::Tensor actual =
        (true_positives + false_negatives) * (true_negatives + false_positives);
    const at::Tensor spread = selected.sqrt() * others.sqrt() * actual.sqrt();
    const at::Tensor value =
        (true_positives * true_negatives - false_positives * false_negatives) / spread;
    return value.masked_fill((selected * others).eq(0).logical_and(actual.gt(0)), 0);
  }
};

/// `counts` [thresholds]: how many of the different scores are at or above each.
Decisions decisions_at(const Ranking& ranking, const at::Tensor& counts) {
  const at::Tensor none = at::zeros({1}, at::kDouble);
  const at::Tensor hits = at::cat({none, ranking.positives}).index_select(0, counts);
  const at::Tensor misses = at::cat({none, ranking.negatives}).index_select(0, counts);
  return {hits, misses, ranking.all_negatives() - misses, ranking.all_positives() - hits};
}

std::vector<std::string> column_names(bool with_cost) {
  std::vector<std::string> names{"threshold",
                                 "true_positives",
                                 "false_positives",
                                 "true_negatives",
                                 "false_negatives",
                                 "precision",
                                 "recall",
                                 "f1",
                                 "mcc"};
  if (with_cost)
    names.emplace_back("cost");
  return names;
}

std::string step_name(std::int64_t step) {
  const std::string hundredths = std::to_string(100 + step * 100 / kSteps).substr(1);
  return "0." + (hundredths.back() == '0' ? hundredths.substr(0, 1) : hundredths);
}

}  // namespace

Thresholds::Thresholds(const Config& config) {
  if (config.has("costs")) {
    const Config costs = config.child("costs");
    costs_ = {costs.get<double>("false_positive"), costs.get<double>("false_negative")};
  }
}

void Thresholds::do_start(const TargetSpec& target) {
  expect_two_classes("thresholds", target);
}

void Thresholds::do_reset() {
  seen_.clear();
}

void Thresholds::do_update(const Prediction& prediction, const TargetBatch& target) {
  const Positions positions(prediction, target);
  seen_.add(positions.predicted().narrow(1, 1, 1), positions.actual(), positions.weights());
}

void Thresholds::do_merge(const MetricComputer& other) {
  seen_.append(static_cast<const Thresholds&>(other).seen_);
}

MetricResult Thresholds::do_compute() const {
  MetricTable table{"thresholds", {}, column_names(costs_.has_value()), {}};
  const KeptScores::Rows rows = seen_.rows();
  Ranking ranking;
  if (rows.scores.defined())
    ranking = ranked(rows.scores.select(1, 0), is_of_class(rows.actual, 1), rows.weights);
  if (!rows.scores.defined() || ranking.is_empty() || ranking.has_nan()) {
    table.values =
        at::zeros({0, static_cast<std::int64_t>(table.column_labels.size())}, at::kDouble);
    return {{}, {std::move(table)}};
  }

  at::Tensor thresholds = at::arange(1, kSteps, at::kDouble) / static_cast<double>(kSteps);
  // Scores descend, and searchsorted takes what ascends.
  at::Tensor counts =
      at::searchsorted(ranking.scores.neg(), thresholds.neg(), /*out_int32=*/false, /*right=*/true);
  for (std::int64_t step = 1; step < kSteps; ++step)
    table.row_labels.push_back(step_name(step));

  const at::Tensor each = at::arange(1, ranking.scores.size(0) + 1);
  const Decisions by_score = decisions_at(ranking, each);
  const std::pair<const char*, at::Tensor> scores[] = {{"best_f1", by_score.f1()},
                                                       {"best_mcc", by_score.mcc()}};
  for (const auto& [name, values] : scores) {
    if (ranking.all_positives() == 0 || values.isnan().any().item<bool>())
      continue;
    const at::Tensor best = values.argmax().unsqueeze(0);
    thresholds = at::cat({thresholds, ranking.scores.index_select(0, best)});
    counts = at::cat({counts, best + 1});
    table.row_labels.emplace_back(name);
  }

  const Decisions all = decisions_at(ranking, counts);
  std::vector<at::Tensor> columns{thresholds,
                                  all.true_positives,
                                  all.false_positives,
                                  all.true_negatives,
                                  all.false_negatives,
                                  all.precision(),
                                  all.recall(),
                                  all.f1(),
                                  all.mcc()};
  if (costs_) {
    columns.push_back(all.false_positives * costs_->false_positive +
                      all.false_negatives * costs_->false_negative);
  }
  table.values = at::stack(columns, 1);
  return {{}, {std::move(table)}};
}

StateDict Thresholds::do_state() const {
  return seen_.state();
}

void Thresholds::do_load_state(const StateDict& state) {
  seen_.load_state(state);
}

}  // namespace treadle::metrics
