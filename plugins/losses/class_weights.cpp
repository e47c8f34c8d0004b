#include "class_weights.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ops/bincount.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/core/data/transform.h>

namespace treadle::losses {
namespace {

constexpr const char* kKey = "class_weights";
constexpr const char* kWeights = "class_weights";
constexpr std::size_t kRowsAtOnce = 256;
constexpr std::size_t kNumbersAtOnce = std::size_t{1} << 20;

/// How many positions have each class, or how much of their distributions. `counts`: which
/// positions do; undefined: all.
at::Tensor class_counts(const at::Tensor& values, const at::Tensor& counts,
                        const TargetSpec& target) {
  const bool is_index = target.kind == TargetKind::kClasses;
  at::Tensor each = is_index ? values.reshape(-1) : values.reshape({-1, target.width()});
  if (counts.defined())
    each = each.index_select(0, counts.reshape(-1).nonzero().squeeze(1));
  return is_index ? at::bincount(each, {}, target.class_count()).to(at::kDouble)
                  : each.to(at::kDouble).sum(0);
}

at::Tensor class_counts(const RowReader& data, const RowList& rows, std::size_t target) {
  const TargetSpec& spec = data.spec().targets[target];
  if (spec.padded_like.empty()) {
    const at::Tensor values = data.targets(target);
    const at::Tensor weights = data.position_weights(target);
    at::Tensor sum = at::zeros({spec.class_count()}, at::kDouble);
    std::vector<std::int64_t> some;
    for (std::size_t begin = 0; begin < rows.size(); begin += kNumbersAtOnce) {
      some.resize(std::min(kNumbersAtOnce, rows.size() - begin));
      rows.copy(begin, some);
      const at::Tensor index =
          at::from_blob(some.data(), {static_cast<std::int64_t>(some.size())}, at::kLong);
      sum += class_counts(values.index_select(0, index),
                          weights.defined() ? weights.index_select(0, index).gt(0) : weights, spec);
    }
    return sum;
  }
  at::Tensor sum = at::zeros({spec.class_count()}, at::kDouble);
  const auto add = [&](const Batch& batch) {
    const auto some = TargetBatch::transformed(batch, target, spec);
    const at::Tensor& weights = some.weights();
    sum += class_counts(some.values(), weights.defined() ? weights.gt(0) : weights, spec);
  };
  for_each_chunk(data, rows, add, kRowsAtOnce);
  return sum;
}

at::Tensor balanced(const at::Tensor& counts) {
  const at::Tensor is_there = counts.gt(0);
  const at::Tensor weights = counts.sum().div(is_there.sum().mul(counts));
  return at::where(is_there, weights, at::ones({}, at::kDouble));
}

bool all_zero(const std::vector<double>& weights) {
  return std::all_of(weights.begin(), weights.end(), [](double weight) { return weight == 0; });
}

}  // namespace

ClassWeights::ClassWeights(const Config& config) : config_(config) {
  if (!config.has(kKey))
    return;
  const nlohmann::json& given = config.json().at(kKey);
  if (given.is_string()) {
    is_balanced_ = true;
  } else if (given.is_object()) {
    by_name_ = given.get<std::map<std::string, double>>();
    if (by_name_.empty())
      config.fail(kKey, "must name at least one class");
  } else {
    const auto list = config.get<std::vector<double>>(kKey);
    if (all_zero(list))
      config.fail(kKey, "at least one class must have a weight above 0");
    set(at::tensor(list, at::kDouble));
  }
}

void ClassWeights::set(at::Tensor weights) {
  weights_ = DeviceConstant(std::move(weights));
}

void ClassWeights::expect_classes_of(const TargetSpec& target) const {
  if (!by_name_.empty())
    by_name(target);
  if (are_known() && weights_.numbers().numel() != target.class_count()) {
    config_.fail(kKey, "must have one weight per class: the target \"" + target.name + "\" has " +
                           std::to_string(target.class_count()) + " classes (" +
                           quoted_list(target.class_names) + "), got " +
                           std::to_string(weights_.numbers().numel()) + " weights");
  }
}

at::Tensor ClassWeights::by_name(const TargetSpec& target) const {
  const std::vector<std::string>& names = target.class_names;
  std::vector<double> weights(names.size(), 1);
  for (const auto& [name, weight] : by_name_) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      config_.fail(kKey, "there is no class " + quote_text(name) + " in the target \"" +
                             target.name + "\"; its classes are " + quoted_list(names) +
                             did_you_mean(name, names));
    }
    weights[static_cast<std::size_t>(found - names.begin())] = weight;
  }
  if (all_zero(weights))
    config_.fail(kKey, "at least one class must have a weight above 0");
  return at::tensor(weights, at::kDouble);
}

StateDict ClassWeights::fit(const RowReader& data, const RowList& rows, std::size_t target) const {
  StateDict state;
  if (is_balanced_) {
    state.put(kWeights, balanced(class_counts(data, rows, target)));
  } else if (!by_name_.empty()) {
    state.put(kWeights, by_name(data.spec().targets[target]));
  }
  return state;
}

void ClassWeights::load(const StateDict& fitted) {
  set(fitted.tensor(kWeights).to(at::kDouble));
}

at::Tensor ClassWeights::of_classes(const at::Tensor& like) const {
  return weights_.with(like.options());
}

at::Tensor ClassWeights::of_positions(const at::Tensor& classes, const at::Tensor& weights,
                                      const at::Tensor& like) const {
  const at::Tensor of_class = of_classes(like);
  if (!weights.defined())
    return of_class.index_select(0, classes);
  // What stands in padding need not be a class.
  return of_class.index_select(0, classes.masked_fill(weights.eq(0), 0)).mul(weights);
}

at::Tensor ClassWeights::sum_over(const TargetBatch& target) const {
  const at::Tensor classes = target.values().reshape(-1);
  const at::Tensor& weights = target.weights();
  if (!weights.defined())
    return weights_.with(classes.options().dtype(at::kDouble)).index_select(0, classes).sum();
  const at::Tensor flat = weights.reshape(-1);
  return at::dot(of_classes(flat).index_select(0, classes.masked_fill(flat.eq(0), 0)), flat);
}

}  // namespace treadle::losses
