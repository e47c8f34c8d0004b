#include <treadle/engine/weight_average.h>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include <treadle/base/error.h>

namespace treadle::engine {
namespace {

std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& tensor : tensors)
    copies.push_back(tensor.detach().clone());
  return copies;
}

/// Into tensors that stay where they are.
void copy(const std::vector<at::Tensor>& from, std::vector<at::Tensor> to) {
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i].copy_(from[i]);
}

}  // namespace

WeightAverage::WeightAverage(ParameterArena& arena, Model& model, AveragingPlan plan)
    : arena_(arena), model_(model), plan_(plan) {
  TREADLE_EXPECTS(plan.start >= 0 && plan.every >= 1, "an average needs a start and a pace");
  TREADLE_EXPECTS(!plan.decay || (*plan.decay > 0 && *plan.decay < 1), "a decay lies in (0, 1)");
}

WeightAverage::~WeightAverage() = default;

void WeightAverage::add_after(std::int64_t steps, const at::Tensor& skip) {
  if (!is_due_after(steps))
    return;
  TREADLE_EXPECTS(!own_.defined(), "the average is in the model: take it out first");
  const at::NoGradGuard no_gradients;
  if (skip.defined())
    return add_unless(skip);
  if (count_ == 0)
    begin();
  else
    add(plan_.decay ? 1 - *plan_.decay : 1 / static_cast<double>(count_ + 1));
  ++count_;
}

void WeightAverage::begin() {
  average_ = arena_.parameters().clone();
  if (plan_.decay)
    buffers_ = copies_of(model_.buffers());
}

void WeightAverage::add(double weight) {
  average_.lerp_(arena_.parameters(), weight);
  if (!plan_.decay)
    return;
  const std::vector<at::Tensor> its = model_.buffers();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (its[i].is_floating_point()) {
      buffers_[i].lerp_(its[i], weight);
    } else {
      buffers_[i].copy_(its[i]);
    }
  }
}

/// The same where only the device knows whether the step counts: with a weight of 0 nothing
/// changes, with a weight of 1 the average begins.
void WeightAverage::add_unless(const at::Tensor& skip) {
  const at::TensorOptions float64 = skip.options().dtype(at::kDouble);
  if (!average_.defined())
    begin();
  if (!count_on_device_.defined())
    count_on_device_ = at::full({}, static_cast<double>(count_), float64);
  const at::Tensor counts = skip.logical_not().to(at::kDouble);
  count_on_device_.add_(counts);
  const at::Tensor is_first = count_on_device_.le(1).to(at::kDouble);
  const at::Tensor weight = counts * (plan_.decay ? is_first + (1 - is_first) * (1 - *plan_.decay)
                                                  : 1 / count_on_device_.clamp_min(1));
  average_.lerp_(arena_.parameters(), weight.to(average_.scalar_type()));
  if (!plan_.decay)
    return;
  const std::vector<at::Tensor> its = model_.buffers();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (its[i].is_floating_point())
      buffers_[i].lerp_(its[i], weight.to(its[i].scalar_type()));
    else
      buffers_[i].copy_(at::where(skip, buffers_[i], its[i]));
  }
}

std::vector<std::pair<std::string, at::Tensor>> WeightAverage::memory() const {
  if (!count_on_device_.defined())
    return {};
  std::vector<std::pair<std::string, at::Tensor>> all{
      {"the average of the weights", average_},
      {"the count of averaged weights", count_on_device_}};
  for (const at::Tensor& buffer : buffers_)
    all.emplace_back("the average of a buffer", buffer);
  return all;
}

std::int64_t WeightAverage::count() const {
  return count_on_device_.defined() ? static_cast<std::int64_t>(count_on_device_.item<double>())
                                    : count_;
}

void WeightAverage::put_in() {
  TREADLE_EXPECTS(has_begun() && !own_.defined(), "there is no average to put in");
  const at::NoGradGuard no_gradients;
  own_ = arena_.parameters().clone();
  own_buffers_ = copies_of(model_.buffers());
  arena_.parameters().copy_(average_);
  arena_.write_back();
  if (plan_.decay)
    copy(buffers_, model_.buffers());
}

void WeightAverage::take_out() {
  TREADLE_EXPECTS(own_.defined(), "the average is not in the model");
  const at::NoGradGuard no_gradients;
  arena_.parameters().copy_(own_);
  arena_.write_back();
  copy(own_buffers_, model_.buffers());
  own_ = at::Tensor();
  own_buffers_.clear();
}

StateDict WeightAverage::do_state() const {
  StateDict state;
  const std::int64_t added = count();
  state.put("count", nlohmann::json(added));
  if (added == 0)
    return state;
  state.put("average", average_);
  StateDict buffers;
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    buffers.put(std::to_string(i), buffers_[i]);
  state.put("buffers", std::move(buffers));
  return state;
}

void WeightAverage::do_load_state(const StateDict& state) {
  count_ = state.value("count").get<std::int64_t>();
  count_on_device_ = at::Tensor();
  if (count_ == 0)
    return;
  const at::Tensor& saved = state.tensor("average");
  if (saved.sizes() != arena_.parameters().sizes() || saved.scalar_type() != arena_.dtype())
    throw StorageError("the saved average of the weights belongs to a model with other parameters");
  average_ = at::empty_like(arena_.parameters()).copy_(saved);
  buffers_.clear();
  if (!plan_.decay)
    return;
  const StateDict& buffers = state.part("buffers");
  for (const at::Tensor& its : model_.buffers()) {
    const at::Tensor& buffer = buffers.tensor(std::to_string(buffers_.size()));
    if (buffer.sizes() != its.sizes())
      throw StorageError("the saved average of the weights belongs to a model with other buffers");
    buffers_.push_back(at::empty_like(its).copy_(buffer));
  }
}

}  // namespace treadle::engine
