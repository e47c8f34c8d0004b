#include <treadle/engine/weight_average.h>

#include <ATen/ops/empty_like.h>
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

void WeightAverage::add_after(std::int64_t steps) {
  if (steps < plan_.start || (steps - plan_.start) % plan_.every != 0)
    return;
  TREADLE_EXPECTS(!own_.defined(), "the average is in the model: take it out first");
  const at::NoGradGuard no_gradients;
  if (count_ == 0) {
    average_ = arena_.parameters().clone();
    if (plan_.decay)
      buffers_ = copies_of(model_.buffers());
  } else {
    const double weight = plan_.decay ? 1 - *plan_.decay : 1 / static_cast<double>(count_ + 1);
    average_.lerp_(arena_.parameters(), weight);
    if (plan_.decay)
      average_buffers(weight);
  }
  ++count_;
}

void WeightAverage::average_buffers(double weight) {
  const std::vector<at::Tensor> its = model_.buffers();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (its[i].is_floating_point()) {
      buffers_[i].lerp_(its[i], weight);
    } else {
      buffers_[i].copy_(its[i]);
    }
  }
}

void WeightAverage::put_in() {
  TREADLE_EXPECTS(count_ > 0 && !own_.defined(), "there is no average to put in");
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
  state.put("count", nlohmann::json(count_));
  if (count_ == 0)
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
