#include "isotonic.h"

#include <cstddef>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <treadle/base/error.h>

#include "held_out_rows.h"

namespace treadle::outputs {

Isotonic::Isotonic(const Config& /*config*/) {}

void Isotonic::do_start(const TargetSpec& target) {
  expect_kind("isotonic", {TargetKind::kClasses, TargetKind::kLabels}, target);
  target_ = target;
}

std::int64_t Isotonic::columns() const {
  return target_.kind == TargetKind::kClasses && target_.class_count() == 2 ? 1
                                                                            : target_.class_count();
}

Isotonic::Steps Isotonic::least_squares(const at::Tensor& x, const at::Tensor& y,
                                        const at::Tensor& weights) {
  /// Points that have one value of the function.
  struct Block {
    double first;
    double last;
    double sum;  // of weighted y
    double weight;
    double value() const { return sum / weight; }
  };
  const at::Tensor order = x.argsort();
  const at::Tensor sorted_x = x.index_select(0, order).contiguous();
  const at::Tensor sorted_y = y.index_select(0, order).contiguous();
  const at::Tensor sorted_weights = weights.index_select(0, order).contiguous();
  const auto* const at_x = sorted_x.data_ptr<double>();
  const auto* const at_y = sorted_y.data_ptr<double>();
  const auto* const at_weight = sorted_weights.data_ptr<double>();
  std::vector<Block> blocks;
  for (std::int64_t i = 0; i < x.numel();) {
    Block block{at_x[i], at_x[i], 0, 0};
    for (; i < x.numel() && at_x[i] == block.first; ++i) {  // ties are one point
      block.sum += at_weight[i] * at_y[i];
      block.weight += at_weight[i];
    }
    while (!blocks.empty() && blocks.back().value() >= block.value()) {
      block.first = blocks.back().first;
      block.sum += blocks.back().sum;
      block.weight += blocks.back().weight;
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  std::vector<double> points;
  std::vector<double> values;
  for (const Block& block : blocks) {
    points.push_back(block.first);
    values.push_back(block.value());
    if (block.last == block.first)
      continue;
    points.push_back(block.last);
    values.push_back(block.value());
  }
  return {at::tensor(points, at::kDouble), at::tensor(values, at::kDouble)};
}

at::Tensor Isotonic::at_points(const Steps& steps, const at::Tensor& x) {
  const std::int64_t last = steps.x.numel() - 1;
  const at::Tensor values = x.contiguous();
  const at::Tensor right = at::searchsorted(steps.x, values).clamp(0, last);
  const at::Tensor left = (right - 1).clamp_min(0);
  const at::Tensor x0 = at::index_select(steps.x, 0, left);
  const at::Tensor x1 = at::index_select(steps.x, 0, right);
  const at::Tensor y0 = at::index_select(steps.y, 0, left);
  const at::Tensor y1 = at::index_select(steps.y, 0, right);
  const at::Tensor width = x1 - x0;
  const at::Tensor share =
      at::where(width.gt(0), (values - x0) / width.clamp_min(1e-300), at::ones_like(width))
          .clamp(0, 1);
  return y0 + (y1 - y0) * share;
}

void Isotonic::do_expect_enough(const TargetBatch& target) const {
  expect_each_class("isotonic", HeldOutTargets(target_.kind, target), target_);
}

void Isotonic::do_fit(const Prediction& prediction, const TargetBatch& target) {
  const HeldOutRows rows(prediction, target);
  expect_each_class("isotonic", rows, target_);
  steps_.clear();
  for (std::int64_t c = 0; c < columns(); ++c) {
    const std::int64_t index = columns() == 1 ? 1 : c;
    steps_.push_back(
        least_squares(rows.values.select(1, index), rows.is_class(index), rows.weights));
  }
}

Prediction Isotonic::do_apply(Prediction prediction, const Batch& /*rows*/) const {
  const at::Tensor values = flat(prediction.values);
  std::vector<at::Tensor> changed;
  for (std::int64_t c = 0; c < columns(); ++c)
    changed.push_back(
        at_points(steps_[static_cast<std::size_t>(c)], values.select(1, columns() == 1 ? 1 : c)));
  at::Tensor probabilities = at::stack(changed, 1);
  if (target_.kind == TargetKind::kClasses && columns() > 1) {
    const at::Tensor sum = probabilities.sum(1, true);
    probabilities =
        at::where(sum.gt(0), probabilities / sum.clamp_min(1e-300),
                  at::full_like(probabilities, 1 / static_cast<double>(probabilities.size(1))));
  }
  prediction.values = as_values(probabilities, prediction);
  prediction.logits = at::Tensor();  // of 0 and 1 there are none
  return prediction;
}

std::vector<MetricValue> Isotonic::do_learned() const {
  std::vector<MetricValue> learned;
  for (std::size_t c = 0; c < steps_.size(); ++c) {
    const std::string of = steps_.size() == 1 ? std::string() : "." + target_.class_names[c];
    learned.push_back({"points" + of, static_cast<double>(steps_[c].x.numel()), Direction::kNone});
  }
  return learned;
}

StateDict Isotonic::do_state() const {
  StateDict state;
  for (std::size_t c = 0; c < steps_.size(); ++c) {
    state.put("x-" + std::to_string(c), steps_[c].x);
    state.put("y-" + std::to_string(c), steps_[c].y);
  }
  return state;
}

void Isotonic::do_load_state(const StateDict& state) {
  steps_.clear();
  if (state.empty())
    return;
  for (std::int64_t c = 0; c < columns(); ++c) {
    Steps steps{state.tensor("x-" + std::to_string(c)).to(at::kDouble),
                state.tensor("y-" + std::to_string(c)).to(at::kDouble)};
    if (steps.x.dim() != 1 || steps.x.numel() == 0 || steps.x.sizes() != steps.y.sizes())
      throw StorageError("the points of an isotonic function are not as many as its values");
    steps_.push_back(std::move(steps));
  }
}

}  // namespace treadle::outputs
