#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include <treadle/core/training/optimizer.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/support/tensor_comparison.h>

namespace treadle::testing {

/// Three parameters in an arena, an optimizer's slots, and steps with given gradients.
class TrainedParameters {
 public:
  explicit TrainedParameters(const Optimizer& optimizer, at::ScalarType dtype = at::kDouble,
                             std::uint64_t seed = 5,
                             ParameterView::Path path = ParameterView::Path::kFastest,
                             c10::Device device = c10::kCPU)
      : optimizer_(optimizer),
        module_(make_module(dtype, seed, device)),
        arena_(*module_, OptimizerSlots::alignment_of(optimizer.slots())),
        slots_(optimizer.slots(), arena_),
        view_(arena_, slots_, path) {}

  std::size_t count() const { return arena_.segments().size(); }
  at::Tensor value(std::size_t i) const { return arena_.parameter(arena_.segments()[i]).clone(); }
  std::vector<at::Tensor> values() const {
    std::vector<at::Tensor> all;
    for (std::size_t i = 0; i < count(); ++i)
      all.push_back(value(i));
    return all;
  }
  torch::nn::Module& module() { return *module_; }
  ParameterArena& arena() { return arena_; }
  OptimizerSlots& slots() { return slots_; }

  /// Goes on where `other` is, as a resumed training does.
  void continue_from(const TrainedParameters& other) {
    arena_.parameters().copy_(other.arena_.parameters());
    slots_.load_state(other.slots_.state().snapshot());
    steps_ = other.steps_;
  }

  /// One update. An undefined gradient leaves its parameter untouched.
  void step(const std::vector<at::Tensor>& gradients, double rate, double scale = 1) {
    receive(gradients);
    view_.begin_step({.step = ++steps_, .learning_rate = rate, .gradient_scale = scale});
    optimizer_.update(view_);
  }

  /// The same with the numbers of the step on the device. With `skip` nothing may change.
  void step_on_device(const std::vector<at::Tensor>& gradients, double rate, bool skip) {
    receive(gradients);
    const at::TensorOptions options = slots_.updates().options();
    view_.begin_step({.learning_rate = at::full({}, rate, options),
                      .gradient_scale = at::full({}, 1, options),
                      .skip = at::full({}, skip, options.dtype(at::kBool))});
    optimizer_.update(view_);
  }

  void receive(const std::vector<at::Tensor>& gradients) {
    arena_.zero_gradients();
    const auto parameters = module_->parameters();
    {
      const at::NoGradGuard no_gradients;
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (gradients[i].defined() && parameters[i].requires_grad())
          parameters[i].grad().copy_(gradients[i]);
      }
    }
    arena_.collect();
  }

  static std::vector<at::Tensor> random_gradients(std::uint64_t seed,
                                                  at::ScalarType dtype = at::kDouble) {
    const TaskRandom random(seed);
    return {at::randn({3, 5}, dtype), at::randn({5}, dtype), at::randn({1}, dtype)};
  }

 private:
  static std::shared_ptr<torch::nn::Module> make_module(at::ScalarType dtype, std::uint64_t seed,
                                                        c10::Device device) {
    const auto values = random_gradients(seed, at::kDouble);
    auto module = std::make_shared<torch::nn::Module>("trained");
    module->register_parameter("weight", values[0].to(dtype));
    module->register_parameter("bias", values[1].to(dtype));
    module->register_parameter("scale", values[2].to(dtype));
    module->to(device);
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
