#include "class_losses.h"

#include <string>
#include <utility>

#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/json_words.h>

#include "positions.h"
#include "target_check.h"

namespace treadle::losses {
namespace {

constexpr std::int64_t kSum = at::Reduction::Sum;
constexpr std::int64_t kEach = at::Reduction::None;
// No class index is ignored: the data has none below 0.
constexpr std::int64_t kIgnoreNone = -100;

// A class index is an integer, a distribution is not.
bool is_distribution(const at::Tensor& target) {
  return at::isFloatingType(target.scalar_type());
}

Prediction softmax_prediction(const at::Tensor& logits) {
  return {TargetKind::kClasses, at::softmax(logits, -1), logits};
}

// A sum over positions, each times its weight.
at::Tensor weighted(const at::Tensor& each, const at::Tensor& weights) {
  return weights.defined() ? at::dot(each, weights) : each.sum();
}

}  // namespace

CrossEntropy::CrossEntropy(const Config& config)
    : config_(config),
      label_smoothing_(config.get<double>("label_smoothing")),
      num_output_chunks_(config.get_or("num_output_chunks", std::int64_t{0})),
      class_weights_(config) {}

void* CrossEntropy::do_ask(std::string_view interface_id) {
  if (interface_id == ChunksOutputs::kInterface)
    return static_cast<ChunksOutputs*>(this);
  return interface_id == FitsTargets::kInterface ? static_cast<FitsTargets*>(this) : nullptr;
}

StateDict CrossEntropy::do_fit(const RowReader& data, const RowList& rows,
                               std::size_t target) const {
  return class_weights_.fit(data, rows, target);
}

std::unique_ptr<Loss> CrossEntropy::do_fitted(const StateDict& state) const {
  auto fitted = std::make_unique<CrossEntropy>(config_);
  fitted->class_weights_.load(state);
  return fitted;
}

std::vector<OutputSpec> CrossEntropy::do_outputs_for(const TargetSpec& target) const {
  expect_kind("cross_entropy", {TargetKind::kClasses, TargetKind::kDistribution}, target);
  expect_two_classes("cross_entropy", target);
  class_weights_.expect_classes_of(target);
  return {{"logits", shape_per_position(target, target.class_count()), {}}};
}

LossTerms CrossEntropy::do_forward(const std::vector<at::Tensor>& outputs,
                                   const TargetBatch& target) const {
  const Positions at_positions(outputs[0], target);
  const at::Tensor& logits = at_positions.output;
  const at::Tensor& targets = at_positions.target;
  const at::Tensor& weights = at_positions.weights;
  const at::Tensor class_weights = class_weights_.of_classes(logits);

  if (weights.defined()) {
    const at::Tensor each = at::cross_entropy_loss(logits, targets, class_weights, kEach,
                                                   kIgnoreNone, label_smoothing_);
    return {at::dot(each, weights), class_weights.defined() && !is_distribution(targets)
                                        ? at::dot(class_weights.index_select(0, targets), weights)
                                        : at::Tensor()};
  }
  if (is_distribution(targets)) {
    return {
        at::cross_entropy_loss(logits, targets, class_weights, kSum, kIgnoreNone, label_smoothing_),
        {}};
  }
  if (label_smoothing_ > 0) {
    return {
        at::cross_entropy_loss(logits, targets, class_weights, kSum, kIgnoreNone, label_smoothing_),
        class_weights.defined() ? class_weights.index_select(0, targets).sum() : at::Tensor()};
  }
  // What cross_entropy_loss does, without its wrappers; the kernel adds up the class weights
  // anyway.
  const at::Tensor log_probabilities = at::_log_softmax(logits, 1, /*half_to_float=*/false);
  auto [sum, weight] =
      at::nll_loss_forward(log_probabilities, targets, class_weights, kSum, kIgnoreNone);
  return {sum, class_weights.defined() ? weight : at::Tensor()};
}

at::Tensor CrossEntropy::do_weight(const TargetBatch& target) const {
  if (!class_weights_.are_known() || is_distribution(target.values()))
    return weight_of_values(target, 1);
  return class_weights_.sum_over(target);
}

Prediction CrossEntropy::do_prediction(const std::vector<at::Tensor>& outputs) const {
  return softmax_prediction(outputs[0]);
}

BceWithLogits::BceWithLogits(const Config& config) : config_(config), class_weights_(config) {
  const bool is_list = config.has("pos_weight") && config.json().at("pos_weight").is_array();
  const auto weights = is_list ? config.get<std::vector<double>>("pos_weight")
                               : std::vector<double>{config.get<double>("pos_weight")};
  if (!is_list && weights[0] == 1)
    return;
  pos_weight_ = DeviceConstant(at::tensor(weights, at::kDouble));
}

void* BceWithLogits::do_ask(std::string_view interface_id) {
  return interface_id == FitsTargets::kInterface ? static_cast<FitsTargets*>(this) : nullptr;
}

StateDict BceWithLogits::do_fit(const RowReader& data, const RowList& rows,
                                std::size_t target) const {
  return class_weights_.fit(data, rows, target);
}

std::unique_ptr<Loss> BceWithLogits::do_fitted(const StateDict& state) const {
  auto fitted = std::make_unique<BceWithLogits>(config_);
  fitted->class_weights_.load(state);
  return fitted;
}

std::vector<OutputSpec> BceWithLogits::do_outputs_for(const TargetSpec& target) const {
  expect_kind("bce_with_logits", {TargetKind::kClasses, TargetKind::kLabels}, target);
  const bool is_labels = target.kind == TargetKind::kLabels;
  const std::int64_t weights = pos_weight_.is_defined() ? pos_weight_.numbers().numel() : 1;
  if (weights != 1 && weights != (is_labels ? target.width() : 1)) {
    config_.fail("pos_weight", is_labels
                                   ? "must be one number, or one per label: the target \"" +
                                         target.name + "\" has " + std::to_string(target.width()) +
                                         " labels (" + quoted_list(target.class_names) + "), got " +
                                         std::to_string(weights) + " numbers"
                                   : "must be one number, since the target \"" + target.name +
                                         "\" is classes; a list belongs to labels");
  }
  if (is_labels && class_weights_.is_given()) {
    config_.fail("class_weights", "the target \"" + target.name +
                                      "\" is labels, of which a row may have several; give "
                                      "pos_weight, one number per label");
  }
  class_weights_.expect_classes_of(target);
  if (is_labels) {
    if (target.width() < 2) {
      throw DataError("loss \"bce_with_logits\" needs at least two labels, but the target \"" +
                      target.name + "\" has one; make it a target of two classes");
    }
    return {{"logits", shape_per_position(target, target.width()), {}}};
  }
  if (target.class_count() != 2) {
    throw DataError("loss \"bce_with_logits\" needs two classes, but the target \"" + target.name +
                    "\" has " + std::to_string(target.class_count()) + "; use cross_entropy");
  }
  return {{"logit", shape_per_position(target, 1), {}}};
}

LossTerms BceWithLogits::do_forward(const std::vector<at::Tensor>& outputs,
                                    const TargetBatch& target) const {
  const Positions at_positions(outputs[0], target);
  const at::Tensor& logits = at_positions.output;
  at::Tensor positive = at_positions.target.to(logits.scalar_type());
  if (positive.dim() == 1)
    positive = positive.unsqueeze(1);
  at::Tensor weights = at_positions.weights;
  const bool has_class_weights = class_weights_.are_known();
  if (has_class_weights)
    weights = class_weights_.of_positions(at_positions.target, weights, logits);
  return {at::binary_cross_entropy_with_logits(logits, positive,
                                               weights.defined() ? weights.unsqueeze(1) : weights,
                                               pos_weight_.with(logits.options()), kSum),
          logits.size(1) == 1 && !has_class_weights ? at::Tensor() : do_weight(target)};
}

at::Tensor BceWithLogits::do_weight(const TargetBatch& target) const {
  if (class_weights_.are_known())
    return class_weights_.sum_over(target);
  const at::Tensor& values = target.values();
  return weight_of_values(target, at::isFloatingType(values.scalar_type()) ? values.size(-1) : 1);
}

Prediction BceWithLogits::do_prediction(const std::vector<at::Tensor>& outputs) const {
  if (outputs[0].size(-1) > 1)
    return {TargetKind::kLabels, at::sigmoid(outputs[0])};
  // Both from the logit: 1 - sigmoid(x) would lose the digits of a sure negative.
  return {TargetKind::kClasses,
          at::cat({at::sigmoid(outputs[0].neg()), at::sigmoid(outputs[0])}, -1), outputs[0]};
}

std::vector<OutputSpec> KlDiv::do_outputs_for(const TargetSpec& target) const {
  expect_kind("kl_div", {TargetKind::kDistribution}, target);
  expect_two_classes("kl_div", target);
  return {{"logits", shape_per_position(target, target.class_count()), {}}};
}

LossTerms KlDiv::do_forward(const std::vector<at::Tensor>& outputs,
                            const TargetBatch& target) const {
  const Positions at_positions(outputs[0], target);
  const at::Tensor each =
      at::kl_div(at::log_softmax(at_positions.output, 1), at_positions.target, kEach).sum(1);
  return {weighted(each, at_positions.weights), {}};
}

Prediction KlDiv::do_prediction(const std::vector<at::Tensor>& outputs) const {
  Prediction prediction = softmax_prediction(outputs[0]);
  prediction.kind = TargetKind::kDistribution;
  return prediction;
}

}  // namespace treadle::losses
