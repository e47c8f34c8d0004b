#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <treadle/base/config.h>
#include <treadle/core/components/extra_state.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/training_workflow.h>

namespace treadle::stumps {

/// A question and its answers: one number for each output, on either side of the threshold.
struct Stump {
  std::int64_t feature = 0;
  double threshold = 0;
  std::vector<double> below;  ///< where the feature is at most the threshold
  std::vector<double> above;
};

/// The stump with the least sum of squared errors, Σ c ‖y - answer‖², over the rows. On a tie the
/// first feature, and of it the lowest threshold.
///
/// `features` [n, in], `answers` [n, width] and `weights` [n], or undefined for 1 each, are float64
/// on the CPU.
Stump fit_stump(const at::Tensor& features, const at::Tensor& answers, const at::Tensor& weights,
                std::int64_t min_rows);

/// A stump as a model, without parameters. Of classes its output is the logarithm of the answers.
class StumpModel final : public Model, public ExtraState {
 public:
  explicit StumpModel(const ModelSpec& spec);

  void set(Stump stump) { stump_ = std::move(stump); }

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override;
  std::string extra_state() const override;
  void load_extra_state(std::string_view bytes) override;

 private:
  const std::int64_t width_;
  const c10::ScalarType dtype_;
  Stump stump_;
};

class StumpProvider final : public ModelProvider {
 public:
  explicit StumpProvider(const Config&) {}

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override;
};

class StumpTraining final : public TrainingWorkflow {
 public:
  explicit StumpTraining(const Config& config)
      : min_rows_(config.get_or<std::int64_t>("min_rows", 1)) {}

 private:
  LoopNeeds do_needs() const override;
  void do_train(TrainingSession& session) override;

  const std::int64_t min_rows_;
};

}  // namespace treadle::stumps
