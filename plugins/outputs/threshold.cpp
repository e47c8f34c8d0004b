#include "threshold.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>

#include "held_out_rows.h"

namespace treadle::outputs {
namespace {

using Decided = Threshold::Decided;

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double f1(const Decided& d) {
  return ratio(2 * d.true_positive, 2 * d.true_positive + d.false_positive + d.false_negative);
}

/// Matthews' correlation coefficient.
double mcc(const Decided& d) {
  const double product =
      (d.true_positive + d.false_positive) * (d.true_positive + d.false_negative) *
      (d.true_negative + d.false_positive) * (d.true_negative + d.false_negative);
  return ratio(d.true_positive * d.true_negative - d.false_positive * d.false_negative,
               std::sqrt(product));
}

double balanced_accuracy(const Decided& d) {
  return (ratio(d.true_positive, d.true_positive + d.false_negative) +
          ratio(d.true_negative, d.true_negative + d.false_positive)) /
         2;
}

constexpr std::array<std::pair<std::string_view, Threshold::Score>, 3> kScores{
    {{"f1", &f1}, {"mcc", &mcc}, {"balanced_accuracy", &balanced_accuracy}}};

}  // namespace

Threshold::Threshold(const Config& config) {
  const nlohmann::json& threshold = config.json().at("threshold");
  if (threshold.is_number()) {
    given_ = threshold.get<double>();
  } else if (threshold.is_object()) {
    const nlohmann::json& cost = threshold.at("cost");
    cost_ = Cost{cost.at("false_positive").get<double>(), cost.at("false_negative").get<double>()};
  } else {
    score_ = std::find_if(kScores.begin(), kScores.end(), [&](const auto& score) {
               return score.first == threshold.get<std::string>();
             })->second;
  }
}

void Threshold::do_start(const TargetSpec& target) {
  expect_kind("threshold", {TargetKind::kClasses, TargetKind::kLabels}, target);
  if (target.kind == TargetKind::kClasses && target.class_count() != 2) {
    throw DataError("output \"threshold\" decides between two classes, and the target \"" +
                    target.name + "\" has " + std::to_string(target.class_count()) +
                    "; leave outputs.decision out: the likeliest class is decided for");
  }
  target_ = target;
  const std::int64_t count = target.kind == TargetKind::kLabels ? target.class_count() : 1;
  thresholds_ = at::full({count}, given_.value_or(0.5), at::kDouble);
}

double Threshold::value_of(const Decided& decided) const {
  if (!cost_)
    return score_(decided);
  return -(decided.false_positive * cost_->false_positive +
           decided.false_negative * cost_->false_negative);
}

double Threshold::best(const at::Tensor& scores, const at::Tensor& is_class,
                       const at::Tensor& weights) const {
  const at::Tensor order = scores.argsort(0, /*descending=*/true);
  const at::Tensor p = scores.index_select(0, order).contiguous();
  const at::Tensor positive = (weights * is_class).index_select(0, order).contiguous();
  const at::Tensor all = weights.index_select(0, order).contiguous();
  const auto* const at_p = p.data_ptr<double>();
  const auto* const at_positive = positive.data_ptr<double>();
  const auto* const at_all = all.data_ptr<double>();
  const std::int64_t count = p.numel();
  // Nothing is decided for: above the largest.
  Decided decided;
  for (std::int64_t i = 0; i < count; ++i) {
    decided.false_negative += at_positive[i];
    decided.true_negative += at_all[i] - at_positive[i];
  }
  double threshold = count > 0 ? (at_p[0] + 1) / 2 : 0.5;
  double value = value_of(decided);
  for (std::int64_t i = 0; i < count;) {
    const double here = at_p[i];
    for (; i < count && at_p[i] == here; ++i) {
      const double negative = at_all[i] - at_positive[i];
      decided.true_positive += at_positive[i];
      decided.false_negative -= at_positive[i];
      decided.false_positive += negative;
      decided.true_negative -= negative;
    }
    if (const double now = value_of(decided); now > value) {
      value = now;
      threshold = i < count ? (here + at_p[i]) / 2 : here / 2;
    }
  }
  return threshold;
}

void Threshold::do_expect_enough(const TargetBatch& target) const {
  if (given_)
    return;
  expect_each_class("threshold", HeldOutTargets(target_.kind, target), target_);
}

void Threshold::do_fit(const Prediction& prediction, const TargetBatch& target) {
  if (given_)
    return;
  const HeldOutRows rows(prediction, target);
  expect_each_class("threshold", rows, target_);
  const bool is_labels = target_.kind == TargetKind::kLabels;
  for (std::int64_t k = 0; k < thresholds_.numel(); ++k) {
    const std::int64_t index = is_labels ? k : 1;
    thresholds_[k] = best(rows.values.select(1, index), rows.is_class(index), rows.weights);
  }
}

Prediction Threshold::do_apply(Prediction prediction, const Batch& /*rows*/) const {
  const at::Tensor values = prediction.values.to(at::kDouble);
  prediction.decision = target_.kind == TargetKind::kLabels
                            ? values.ge(thresholds_)
                            : values.select(-1, 1).ge(thresholds_).to(at::kLong);
  return prediction;
}

std::vector<MetricValue> Threshold::do_learned() const {
  std::vector<MetricValue> learned;
  for (std::int64_t k = 0; k < thresholds_.numel(); ++k) {
    const std::string of = target_.kind == TargetKind::kLabels
                               ? "." + target_.class_names[static_cast<std::size_t>(k)]
                               : std::string();
    learned.push_back({"threshold" + of, thresholds_[k].item<double>(), Direction::kNone});
  }
  return learned;
}

StateDict Threshold::do_state() const {
  StateDict state;
  state.put("thresholds", thresholds_);
  return state;
}

void Threshold::do_load_state(const StateDict& state) {
  const at::Tensor& stored = state.tensor("thresholds");
  if (stored.sizes() != thresholds_.sizes())
    throw StorageError("the thresholds belong to data with another number of labels");
  thresholds_ = stored.to(at::kDouble);
}

}  // namespace treadle::outputs
