#include <treadle/core/precision/float8_scales.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>

#include "precision/float8_format.h"

namespace treadle {
namespace {

constexpr std::int64_t kOperands = 3;

/// The larger one, or NaN.
void add(const at::Tensor& largest, at::Tensor& so_far) {
  const at::NoGradGuard no_gradients;
  so_far = so_far.defined() ? at::maximum(so_far, largest) : largest.detach();
}

std::optional<Float8Use>& used_here() {
  thread_local std::optional<Float8Use> use;
  return use;
}

}  // namespace

Float8Scales::Float8Scales(const torch::nn::Module& model) : torch::nn::Module("Float8Scales") {
  for (const at::Tensor& parameter : distinct_parameters(model)) {
    if (parameter.dim() != 2)
      continue;
    places_.emplace(parameter.unsafeGetTensorImpl(), static_cast<std::int64_t>(weights_.size()));
    weights_.push_back(parameter);
  }
  const auto count = static_cast<std::int64_t>(weights_.size());
  const at::TensorOptions float32(weights_.empty() ? c10::Device(c10::kCPU)
                                                   : weights_.front().device());
  history_ = register_buffer("history", at::zeros({kOperands, count, kHistory}, float32));
  scale_ = register_buffer("scale", at::zeros({kOperands, count}, float32));
  recorded_.resize(kOperands * weights_.size());
}

std::optional<std::int64_t> Float8Scales::place_of(const at::Tensor& weight) const {
  const auto found = places_.find(weight.unsafeGetTensorImpl());
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

at::Tensor Float8Scales::scale(Float8Operand operand, std::int64_t place) const {
  return scale_.select(0, static_cast<std::int64_t>(operand)).select(0, place);
}

void Float8Scales::record(Float8Operand operand, std::int64_t place, const at::Tensor& largest) {
  const std::size_t index =
      static_cast<std::size_t>(operand) * weights_.size() + static_cast<std::size_t>(place);
  add(largest, recorded_[index]);
}

void Float8Scales::join(const Float8Scales& replica) {
  TREADLE_EXPECTS(replica.recorded_.size() == recorded_.size(),
                  "a replica has the matrices of the model");
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    if (replica.recorded_[i].defined())
      add(replica.recorded_[i], recorded_[i]);
  }
}

at::Tensor Float8Scales::records() const {
  const at::Tensor none = at::full({}, -1, scale_.options());
  std::vector<at::Tensor> all;
  for (const at::Tensor& one : recorded_)
    all.push_back(one.defined() ? one : none);
  return all.empty() ? none.new_empty({0}) : at::stack(all);
}

void Float8Scales::join(const at::Tensor& records) {
  TREADLE_EXPECTS(records.numel() == static_cast<std::int64_t>(recorded_.size()),
                  "another process has the matrices of the model");
  const at::Tensor here = records.to(scale_.device());
  const at::Tensor is_recorded = records.ne(-1).cpu();
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    if (is_recorded[place].item<bool>())
      add(here[place], recorded_[i]);
  }
}

void Float8Scales::forget_step() {
  std::fill(recorded_.begin(), recorded_.end(), at::Tensor());
}

void Float8Scales::advance() {
  if (weights_.empty())
    return;
  const at::NoGradGuard no_gradients;
  const at::Tensor none = at::zeros({}, scale_.options());
  for (at::Tensor& one : recorded_) {
    if (!one.defined())
      one = none;
  }
  const at::Tensor step = at::stack(recorded_).view_as(scale_);
  forget_step();
  const at::Tensor counts = step.gt(0).logical_and_(step.isfinite());
  const at::Tensor moved = at::cat({step.unsqueeze(2), history_.narrow(2, 0, kHistory - 1)}, 2);
  history_.copy_(at::where(counts.unsqueeze(2), moved, history_));
  const at::Tensor largest = history_.amax(2);
  for (std::int64_t operand = 0; operand < kOperands; ++operand) {
    const at::Tensor of_operand = largest.select(0, operand);
    const at::Tensor scales = float8_scale(static_cast<Float8Operand>(operand), of_operand);
    scale_.select(0, operand)
        .copy_(at::where(of_operand.gt(0), scales, at::zeros_like(of_operand)));
  }
}

Float8Scope::Float8Scope(std::optional<Float8Use> use)
    : before_(std::exchange(used_here(), std::move(use))) {}

Float8Scope::~Float8Scope() {
  used_here() = std::move(before_);
}

const std::optional<Float8Use>& Float8Scope::of_this_thread() {
  return used_here();
}

}  // namespace treadle
