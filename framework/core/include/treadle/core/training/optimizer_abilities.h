#pragma once

#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include <treadle/core/training/optimizer_slots.h>
#include <treadle/core/training/parameter_arena.h>

namespace treadle {

/// An optimizer whose weights of use are not those that it takes gradients at, as with
/// schedule-free methods.
///
/// An optional ability of an Optimizer (`optimizer.ask<EvaluationWeights>()`). A training then
/// evaluates, keeps as best and ends with these weights; steps and checkpoints have its own.
/// Statistics of batch normalization are gathered for them, as for an average.
class EvaluationWeights {
 public:
  static constexpr std::string_view kInterface = "treadle.evaluation-weights/0";

  virtual ~EvaluationWeights();

  /// Those for `parameters` [n], the flat vector of the arena that `slots` belong to: a new tensor
  /// [n]. Of segments that were never updated they are the parameters. No gradients are recorded,
  /// and nothing is waited for. [training thread]
  at::Tensor evaluation_weights(const at::Tensor& parameters, const OptimizerSlots& slots) const {
    return do_evaluation_weights(parameters, slots);
  }

 private:
  virtual at::Tensor do_evaluation_weights(const at::Tensor& parameters,
                                           const OptimizerSlots& slots) const = 0;
};

/// An optimizer with more than one rule, which shape and role of a parameter decide between.
///
/// An optional ability of an Optimizer (`optimizer.ask<NamesRules>()`), for `workflow-runner check
/// --dry-run`.
class NamesRules {
 public:
  static constexpr std::string_view kInterface = "treadle.names-rules/0";

  virtual ~NamesRules();

  /// In a few words, such as "muon" or "adamw (output)". A function of the segment's shape and role
  /// and the optimizer's configuration.
  std::string rule_of(const Segment& segment) const { return do_rule_of(segment); }

 private:
  virtual std::string do_rule_of(const Segment& segment) const = 0;
};

}  // namespace treadle
