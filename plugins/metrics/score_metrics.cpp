#include "score_metrics.h"

#include <cmath>
#include <limits>
#include <tuple>

#include <ATen/ops/cat.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sort.h>

#include "target_check.h"

namespace treadle::metrics {
Auc::Auc(const Config&) {}

void Auc::do_start(const TargetSpec& target) {
  expect_classes("auc", target);
  class_count_ = target.class_count();
}

void Auc::do_reset() {
  seen_.clear();
}

void Auc::do_update(const Predictions& predictions, const Batch& batch) {
  const at::Tensor scores =
      class_count_ == 2 ? predictions.values.narrow(1, 1, 1) : predictions.values;
  // Copies: the caller fills the same tensors again.
  seen_.push_back({scores.clone(at::MemoryFormat::Contiguous), batch.original_targets.clone(),
                   batch.weights.defined() ? batch.weights.to(at::kDouble).clone() : at::Tensor()});
}

void Auc::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const Auc&>(other).seen_;
  seen_.insert(seen_.end(), theirs.begin(), theirs.end());
}

Auc::Rows Auc::all_rows() const {
  std::vector<at::Tensor> scores;
  std::vector<at::Tensor> classes;
  std::vector<at::Tensor> weights;
  bool weighted = false;
  for (const Rows& rows : seen_) {
    scores.push_back(rows.scores);
    classes.push_back(rows.classes);
    weighted = weighted || rows.weights.defined();
  }
  if (scores.empty())
    return {};
  if (weighted) {
    for (const Rows& rows : seen_)
      weights.push_back(rows.weights.defined() ? rows.weights
                                               : at::ones({rows.classes.size(0)}, at::kDouble));
  }
  return {at::cat(scores), at::cat(classes), weighted ? at::cat(weights) : at::Tensor()};
}

double Auc::area(const Rows& rows, std::int64_t column, std::int64_t positive) const {
  const auto [sorted, order] = at::sort(rows.scores.select(1, column).to(at::kDouble));
  const double* const score = sorted.data_ptr<double>();
  const std::int64_t* const row = order.data_ptr<std::int64_t>();
  const std::int64_t* const classes = rows.classes.data_ptr<std::int64_t>();
  const double* const weights = rows.weights.defined() ? rows.weights.data_ptr<double>() : nullptr;
  const std::int64_t count = sorted.size(0);

  // From the lowest score up, a group of equal scores at a time.
  double area = 0;
  double positives = 0;
  double negatives = 0;
  for (std::int64_t i = 0; i < count;) {
    const double here = score[i];
    double group_positives = 0;
    double group_negatives = 0;
    for (; i < count && score[i] == here; ++i) {
      const double weight = weights != nullptr ? weights[row[i]] : 1;
      (classes[row[i]] == positive ? group_positives : group_negatives) += weight;
    }
    area += group_positives * (negatives + 0.5 * group_negatives);
    positives += group_positives;
    negatives += group_negatives;
  }
  return positives > 0 && negatives > 0 ? area / (positives * negatives) : std::nan("");
}

MetricResult Auc::do_compute() const {
  double value = std::nan("");
  if (const Rows rows = all_rows(); rows.scores.defined()) {
    if (class_count_ == 2) {
      value = area(rows, 0, 1);
    } else {
      double sum = 0;
      std::int64_t judged = 0;
      for (std::int64_t c = 0; c < class_count_; ++c) {
        const double one = area(rows, c, c);
        if (one == one) {  // not NaN
          sum += one;
          ++judged;
        }
      }
      if (judged > 0)
        value = sum / static_cast<double>(judged);
    }
  }
  return {{{"auc", value, Direction::kHigherIsBetter}}, {}};
}

StateDict Auc::do_state() const {
  StateDict state;
  const Rows rows = all_rows();
  if (!rows.scores.defined())
    return state;
  state.put("scores", rows.scores);
  state.put("classes", rows.classes);
  if (rows.weights.defined())
    state.put("weights", rows.weights);
  return state;
}

void Auc::do_load_state(const StateDict& state) {
  seen_.clear();
  if (state.has_tensor("scores")) {
    seen_.push_back({state.tensor("scores"), state.tensor("classes"),
                     state.has_tensor("weights") ? state.tensor("weights") : at::Tensor()});
  }
}

LogLoss::LogLoss(const Config&) {}

void LogLoss::do_start(const TargetSpec& target) {
  expect_classes("log_loss", target);
}

void LogLoss::do_reset() {
  sum_ = 0;
  weight_ = 0;
}

void LogLoss::do_update(const Predictions& predictions, const Batch& batch) {
  const at::Tensor& values = predictions.values;
  const double eps = values.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon()
                                                         : std::numeric_limits<float>::epsilon();
  const at::Tensor logs = values.gather(1, batch.original_targets.unsqueeze(1))
                              .squeeze(1)
                              .to(at::kDouble)
                              .clamp(eps, 1 - eps)
                              .log();
  if (batch.weights.defined()) {
    const at::Tensor weights = batch.weights.to(at::kDouble);
    sum_ -= at::dot(logs, weights).item<double>();
    weight_ += weights.sum().item<double>();
  } else {
    sum_ -= logs.sum().item<double>();
    weight_ += static_cast<double>(logs.size(0));
  }
}

void LogLoss::do_merge(const MetricComputer& other) {
  const auto& theirs = static_cast<const LogLoss&>(other);
  sum_ += theirs.sum_;
  weight_ += theirs.weight_;
}

MetricResult LogLoss::do_compute() const {
  return {{{"log_loss", weight_ > 0 ? sum_ / weight_ : std::nan(""), Direction::kLowerIsBetter}},
          {}};
}

StateDict LogLoss::do_state() const {
  StateDict state;
  state.put("sum", nlohmann::json(sum_));
  state.put("weight", nlohmann::json(weight_));
  return state;
}

void LogLoss::do_load_state(const StateDict& state) {
  sum_ = state.value("sum").get<double>();
  weight_ = state.value("weight").get<double>();
}

}  // namespace treadle::metrics
