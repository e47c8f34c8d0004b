#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include <treadle/core/training/optimizer.h>

namespace treadle::testing {

/// Layers of chosen sizes in an arena, and an optimizer's slots: what one training has.
class Layers {
 public:
  /// `values` are those of all layers, one after the other; a copy is made.
  Layers(const Optimizer& optimizer, const std::vector<std::int64_t>& sizes,
         const at::Tensor& values)
      : optimizer_(optimizer),
        module_(make_module(sizes, values)),
        arena_(*module_, OptimizerSlots::alignment_of(optimizer.slots())),
        slots_(optimizer.slots(), arena_),
        view_(arena_, slots_) {}

  ParameterArena& arena() { return arena_; }
  OptimizerSlots& slots() { return slots_; }
  torch::nn::Module& module() { return *module_; }

  /// Those of all layers, one after the other.
  at::Tensor values() const {
    std::int64_t count = 0;
    for (const Segment& segment : arena_.segments())
      count += segment.size;
    at::Tensor all = at::empty({count}, arena_.parameters().options());
    std::int64_t at = 0;
    for (const Segment& segment : arena_.segments()) {
      all.narrow(0, at, segment.size).copy_(arena_.parameter(segment));
      at += segment.size;
    }
    return all;
  }

  /// Gives every layer that is not frozen its part of `gradients`, as a backward pass would.
  void receive(const at::Tensor& gradients) {
    arena_.zero_gradients();
    const at::NoGradGuard no_gradients;
    std::int64_t at = 0;
    for (const at::Tensor& parameter : module_->parameters()) {
      if (parameter.requires_grad())
        parameter.grad().copy_(gradients.narrow(0, at, parameter.numel()));
      at += parameter.numel();
    }
    arena_.collect();
  }

  void update(double rate) {
    view_.begin_step({.step = ++steps_, .learning_rate = rate, .gradient_scale = 1});
    optimizer_.update(view_);
  }

  void step(const at::Tensor& gradients, double rate) {
    receive(gradients);
    update(rate);
  }

 private:
  static std::shared_ptr<torch::nn::Module> make_module(const std::vector<std::int64_t>& sizes,
                                                        const at::Tensor& values) {
    auto module = std::make_shared<torch::nn::Module>("layers");
    std::int64_t at = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      module->register_parameter("layer" + std::to_string(i),
                                 values.narrow(0, at, sizes[i]).clone());
      at += sizes[i];
    }
    return module;
  }

  const Optimizer& optimizer_;
  std::shared_ptr<torch::nn::Module> module_;
  ParameterArena arena_;
  OptimizerSlots slots_;
  ParameterView view_;
  std::int64_t steps_ = 0;
};

}  // namespace treadle::testing
