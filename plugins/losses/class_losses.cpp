#include "class_losses.h"

#include <algorithm>
#include <string>

#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>

#include "target_check.h"

namespace treadle::losses {
namespace {

constexpr std::int64_t kSum = at::Reduction::Sum;
constexpr std::int64_t kEach = at::Reduction::None;
// No class index is ignored: the data has none below 0.
constexpr std::int64_t kIgnoreNone = -100;

// `wide` is float64, `narrow` the same in float32.
at::Tensor matching(const at::Tensor& wide, const at::Tensor& narrow, const at::Tensor& like) {
  if (!wide.defined())
    return wide;
  const at::Tensor& near = like.scalar_type() == at::kFloat ? narrow : wide;
  return near.to(like.options());
}

std::string list(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kShown ? text + ", …" : text;
}

}  // namespace

CrossEntropy::CrossEntropy(const Config& config)
    : config_(config), label_smoothing_(config.get<double>("label_smoothing")) {
  const auto weights = config.find<std::vector<double>>("class_weights");
  if (!weights)
    return;
  if (std::all_of(weights->begin(), weights->end(), [](double weight) { return weight == 0; }))
    config.fail("class_weights", "at least one class must have a weight above 0");
  class_weights_ = at::tensor(*weights, at::kDouble);
  class_weights_f_ = class_weights_.to(at::kFloat);
}

std::vector<OutputSpec> CrossEntropy::do_outputs_for(const TargetSpec& target) const {
  expect_classes("cross_entropy", target);
  if (class_weights_.defined() && class_weights_.numel() != target.class_count()) {
    config_.fail("class_weights", "must have one weight per class: the target \"" + target.name +
                                      "\" has " + std::to_string(target.class_count()) +
                                      " classes (" + list(target.class_names) + "), got " +
                                      std::to_string(class_weights_.numel()) + " weights");
  }
  return {{"logits", target.class_count()}};
}

LossTerms CrossEntropy::do_forward(const std::vector<at::Tensor>& outputs,
                                   const Batch& batch) const {
  const at::Tensor& logits = outputs[0];
  const at::Tensor class_weights = matching(class_weights_, class_weights_f_, logits);

  if (batch.weights.defined()) {
    const at::Tensor each = at::cross_entropy_loss(logits, batch.targets, class_weights, kEach,
                                                   kIgnoreNone, label_smoothing_);
    const at::Tensor rows = batch.weights;
    return {at::dot(each, rows), class_weights.defined()
                                     ? at::dot(class_weights.index_select(0, batch.targets), rows)
                                     : rows.sum()};
  }
  if (label_smoothing_ > 0) {
    return {at::cross_entropy_loss(logits, batch.targets, class_weights, kSum, kIgnoreNone,
                                   label_smoothing_),
            class_weights.defined() ? class_weights.index_select(0, batch.targets).sum()
                                    : at::Tensor()};
  }
  // What cross_entropy_loss does, without its wrappers; the kernel adds up the class weights
  // anyway.
  const at::Tensor log_probabilities = at::_log_softmax(logits, 1, /*half_to_float=*/false);
  auto [sum, weight] =
      at::nll_loss_forward(log_probabilities, batch.targets, class_weights, kSum, kIgnoreNone);
  return {sum, class_weights.defined() ? weight : at::Tensor()};
}

Predictions CrossEntropy::do_predictions(const std::vector<at::Tensor>& outputs) const {
  return {TargetKind::kClasses, at::softmax(outputs[0], 1)};
}

BceWithLogits::BceWithLogits(const Config& config) {
  const auto pos_weight = config.get<double>("pos_weight");
  if (pos_weight == 1)
    return;
  pos_weight_ = at::tensor({pos_weight}, at::kDouble);
  pos_weight_f_ = pos_weight_.to(at::kFloat);
}

std::vector<OutputSpec> BceWithLogits::do_outputs_for(const TargetSpec& target) const {
  expect_classes("bce_with_logits", target);
  if (target.class_count() != 2) {
    throw DataError("loss \"bce_with_logits\" needs two classes, but the target \"" + target.name +
                    "\" has " + std::to_string(target.class_count()) + "; use cross_entropy");
  }
  return {{"logit", 1}};
}

LossTerms BceWithLogits::do_forward(const std::vector<at::Tensor>& outputs,
                                    const Batch& batch) const {
  const at::Tensor& logit = outputs[0];
  const at::Tensor positive = batch.targets.to(logit.scalar_type()).unsqueeze(1);
  const at::Tensor rows = batch.weights.defined() ? batch.weights.unsqueeze(1) : at::Tensor();
  const at::Tensor sum = at::binary_cross_entropy_with_logits(
      logit, positive, rows, matching(pos_weight_, pos_weight_f_, logit), kSum);
  return {sum, rows.defined() ? batch.weights.sum() : at::Tensor()};
}

Predictions BceWithLogits::do_predictions(const std::vector<at::Tensor>& outputs) const {
  // Both from the logit: 1 - sigmoid(x) would lose the digits of a sure negative.
  return {TargetKind::kClasses,
          at::cat({at::sigmoid(outputs[0].neg()), at::sigmoid(outputs[0])}, 1)};
}

}  // namespace treadle::losses
