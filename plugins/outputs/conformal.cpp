#include "conformal.h"

#include <bit>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/random.h>
#include <treadle/core/data/port_spec.h>

#include "held_out_rows.h"

namespace treadle::outputs {
namespace {

/// 0.9 times 10 rows is 9, and not a little more.
constexpr double kRounding = 1e-9;

/// A number in [0, 1) of the bits of each row, [N].
at::Tensor uniform_of(const at::Tensor& rows) {
  const at::Tensor values = rows.contiguous();
  const auto* value = values.data_ptr<double>();
  at::Tensor uniform = at::empty({values.size(0)}, at::kDouble);
  auto* const to = uniform.data_ptr<double>();
  for (std::int64_t i = 0; i < values.size(0); ++i) {
    std::uint64_t mixed = 0;
    for (std::int64_t c = 0; c < values.size(1); ++c)
      mixed = RandomBits(mixed ^ std::bit_cast<std::uint64_t>(*value++)).next();
    to[i] = static_cast<double>(mixed >> 11) * 0x1p-53;
  }
  return uniform;
}

/// Each row as often as it has positions: [B, ...] of groups as [N].
at::Tensor for_positions(const at::Tensor& groups, std::int64_t count) {
  return groups.repeat_interleave(count / std::max<std::int64_t>(groups.numel(), 1));
}

}  // namespace

Conformal::Conformal(const Config& config)
    : coverage_(config.get_or<double>("coverage", 0.9)),
      method_(config.get_or<std::string>("method", "split") == "cv+" ? Method::kCvPlus
                                                                     : Method::kSplit) {
  static const std::map<std::string, Score> scores{{"auto", Score::kAuto},
                                                   {"residual", Score::kResidual},
                                                   {"quantiles", Score::kQuantiles},
                                                   {"aps", Score::kAps},
                                                   {"lac", Score::kLac}};
  score_ = scores.at(config.get_or<std::string>("score", "auto"));
  if (config.has("by"))
    by_ = config.get<std::string>("by") == "class" ? By::kClass : By::kGroup;
  if (method_ != Method::kCvPlus)
    return;
  const std::string instead = ", or set \"method\" to \"split\"";
  if (score_ != Score::kAuto && score_ != Score::kResidual) {
    config.fail("score", "\"cv+\" has absolute residuals: expected \"residual\", got " +
                             quote_text(config.get<std::string>("score")) + "; leave it out" +
                             instead);
  }
  if (by_ != By::kAll) {
    config.fail("by", "\"cv+\" holds the coverage over all rows, not within " +
                          quote_text(config.get<std::string>("by")) + "; leave it out" + instead);
  }
  if (coverage_ <= 0.5) {
    config.fail("coverage", "\"cv+\" guarantees 2 coverage - 1, so it is to be above 0.5, got " +
                                nlohmann::json(coverage_).dump() + "; ask for more" + instead);
  }
  score_ = Score::kResidual;
}

void Conformal::do_start(const TargetSpec& target) {
  expect_kind("conformal", {TargetKind::kClasses, TargetKind::kNumbers}, target);
  const bool is_classes = target.kind == TargetKind::kClasses;
  if (method_ == Method::kCvPlus && is_classes) {
    throw DataError("output \"conformal\": the target " + quote_text(target.name) +
                    " has classes, and \"cv+\" makes intervals around numbers; set \"method\" to "
                    "\"split\"");
  }
  const bool scores_classes = score_ == Score::kAps || score_ == Score::kLac;
  const bool scores_numbers = score_ == Score::kResidual || score_ == Score::kQuantiles;
  if (is_classes ? scores_numbers : scores_classes) {
    throw DataError("output \"conformal\": the target " + quote_text(target.name) + " has " +
                    std::string(name_of(target.kind)) + ", for which \"score\" is " +
                    (is_classes ? "\"aps\" or \"lac\"" : "\"residual\" or \"quantiles\""));
  }
  if (by_ == By::kClass && !is_classes) {
    throw DataError("output \"conformal\": the target " + quote_text(target.name) +
                    " has no classes to hold the coverage in; leave \"by\" out, or give \"group\"");
  }
  if (is_classes && score_ == Score::kAuto)
    score_ = Score::kAps;
  target_ = target;
  quantiles_ = at::Tensor();
  residuals_ = {};
}

bool Conformal::has_fixed_positions() const {
  for (const std::int64_t size : target_.positions()) {
    if (size == kVaries)
      return false;
  }
  return true;
}

std::int64_t Conformal::place_among(std::int64_t rows) const {
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(rows + 1) * coverage_ - kRounding));
}

at::Tensor Conformal::places_among(const at::Tensor& rows) const {
  return ((rows + 1).to(at::kDouble) * coverage_ - kRounding).ceil().to(at::kLong).clamp_min(1);
}

void Conformal::expect_enough_rows(std::int64_t rows, const std::string& of) const {
  if (place_among(rows) <= rows)
    return;
  auto needed = static_cast<std::int64_t>(coverage_ / (1 - coverage_));
  while (place_among(needed) > needed)
    ++needed;
  throw DataError("output \"conformal\": a coverage of " + nlohmann::json(coverage_).dump() +
                  " needs " + std::to_string(needed) + " held-out rows" + of + ", and there " +
                  (rows == 1 ? "is 1" : "are " + std::to_string(rows)) +
                  (method_ == Method::kCvPlus ? "; give the data more rows"
                                              : "; set more rows aside (outputs.fraction)") +
                  ", or ask for less");
}

void Conformal::do_expect_enough(const TargetBatch& target) const {
  if (by_ != By::kClass)
    return expect_enough_rows(HeldOutTargets(target_.kind, target).count(), "");
  const HeldOutTargets rows(target_.kind, target);
  for (std::int64_t c = 0; c < target_.class_count(); ++c) {
    expect_enough_rows(rows.is_class(c).sum().item<std::int64_t>(),
                       " of " + quote_text(target_.class_names[static_cast<std::size_t>(c)]));
  }
}

at::Tensor Conformal::quantile_of(const at::Tensor& scores, const std::string& of) const {
  const at::Tensor counts = scores.isnan().logical_not().sum(0);
  expect_enough_rows(counts.min().item<std::int64_t>(), of);
  const at::Tensor places = places_among(counts) - 1;
  // NaN comes last.
  return at::gather(std::get<0>(scores.sort(0)), 0, places.unsqueeze(0)).squeeze(0);
}

void Conformal::fit_groups(const at::Tensor& scores, const at::Tensor& groups) {
  if (!groups.defined()) {
    throw DataError(
        "output \"conformal\": the data has no groups to hold the coverage in; name a column of "
        "groups in \"data\", or leave \"by\" out");
  }
  const at::Tensor order = at::argsort(groups, /*stable=*/true);
  const auto [found, inverse, counts] = at::unique_consecutive(
      groups.index_select(0, order), /*return_inverse=*/false, /*return_counts=*/true);
  std::vector<std::int64_t> kept;
  std::vector<at::Tensor> quantiles;
  std::int64_t begin = 0;
  for (std::int64_t g = 0; g < found.numel(); ++g) {
    const auto count = counts[g].item<std::int64_t>();
    const at::Tensor of_group = scores.index_select(0, order.narrow(0, begin, count));
    const auto least = of_group.isnan().logical_not().sum(0).min().item<std::int64_t>();
    if (place_among(least) <= least) {
      kept.push_back(found[g].item<std::int64_t>());
      quantiles.push_back(quantile_of(of_group, ""));
    }
    begin += count;
  }
  groups_ = at::tensor(kept, at::kLong);
  group_quantiles_ = quantiles.empty() ? at::Tensor() : at::stack(quantiles);
}

/// The quantile that each row is held to: [rows, ...], or [1, ...] for all.
at::Tensor Conformal::limits(const at::Tensor& groups, std::int64_t rows) const {
  if (by_ != By::kGroup || !group_quantiles_.defined() || !groups.defined())
    return quantiles_.unsqueeze(0);
  const at::Tensor of_rows = groups.numel() == rows ? groups : for_positions(groups, rows);
  const at::Tensor place =
      at::searchsorted(groups_, of_rows.contiguous()).clamp_max(groups_.numel() - 1);
  at::Tensor is_known = at::index_select(groups_, 0, place).eq(of_rows);
  const at::Tensor own = at::index_select(group_quantiles_, 0, place);
  while (is_known.dim() < own.dim())
    is_known = is_known.unsqueeze(-1);
  return at::where(is_known, own, quantiles_.unsqueeze(0));
}

Conformal::Bounds Conformal::bounds(const Prediction& prediction) const {
  const Prediction::Extra* least = nullptr;
  const Prediction::Extra* most = nullptr;
  for (const Prediction::Extra& extra : prediction.extras) {
    if (std::isnan(extra.level))
      continue;
    if (extra.level < 0.5 && (least == nullptr || extra.level < least->level))
      least = &extra;
    if (extra.level > 0.5 && (most == nullptr || extra.level > most->level))
      most = &extra;
  }
  const bool has_both = least != nullptr && most != nullptr;
  if (score_ == Score::kQuantiles && !has_both) {
    throw DataError(
        "output \"conformal\": \"score\" is \"quantiles\", and the loss predicts none "
        "on both sides of the median; train with the loss \"quantile\" and levels such "
        "as [0.05, 0.5, 0.95], or leave \"score\" out");
  }
  if (score_ != Score::kResidual && has_both)
    return {least->values.to(at::kDouble), most->values.to(at::kDouble)};
  const at::Tensor values = prediction.values.to(at::kDouble);
  return {values, values};
}

void Conformal::fit_numbers(const Prediction& prediction, const TargetBatch& target) {
  const Bounds predicted = bounds(prediction);
  const at::Tensor actual = target.values().to(at::kDouble);
  at::Tensor scores = at::maximum(predicted.lower - actual, actual - predicted.upper);
  at::Tensor weights = target.weights();
  at::Tensor groups = target.batch().groups;
  if (!has_fixed_positions()) {
    if (groups.defined())
      groups = for_positions(groups, scores.numel() / scores.size(-1));
    scores = scores.reshape({-1, scores.size(-1)});
    weights = weights.defined() ? weights.reshape(-1) : weights;
  }
  if (weights.defined())
    scores = scores.masked_fill(weights.eq(0).unsqueeze(-1), std::nan(""));
  quantiles_ = quantile_of(scores, "");
  if (by_ == By::kGroup)
    fit_groups(scores, groups);
}

at::Tensor Conformal::class_scores(const at::Tensor& probabilities) const {
  const at::Tensor likeliest = probabilities.argmax(1, true);
  if (score_ == Score::kLac)
    return (1 - probabilities).scatter(1, likeliest, 0.0);
  const at::Tensor order = at::argsort(probabilities, /*stable=*/true, 1, /*descending=*/true);
  const at::Tensor sorted = at::gather(probabilities, 1, order);
  const at::Tensor u = uniform_of(probabilities).unsqueeze(1);
  const at::Tensor scores = sorted.cumsum(1) - sorted * (1 - u);
  return at::zeros_like(scores).scatter(1, order, scores).scatter(1, likeliest, 0.0);
}

void Conformal::fit_classes(const Prediction& prediction, const TargetBatch& target) {
  const HeldOutRows rows(prediction, target);
  const at::Tensor scores =
      class_scores(rows.values).gather(1, rows.actual.unsqueeze(1)).squeeze(1);
  if (by_ == By::kClass) {
    std::vector<at::Tensor> quantiles;
    for (std::int64_t c = 0; c < target_.class_count(); ++c) {
      quantiles.push_back(
          quantile_of(scores.index({rows.actual.eq(c)}),
                      " of " + quote_text(target_.class_names[static_cast<std::size_t>(c)])));
    }
    quantiles_ = at::stack(quantiles);
    return;
  }
  quantiles_ = quantile_of(scores, "").view({1});
  if (by_ != By::kGroup)
    return;
  at::Tensor groups = target.batch().groups;
  if (groups.defined()) {
    groups = for_positions(groups, target.values().numel());
    if (target.weights().defined())
      groups = groups.index({target.weights().reshape(-1).gt(0)});
  }
  fit_groups(scores.unsqueeze(1), groups);
}

void Conformal::do_fit(const Prediction& prediction, const TargetBatch& target) {
  groups_ = group_quantiles_ = at::Tensor();
  if (method_ == Method::kCvPlus)
    return fit_folds(prediction, target);
  target_.kind == TargetKind::kClasses ? fit_classes(prediction, target)
                                       : fit_numbers(prediction, target);
}

std::int64_t Conformal::columns() const {
  std::int64_t columns = target_.width();
  for (const std::int64_t size : target_.positions())
    columns *= has_fixed_positions() ? size : 1;
  return columns;
}

void Conformal::fit_folds(const Prediction& prediction, const TargetBatch& target) {
  TREADLE_EXPECTS(prediction.fold_numbers.defined(), "CV+ learns from folds");
  at::Tensor residuals =
      (target.values().to(at::kDouble) - prediction.values.to(at::kDouble)).abs();
  if (target.weights().defined())
    residuals = residuals.masked_fill(target.weights().eq(0).unsqueeze(-1), std::nan(""));
  residuals = residuals.reshape({-1, columns()});
  residuals_ = {residuals, for_positions(prediction.fold_numbers, residuals.size(0))};
  expect_enough_rows(residuals_.counts().min().item<std::int64_t>(), "");
}

Prediction Conformal::with_intervals_of_folds(Prediction prediction) const {
  TREADLE_EXPECTS(!residuals_.empty(), "\"conformal\" is fitted before it is applied");
  if (!prediction.folds.defined())  // a row of a fold
    return prediction;
  if (prediction.folds.size(0) != residuals_.folds()) {
    throw StorageError("\"conformal\" has learned from " + std::to_string(residuals_.folds()) +
                       " folds, and there are models of " +
                       std::to_string(prediction.folds.size(0)) +
                       "; restore \"folds\" from a copy of the run, or train it again");
  }
  const at::Tensor values =
      prediction.folds.to(at::kDouble).reshape({residuals_.folds(), -1, columns()});
  const at::Tensor places = places_among(residuals_.counts());
  const auto add = [&](const char* name, const at::Tensor& bound) {
    prediction.extras.push_back(
        {name, bound.view(prediction.values.sizes()).to(prediction.values.scalar_type())});
  };
  // The floor(a (n + 1))-th smallest difference is the ceil((1 - a)(n + 1))-th largest one.
  add("lower", residuals_.nth_sum(values.neg(), places).neg());
  add("upper", residuals_.nth_sum(values, places));
  return prediction;
}

Prediction Conformal::do_apply(Prediction prediction, const Batch& rows) const {
  if (method_ == Method::kCvPlus)
    return with_intervals_of_folds(std::move(prediction));
  TREADLE_EXPECTS(quantiles_.defined(), "\"conformal\" is fitted before it is applied");
  const at::ScalarType dtype = prediction.values.scalar_type();
  if (target_.kind == TargetKind::kNumbers) {
    Bounds predicted = bounds(prediction);
    const std::int64_t count = has_fixed_positions()
                                   ? predicted.lower.size(0)
                                   : predicted.lower.numel() / predicted.lower.size(-1);
    at::Tensor limit = limits(rows.groups, count);
    if (!has_fixed_positions() && limit.size(0) == count)
      limit = limit.view(predicted.lower.sizes());
    const at::Tensor lower = predicted.lower - limit;
    const at::Tensor upper = predicted.upper + limit;
    // Quantiles that are too far apart are drawn together, perhaps past each other.
    const at::Tensor middle = (lower + upper) / 2;
    prediction.extras.push_back({"lower", at::minimum(lower, middle).to(dtype)});
    prediction.extras.push_back({"upper", at::maximum(upper, middle).to(dtype)});
    return prediction;
  }
  const at::Tensor probabilities = flat(prediction.values);
  const at::Tensor in_set =
      class_scores(probabilities).le(limits(rows.groups, probabilities.size(0))).to(at::kDouble);
  prediction.extras.push_back({"in_set", in_set.view(prediction.values.sizes()).to(dtype)});
  return prediction;
}

std::vector<MetricValue> Conformal::do_learned() const {
  if (!residuals_.empty()) {
    return {{"quantile", quantile_of(residuals_.all(), "").mean().item<double>(), Direction::kNone},
            {"folds", static_cast<double>(residuals_.folds()), Direction::kNone}};
  }
  if (!quantiles_.defined())
    return {};
  std::vector<MetricValue> learned;
  if (by_ == By::kClass) {
    for (std::int64_t c = 0; c < quantiles_.numel(); ++c)
      learned.push_back({"quantile." + target_.class_names[static_cast<std::size_t>(c)],
                         quantiles_[c].item<double>(), Direction::kNone});
    return learned;
  }
  learned.push_back({"quantile", quantiles_.mean().item<double>(), Direction::kNone});
  if (groups_.defined())
    learned.push_back({"groups", static_cast<double>(groups_.numel()), Direction::kNone});
  return learned;
}

StateDict Conformal::do_state() const {
  StateDict state;
  if (method_ == Method::kCvPlus)
    return residuals_.state();
  if (quantiles_.defined())
    state.put("quantiles", quantiles_);
  if (!groups_.defined())
    return state;
  state.put("groups", groups_);
  if (group_quantiles_.defined())
    state.put("group_quantiles", group_quantiles_);
  return state;
}

void Conformal::do_load_state(const StateDict& state) {
  quantiles_ = groups_ = group_quantiles_ = at::Tensor();
  if (method_ == Method::kCvPlus) {
    residuals_ = FoldResiduals::from_state(state, columns());
    return;
  }
  if (!state.has_tensor("quantiles"))
    return;
  quantiles_ = state.tensor("quantiles").to(at::kDouble);
  const std::int64_t width = target_.kind == TargetKind::kClasses
                                 ? (by_ == By::kClass ? target_.class_count() : 1)
                                 : target_.width();
  if (quantiles_.dim() == 0 || quantiles_.size(-1) != width)
    throw StorageError("the quantiles of \"conformal\" belong to another target");
  if (!state.has_tensor("groups"))
    return;
  groups_ = state.tensor("groups");
  if (groups_.numel() == 0)
    return;
  group_quantiles_ = state.tensor("group_quantiles").to(at::kDouble);
  if (groups_.dim() != 1 || groups_.scalar_type() != at::kLong ||
      group_quantiles_.dim() != quantiles_.dim() + 1 || group_quantiles_.size(0) != groups_.numel())
    throw StorageError("the quantiles of \"conformal\" are not one for each group");
}

}  // namespace treadle::outputs
