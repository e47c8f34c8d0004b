#include <treadle/engine/dropout_mode.h>

#include <torch/nn/modules/dropout.h>

#include <treadle/core/model/abilities/draws_in_training.h>

namespace treadle::engine {
namespace {

template <typename... Dropouts>
bool drops(const torch::nn::Module& module) {
  const auto is_one = [&]<typename Dropout>(const Dropout* dropout) {
    return dropout != nullptr && dropout->options.p() > 0;
  };
  return (is_one(dynamic_cast<const Dropouts*>(&module)) || ...);
}

bool draws(const torch::nn::Module& module) {
  if (const auto* says = dynamic_cast<const DrawsInTraining*>(&module))
    return says->draws_in_training();
  return drops<torch::nn::DropoutImpl, torch::nn::Dropout2dImpl, torch::nn::Dropout3dImpl,
               torch::nn::AlphaDropoutImpl, torch::nn::FeatureAlphaDropoutImpl>(module);
}

}  // namespace

std::int64_t set_dropout_mode(torch::nn::Module& model) {
  std::int64_t drawing = 0;
  const auto set = [&](torch::nn::Module& module) {
    const bool is_drawing = draws(module);
    module.train(is_drawing);
    drawing += is_drawing ? 1 : 0;
  };
  set(model);
  // A module comes before those inside it, whose mode it sets as well.
  for (const auto& module : model.modules(/*include_self=*/false))
    set(*module);
  return drawing;
}

}  // namespace treadle::engine
