#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

namespace treadle {

/// A module in evaluation while this lives; each part of it as it was afterwards.
class InEvaluation {
 public:
  explicit InEvaluation(torch::nn::Module& module) {
    were_training_.emplace_back(&module, module.is_training());
    for (const std::shared_ptr<torch::nn::Module>& part : module.modules(/*include_self=*/false))
      were_training_.emplace_back(part.get(), part->is_training());
    module.eval();
  }
  // Holders come before what they hold: train() reaches inwards.
  ~InEvaluation() {
    for (const auto& [module, training] : were_training_)
      module->train(training);
  }
  InEvaluation(const InEvaluation&) = delete;
  InEvaluation& operator=(const InEvaluation&) = delete;

 private:
  std::vector<std::pair<torch::nn::Module*, bool>> were_training_;
};

}  // namespace treadle
