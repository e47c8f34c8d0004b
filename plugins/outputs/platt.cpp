#include "platt.h"

#include <cmath>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>

#include "held_out_rows.h"

namespace treadle::outputs {
namespace {

/// Slope and intercept of the likeliest line, [2]. All of them [N].
at::Tensor likeliest_line(const at::Tensor& scores, const at::Tensor& is_class,
                          const at::Tensor& weights) {
  const double positive = (weights * is_class).sum().item<double>();
  const double negative = (weights * (1 - is_class)).sum().item<double>();
  const at::Tensor wanted = at::where(is_class.gt(0.5), (positive + 1) / (positive + 2),
                                      at::zeros_like(is_class) + 1 / (negative + 2));
  double a = 0;
  double b = std::log((positive + 1) / (negative + 1));
  const auto loss_at = [&](double slope, double intercept) {
    const at::Tensor z = scores * slope + intercept;
    return -((at::log_sigmoid(z) * wanted + at::log_sigmoid(-z) * (1 - wanted)) * weights)
                .sum()
                .item<double>();
  };
  constexpr int kMostSteps = 100;
  double loss = loss_at(a, b);
  for (int step = 0; step < kMostSteps; ++step) {
    const at::Tensor p = (scores * a + b).sigmoid();
    const at::Tensor off = (p - wanted) * weights;
    const at::Tensor curve = p * (1 - p) * weights;
    const double ga = (off * scores).sum().item<double>();
    const double gb = off.sum().item<double>();
    constexpr double kRidge = 1e-12;
    const double haa = (curve * scores.square()).sum().item<double>() + kRidge;
    const double hab = (curve * scores).sum().item<double>();
    const double hbb = curve.sum().item<double>() + kRidge;
    const double determinant = haa * hbb - hab * hab;
    double da = (hbb * ga - hab * gb) / determinant;
    double db = (haa * gb - hab * ga) / determinant;
    bool has_moved = false;
    for (int halving = 0; halving < 40 && !has_moved; ++halving, da /= 2, db /= 2) {
      const double there = loss_at(a - da, b - db);
      if (there < loss) {
        a -= da;
        b -= db;
        loss = there;
        has_moved = true;
      }
    }
    if (!has_moved || std::max(std::abs(da), std::abs(db)) < 1e-12)
      break;
  }
  return at::tensor({a, b}, at::kDouble);
}

}  // namespace

Platt::Platt(const Config& /*config*/) {}

void Platt::do_start(const TargetSpec& target) {
  expect_kind("platt", {TargetKind::kClasses, TargetKind::kLabels}, target);
  target_ = target;
  const bool is_pair = target.kind == TargetKind::kClasses && target.class_count() == 2;
  lines_ = at::zeros({2, is_pair ? 1 : target.class_count()}, at::kDouble);
}

void Platt::do_expect_enough(const TargetBatch& target) const {
  expect_each_class("platt", HeldOutTargets(target_.kind, target), target_);
}

void Platt::do_fit(const Prediction& prediction, const TargetBatch& target) {
  const HeldOutRows rows(prediction, target);
  expect_each_class("platt", rows, target_);
  std::vector<at::Tensor> lines;
  const std::int64_t columns = rows.log_odds.size(1);
  for (std::int64_t c = 0; c < columns; ++c) {
    lines.push_back(likeliest_line(rows.log_odds.select(1, c),
                                   rows.is_class(columns == 1 ? target_.class_count() - 1 : c),
                                   rows.weights));
  }
  lines_ = at::stack(lines, 1);
}

Prediction Platt::do_apply(Prediction prediction, const Batch& /*rows*/) const {
  const at::Tensor z = log_odds_of(prediction) * lines_[0] + lines_[1];
  at::Tensor probabilities = z.sigmoid();
  std::vector<std::int64_t> sizes = prediction.values.sizes().vec();
  sizes.back() = z.size(1);
  if (target_.kind == TargetKind::kClasses && z.size(1) > 1) {
    probabilities = probabilities / probabilities.sum(1, true);
    prediction.logits = probabilities.log().view(sizes).to(prediction.values.scalar_type());
  } else {
    prediction.logits = z.view(sizes).to(prediction.values.scalar_type());
  }
  prediction.values = as_values(probabilities, prediction);
  return prediction;
}

std::vector<MetricValue> Platt::do_learned() const {
  std::vector<MetricValue> learned;
  const std::int64_t columns = lines_.size(1);
  for (std::int64_t c = 0; c < columns; ++c) {
    const std::string of =
        columns == 1 ? std::string() : "." + target_.class_names[static_cast<std::size_t>(c)];
    learned.push_back({"slope" + of, lines_[0][c].item<double>(), Direction::kNone});
    learned.push_back({"intercept" + of, lines_[1][c].item<double>(), Direction::kNone});
  }
  return learned;
}

StateDict Platt::do_state() const {
  StateDict state;
  state.put("lines", lines_);
  return state;
}

void Platt::do_load_state(const StateDict& state) {
  const at::Tensor& stored = state.tensor("lines");
  if (stored.sizes() != lines_.sizes())
    throw StorageError("the lines belong to data with another number of classes");
  lines_ = stored.to(at::kDouble);
}

}  // namespace treadle::outputs
