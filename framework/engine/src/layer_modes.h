#pragma once

#include <memory>
#include <vector>

#include <torch/nn/module.h>

namespace treadle::engine {

/// KeepsState which layers of a model train; gives each its own mode again when it ends: some may
/// be frozen.
class LayerModes {
 public:
  explicit LayerModes(torch::nn::Module& model)
      : model_(model), was_training_(model.is_training()) {
    for (auto& layer : model.modules(/*include_self=*/false)) {
      layers_.push_back({layer, layer->is_training()});
    }
  }
  ~LayerModes() {
    model_.train(was_training_);
    // A layer comes before those inside it, whose mode it sets as well.
    for (const Layer& layer : layers_)
      layer.module->train(layer.was_training);
  }
  LayerModes(const LayerModes&) = delete;
  LayerModes& operator=(const LayerModes&) = delete;

 private:
  struct Layer {
    std::shared_ptr<torch::nn::Module> module;
    bool was_training;
  };

  torch::nn::Module& model_;
  const bool was_training_;
  std::vector<Layer> layers_;
};

}  // namespace treadle::engine
