#include "ridge.h"

#include <string>

#include <ATen/ops/cholesky_solve.h>
#include <ATen/ops/linalg_cholesky_ex.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>

namespace treadle {

void RidgeSums::add(const LayerRows& rows) {
  if (rows.features.size(0) == 0)
    return;
  const at::Tensor x = rows.features.to(at::kDouble);
  const at::Tensor y = rows.targets.to(at::kDouble);
  if (!origin_.defined()) {
    const at::TensorOptions options = x.options();
    has_bias_ = rows.has_bias;
    origin_ = has_bias_ ? x.mean(0) : at::zeros({x.size(1)}, options);
    weight_ = at::zeros({}, options);
    features_ = at::zeros({x.size(1)}, options);
    targets_ = at::zeros({y.size(1)}, options);
    squares_ = at::zeros({x.size(1), x.size(1)}, options);
    products_ = at::zeros({x.size(1), y.size(1)}, options);
  }
  const at::Tensor centered = x.sub(origin_);
  const bool is_weighted = rows.weights.defined();
  const at::Tensor weights = is_weighted ? rows.weights.to(at::kDouble).unsqueeze(1) : at::Tensor();
  const at::Tensor counted = is_weighted ? centered.mul(weights) : centered;
  weight_ = is_weighted ? weight_.add(weights.sum()) : weight_.add(x.size(0));
  features_ = features_.add(counted.sum(0));
  targets_ = targets_.add((is_weighted ? y.mul(weights) : y).sum(0));
  squares_ = squares_.add(at::matmul(counted.t(), centered));
  products_ = products_.add(at::matmul(counted.t(), y));
}

RidgeSums::Solution RidgeSums::solution() const {
  if (!origin_.defined())
    throw TrainingError("no training row has a weight above 0, so there is nothing to solve");
  at::Tensor squares = squares_;
  at::Tensor products = products_;
  if (has_bias_) {
    squares = squares.sub(at::outer(features_, features_).div(weight_));
    products = products.sub(at::outer(features_, targets_).div(weight_));
  }
  squares = squares.clone();
  squares.diagonal().add_(alpha_);
  const auto [factor, info] = at::linalg_cholesky_ex(squares);
  if (info.item<std::int64_t>() != 0) {
    throw TrainingError(
        "the features of the last layer depend on each other, so no weights are the best; raise "
        "training.alpha above " +
        std::to_string(alpha_));
  }
  const at::Tensor weight = at::cholesky_solve(products, factor).t();
  if (!has_bias_)
    return {weight, {}};
  const at::Tensor mean = origin_.add(features_.div(weight_));
  return {weight, targets_.div(weight_).sub(at::matmul(weight, mean))};
}

StateDict RidgeSums::do_state() const {
  StateDict state;
  if (!origin_.defined())
    return state;
  state.put("has_bias", nlohmann::json(has_bias_));
  state.put("origin", origin_);
  state.put("weight", weight_);
  state.put("features", features_);
  state.put("targets", targets_);
  state.put("squares", squares_);
  state.put("products", products_);
  return state;
}

void RidgeSums::do_load_state(const StateDict& state) {
  if (!state.has_value("has_bias"))
    return;
  has_bias_ = state.value("has_bias").get<bool>();
  origin_ = state.tensor("origin");
  weight_ = state.tensor("weight");
  features_ = state.tensor("features");
  targets_ = state.tensor("targets");
  squares_ = state.tensor("squares");
  products_ = state.tensor("products");
}

}  // namespace treadle
