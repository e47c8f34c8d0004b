#pragma once

#include <cstdint>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <nlohmann/json.hpp>

#include <treadle/core/model/model_spec.h>

#include "tree_grower.h"

/// Options, rows and models for tests of trees.
namespace treadle::trees {

/// XGBoost's defaults, which are the schema's, with `changes`.
inline GrowthOptions growth(const nlohmann::json& changes = nlohmann::json::object()) {
  nlohmann::json parameters{
      {"learning_rate", 0.3},       {"max_depth", 6},          {"max_leaves", 0},
      {"grow_policy", "depthwise"}, {"min_child_weight", 1.0}, {"gamma", 0.0},
      {"subsample", 1.0},           {"colsample_bytree", 1.0}, {"colsample_bylevel", 1.0},
      {"colsample_bynode", 1.0},    {"reg_lambda", 1.0},       {"reg_alpha", 0.0},
      {"max_delta_step", 0.0},      {"max_bin", 256}};
  parameters.update(changes);
  return GrowthOptions(Config(parameters));
}

/// float32 [rows, columns] without a pattern, in [-1, 1].
inline at::Tensor waves(std::int64_t rows, std::int64_t columns) {
  return at::arange(rows * columns, at::kDouble)
      .mul(1.3)
      .sin()
      .to(at::kFloat)
      .view({rows, columns});
}

inline ModelSpec spec_for(const TargetSpec& target, std::int64_t columns, std::int64_t width) {
  ModelSpec spec;
  spec.inputs = {{"features", {columns}}};
  spec.outputs = {{"output", {width}}};
  spec.targets = {target};
  return spec;
}

}  // namespace treadle::trees
