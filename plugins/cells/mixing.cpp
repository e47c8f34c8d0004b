#include "mixing.h"

#include <algorithm>
#include <limits>

#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>

namespace treadle::cells {

OperationWeights::OperationWeights(const Config& config, const LayerSpec& spec)
    : Layer("operation_weights"), structure_(config.get<std::string>("structure")) {
  std::size_t most = 0;
  for (const Config& choice : config.children("places")) {
    choices_.push_back({choice.get<std::string>("name"), choice.get<std::string>("node"),
                        choice.get<std::vector<std::string>>("operations")});
    most = std::max(most, choices_.back().operations.size());
  }
  const std::vector<std::int64_t> sizes{static_cast<std::int64_t>(choices_.size()),
                                        static_cast<std::int64_t>(most)};
  alphas_ = register_parameter(std::string(kParameter), at::zeros(sizes, spec.dtype));
  at::Tensor allowed = at::ones(sizes, at::kBool);
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const auto count = static_cast<std::int64_t>(choices_[i].operations.size());
    allowed[static_cast<std::int64_t>(i)].narrow(0, count, sizes[1] - count).fill_(false);
  }
  allowed_ = register_buffer("allowed", allowed);
}

at::Tensor OperationWeights::mixed() const {
  // Far below any alpha rather than infinite: a choice without operations would be NaN.
  constexpr double kNever = -1e4;
  return at::softmax(alphas_.masked_fill(allowed_.logical_not(), kNever), -1)
      .mul(allowed_.to(alphas_.scalar_type()));
}

at::Tensor OperationWeights::forward(const Inputs& inputs, LayerContext& context) {
  const at::Tensor weights = mixed();
  if (context.is_logging()) {
    const at::Tensor sure = weights.detach();
    const at::Tensor entropy =
        sure.mul(sure.clamp_min(std::numeric_limits<float>::min()).log()).sum(-1).neg().mean();
    context.log("entropy", entropy);
  }
  return weights.unsqueeze(0)
      .expand({inputs.front().size(0), weights.size(0), weights.size(1)})
      .contiguous();
}

at::Tensor OperationWeights::weights() const {
  const at::NoGradGuard no_gradients;
  return mixed();
}

void OperationWeights::allow(std::size_t choice, const std::vector<bool>& operations) {
  TREADLE_EXPECTS(
      choice < choices_.size() && operations.size() == choices_[choice].operations.size(),
      "there is one entry for each operation of the choice");
  const at::NoGradGuard no_gradients;
  const at::Tensor row = allowed_[static_cast<std::int64_t>(choice)];
  for (std::size_t i = 0; i < operations.size(); ++i)
    row[static_cast<std::int64_t>(i)].fill_(operations[i]);
}

std::vector<bool> OperationWeights::allowed(std::size_t choice) const {
  const at::Tensor row = allowed_[static_cast<std::int64_t>(choice)].cpu();
  std::vector<bool> allowed;
  for (std::size_t i = 0; i < choices_[choice].operations.size(); ++i)
    allowed.push_back(row[static_cast<std::int64_t>(i)].item<bool>());
  return allowed;
}

WeightedSum::WeightedSum(const Config& config, const LayerSpec& spec)
    : Layer("weighted_sum"), choice_(config.get<std::int64_t>("choice")) {
  if (spec.inputs.size() < 2)
    throw DataError("takes the outputs of operations and, last, their weights");
  const TensorSpec& weights = spec.inputs.back();
  const auto operations = static_cast<std::int64_t>(spec.inputs.size()) - 1;
  if (weights.sizes.size() != 3 || weights.sizes[1] <= choice_ || weights.sizes[2] < operations) {
    throw DataError("takes weights [B, choices, operations] of choice " + std::to_string(choice_) +
                    " and " + std::to_string(operations) + " operations, got " + weights.text());
  }
  for (std::size_t i = 0; i + 1 < spec.inputs.size(); ++i) {
    if (spec.inputs[i].sizes != spec.inputs.front().sizes) {
      throw DataError("sums tensors of one size, but operation " + std::to_string(i) + " gives " +
                      spec.inputs[i].text() + " and operation 0 " + spec.inputs.front().text());
    }
  }
}

at::Tensor WeightedSum::forward(const Inputs& inputs, LayerContext&) {
  const at::Tensor& weights = inputs.back();
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(inputs.front().dim()), 1);
  sizes.front() = inputs.front().size(0);
  at::Tensor sum;
  for (std::size_t i = 0; i + 1 < inputs.size(); ++i) {
    const at::Tensor weight =
        weights.select(1, choice_).select(1, static_cast<std::int64_t>(i)).reshape(sizes);
    const at::Tensor term = inputs[i].mul(weight);
    sum = sum.defined() ? sum.add(term) : term;
  }
  return sum;
}

at::Tensor Zero::forward(const Inputs& inputs, LayerContext&) {
  return inputs.front().mul(0);
}

}  // namespace treadle::cells
