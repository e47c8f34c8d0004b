#pragma once

#include <memory>
#include <vector>

#include <torch/nn/module.h>

namespace treadle {

/// Restores the mode (training or eval) of a module and of each layer in it at the end of a scope.
/// Modes differ between layers where some are frozen. The module must outlive the guard.
class ModeGuard {
 public:
  explicit ModeGuard(torch::nn::Module& module)
      : module_(module), was_training_(module.is_training()) {
    for (auto& layer : module.modules(/*include_self=*/false))
      layers_.push_back({layer, layer->is_training()});
  }
  ~ModeGuard() {
    module_.train(was_training_);
    // A layer comes before those inside it, whose mode it sets as well.
    for (const Layer& layer : layers_)
      layer.module->train(layer.was_training);
  }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  struct Layer {
    std::shared_ptr<torch::nn::Module> module;
    bool was_training;
  };

  torch::nn::Module& module_;
  const bool was_training_;
  std::vector<Layer> layers_;
};

/// Puts a module into eval mode until the end of a scope, then restores the mode of each layer.
class EvalModeGuard {
 public:
  explicit EvalModeGuard(torch::nn::Module& module) : modes_(module) { module.eval(); }

 private:
  const ModeGuard modes_;
};

}  // namespace treadle
