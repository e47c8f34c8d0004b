#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <treadle/core/precision/precision.h>

namespace treadle {

/// The factors of a linear product, forward and backward.
enum class Float8Operand { kInput, kWeight, kGradient };

/// The scales of "fp8-delayed": a step rounds with those that the steps before gave, so that a
/// value need not be known before it is rounded. A part of the model, whose buffers go wherever the
/// model's go: into checkpoints, replicas, averages and saved models.
///
///     scale = largest number of the format / largest magnitude of the last kHistory steps
///
/// For each matrix of the model there are three: of the inputs it multiplies, of itself, and of the
/// gradients that come back. One that is used several times in a step, by any shard, has the
/// largest magnitude of all uses. Nothing waits for a device.
///
/// record() may be called for different weights at once.
///
/// Source: NVIDIA Transformer Engine, `DelayedScaling` with its defaults: margin 0, a history of
/// 1024 steps, of which the most counts. Other than there, a step in which a tensor is not used, is
/// all zero or not finite leaves its history as it is.
class Float8Scales final : public torch::nn::Module {
 public:
  static constexpr std::int64_t kHistory = 1024;
  /// Of the part of the model, and so the beginning of the buffers' names.
  static constexpr std::string_view kName = "float8_scales";

  /// Of the matrices that `model` has now.
  explicit Float8Scales(const torch::nn::Module& model);

  /// Where the scales of a weight are; nothing if it is no matrix of the model.
  std::optional<std::int64_t> place_of(const at::Tensor& weight) const;
  /// float32 []; 0 before there is any history.
  at::Tensor scale(Float8Operand operand, std::int64_t place) const;
  /// `largest`: float32 [], a magnitude of this step.
  void record(Float8Operand operand, std::int64_t place, const at::Tensor& largest);

  /// Takes over what a replica recorded.
  void join(const Float8Scales& replica);
  /// The records of this step, for join() in another process: float32 [3 * weights], -1
  /// where there is nothing.
  at::Tensor records() const;
  void join(const at::Tensor& records);
  /// Drops the records of a step: those of a replica, which its model has taken over.
  void forget_step();
  /// At the end of a step: its records become history.
  void advance();

 private:
  std::vector<at::Tensor> weights_;  // held, so that no other tensor gets the address of one
  std::unordered_map<const c10::TensorImpl*, std::int64_t> places_;
  // float32; first by operand, then by place
  at::Tensor history_;  // [3, weights, kHistory], the last step first
  at::Tensor scale_;    // [3, weights]
  // Of this step alone, so no buffer: [], undefined where nothing was recorded.
  std::vector<at::Tensor> recorded_;
};

/// How a thread's linear products are rounded.
struct Float8Use {
  Float8Scaling scaling = Float8Scaling::kTensorwise;
  std::shared_ptr<Float8Scales> scales = nullptr;  ///< of kDelayed, and of nothing else
  bool records = false;                            ///< in a step of a training
};

/// This thread's linear products are rounded so while one lives; nothing: they are not. A thread
/// that works for another one takes this over.
class Float8Scope {
 public:
  explicit Float8Scope(std::optional<Float8Use> use);
  ~Float8Scope();
  Float8Scope(const Float8Scope&) = delete;
  Float8Scope& operator=(const Float8Scope&) = delete;

  static const std::optional<Float8Use>& of_this_thread();

 private:
  std::optional<Float8Use> before_;
};

}  // namespace treadle
