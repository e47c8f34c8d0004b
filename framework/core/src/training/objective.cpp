#include <treadle/core/training/objective.h>

#include <algorithm>
#include <array>
#include <utility>

#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>
#include <treadle/core/training/draws_samples.h>
#include <treadle/core/training/predicts_uncertainty.h>

namespace treadle {
namespace {

/// A term's weight as the dtype of its sum, so that adding over a million positions in float32 does
/// not depend on the target's dtype.
at::Tensor as_number_like(const at::Tensor& weight, const at::Tensor& sum) {
  return weight.to(sum.options().requires_grad(false));
}

/// Of a part in which each position counts 1, beside one in which they do not: a batch without
/// padding and one with.
at::Tensor weight_of_term(const BatchLoss::Term& term) {
  return term.weight.defined() ? term.weight : at::full({}, term.count, term.sum.options());
}

/// Rows that a layer made or lost would be compared with the targets of others, or be reported as a
/// failure of the loss.
void expect_rows(const std::vector<OutputSpec>& specs, const std::vector<at::Tensor>& outputs,
                 const Batch& batch) {
  for (std::size_t i = 0; i < std::min(specs.size(), outputs.size()) && batch.size() > 0; ++i) {
    const std::int64_t rows = outputs[i].dim() > 0 ? outputs[i].size(0) : 0;
    if (rows == batch.size())
      continue;
    throw TrainingError("the model's output \"" + specs[i].name + "\" has " + std::to_string(rows) +
                        " rows for a batch of " + std::to_string(batch.size()) +
                        "; look for a layer that moves elements from one row to another, such as "
                        "a reshape to [-1, 1]");
  }
}

BatchLoss::Term term_of(LossTerms loss, const TargetBatch& target) {
  if (!loss.weight.defined() && target.weights().defined())
    loss.weight = target.weights().sum();
  return {std::move(loss.sum), std::move(loss.weight), static_cast<double>(target.positions())};
}

}  // namespace

void BatchLoss::add(const BatchLoss& more) {
  if (terms.empty()) {
    terms = more.terms;
  } else {
    TREADLE_EXPECTS(terms.size() == more.terms.size(), "losses of two objectives do not add up");
    for (std::size_t i = 0; i < terms.size(); ++i) {
      Term& mine = terms[i];
      const Term& its = more.terms[i];
      mine.sum = mine.sum.add(its.sum);
      if (mine.weight.defined() || its.weight.defined())
        mine.weight = weight_of_term(mine).add(weight_of_term(its));
      mine.count += its.count;
    }
  }
  for (const AuxiliaryLoss& one : more.auxiliary) {
    const auto known =
        std::find_if(auxiliary.begin(), auxiliary.end(),
                     [&](const AuxiliaryLoss& mine) { return mine.name == one.name; });
    if (known == auxiliary.end()) {
      auxiliary.push_back(one);
    } else {
      known->sum = known->sum + one.sum;
    }
  }
}

Objective::Objective(std::vector<Term> terms, std::span<const TargetSpec> targets)
    : terms_(std::move(terms)), targets_(targets.begin(), targets.end()) {
  TREADLE_EXPECTS(!terms_.empty(), "an objective has at least one term");
  std::vector<std::pair<std::size_t, OutputSpec>> asked;  // target, as its loss calls it
  for (const Term& term : terms_) {
    TREADLE_EXPECTS(term.loss != nullptr && term.target < targets_.size(),
                    "a term has a loss and a target");
    std::vector<std::size_t>& mine = outputs_of_terms_.emplace_back();
    for (const OutputSpec& output : term.loss->outputs_for(targets_[term.target])) {
      const std::pair wanted(term.target, output);
      const auto known = std::find(asked.begin(), asked.end(), wanted);
      mine.push_back(static_cast<std::size_t>(known - asked.begin()));
      if (known == asked.end())
        asked.push_back(wanted);
    }
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto& [target, output] = asked[i];
    OutputSpec named = output;
    if (targets_.size() > 1) {
      const auto same_target = [&, t = target](const auto& other) { return other.first == t; };
      const bool is_only = std::count_if(asked.begin(), asked.end(), same_target) == 1;
      named.name = targets_[target].name + (is_only ? "" : "." + output.name);
    }
    outputs_.push_back(std::move(named));
  }
  for (const Term& term : terms_) {
    const auto* const chunked = term.loss->ask<ChunksOutputs>();
    if (chunked == nullptr || chunked->num_output_chunks() == 0)
      continue;
    if (terms_.size() > 1) {
      throw DataError("a loss with num_output_chunks is the only one, but there are " +
                      std::to_string(terms_.size()) +
                      "; leave num_output_chunks out, or the other losses");
    }
    output_chunks_ = chunked->num_output_chunks();
  }
}

bool Objective::is_additive() const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [](const Term& term) { return term.loss->is_additive(); });
}

at::Tensor Objective::weight_of(const Term& term, const Batch& batch) const {
  if (!batch.mixture.is_empty()) {
    const auto [own, partners] = batch.unmixed();
    return weight_of(term, own).add(weight_of(term, partners));
  }
  return term.loss->weight(TargetBatch::transformed(batch, term.target, targets_[term.target]));
}

std::vector<at::Tensor> Objective::weights(const Batch& batch) const {
  std::vector<at::Tensor> weights;
  for (const Term& term : terms_)
    weights.push_back(weight_of(term, batch));
  return weights;
}

std::int64_t Objective::positions(const Batch& batch) const {
  const std::size_t target = terms_.front().target;
  return TargetBatch::transformed(batch, target, targets_[target]).positions();
}

template <typename Work>
auto Objective::with_outputs_of(std::size_t term, const std::vector<at::Tensor>& all,
                                Work&& work) const {
  if (terms_.size() == 1)
    return work(all);
  std::vector<at::Tensor> mine;
  mine.reserve(outputs_of_terms_[term].size());
  for (const std::size_t output : outputs_of_terms_[term])
    mine.push_back(all[output]);
  return work(mine);
}

/// The loss of mixed rows: that of the rows as themselves and that of their partners, added up.
template <typename Forward>
std::vector<BatchLoss::Term> Objective::of_both(const Batch& mixed, const Forward& forward) const {
  if (!is_additive()) {
    throw UsageError(
        "mixup and cutmix need losses that are sums over rows, and a correlation or a Sharpe ratio "
        "is none; leave those transforms out, or take another loss");
  }
  const std::array<Batch, 2> rows = mixed.unmixed();
  BatchLoss both;
  both.add({forward(rows[0]), {}});
  both.add({forward(rows[1]), {}});
  for (BatchLoss::Term& term : both.terms)
    term.count /= 2;  // of the rows, which were counted twice
  return std::move(both.terms);
}

std::vector<BatchLoss::Term> Objective::forward(const std::vector<at::Tensor>& outputs,
                                                const Batch& batch) const {
  if (!batch.mixture.is_empty())
    return of_both(batch, [&](const Batch& one) { return forward(outputs, one); });
  expect_rows(outputs_, outputs, batch);
  std::vector<BatchLoss::Term> losses;
  losses.reserve(terms_.size());
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    losses.push_back(with_outputs_of(
        i, outputs, [&](const auto& mine) { return forward(terms_[i], mine, batch); }));
  }
  return losses;
}

BatchLoss::Term Objective::forward(const Term& term, const std::vector<at::Tensor>& outputs,
                                   const Batch& batch) const {
  const auto target = TargetBatch::transformed(batch, term.target, targets_[term.target]);
  return term_of(term.loss->forward(outputs, target), target);
}

std::vector<BatchLoss::Term> Objective::forward_in_chunks(const DeferredOutput& output,
                                                          const Batch& batch) const {
  TREADLE_EXPECTS(output_chunks_ > 0, "outputs are deferred for a loss in chunks");
  if (!batch.mixture.is_empty())
    return of_both(batch, [&](const Batch& one) { return forward_in_chunks(output, one); });
  const Term& term = terms_.front();
  const auto target = TargetBatch::transformed(batch, term.target, targets_[term.target]);
  return {term_of(chunked_forward(*term.loss, output, target, output_chunks_), target)};
}

Predictions Objective::predictions(const std::vector<at::Tensor>& outputs,
                                   const Batch& batch) const {
  expect_rows(outputs_, outputs, batch);
  Predictions predictions(targets_.size());
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    Prediction& of_target = predictions[terms_[i].target];
    if (of_target.values.defined())
      continue;
    of_target = with_outputs_of(i, outputs,
                                [&](const auto& mine) { return terms_[i].loss->prediction(mine); });
    // A loss for several kinds does not see which one it is.
    of_target.kind = targets_[terms_[i].target].kind;
  }
  return predictions;
}

namespace {

/// The term that predicts a target.
auto first_term_of(std::size_t target, const std::vector<Objective::Term>& terms) {
  return std::find_if(terms.begin(), terms.end(),
                      [&](const Objective::Term& term) { return term.target == target; });
}

}  // namespace

const Loss* Objective::predicts(std::size_t target) const {
  const auto found = first_term_of(target, terms_);
  return found == terms_.end() ? nullptr : found->loss;
}

at::Tensor Objective::draw(std::size_t target, const std::vector<at::Tensor>& outputs,
                           std::span<const std::uint64_t> seeds) const {
  const auto found = first_term_of(target, terms_);
  const auto* const draws = found == terms_.end() ? nullptr : found->loss->ask<DrawsSamples>();
  TREADLE_EXPECTS(draws != nullptr, "samples are drawn from distributions");
  return with_outputs_of(
      static_cast<std::size_t>(found - terms_.begin()), outputs, [&](const auto& mine) {
        return call_plugin(*found->loss, "draw", [&] { return draws->draw(mine, seeds); });
      });
}

Prediction::Uncertainty Objective::uncertainty(std::size_t target,
                                               const std::vector<at::Tensor>& outputs) const {
  const auto found = first_term_of(target, terms_);
  const auto* const predicts =
      found == terms_.end() ? nullptr : found->loss->ask<PredictsUncertainty>();
  if (predicts == nullptr)
    return {};
  return with_outputs_of(static_cast<std::size_t>(found - terms_.begin()), outputs,
                         [&](const auto& mine) {
                           return call_plugin(*found->loss, "uncertainty",
                                              [&] { return predicts->uncertainty(mine); });
                         });
}

Number Objective::value(std::span<const double> sums, std::span<const double> weights) const {
  double value = 0;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const Number mean = weighted_mean(terms_[i].factor * sums[i], weights[i]);
    if (mean.is_undefined())
      return terms_.size() == 1 ? mean : Number::undefined(terms_[i].name + ": " + mean.why());
    value += mean;
  }
  return value;
}

Objective::Scales::Scales(const Objective& objective, const Batch& batch)
    : objective_(&objective), batch_(&batch), rows_(batch.size()) {
  find_factors();
}

Objective::Scales::Scales(const Objective& objective, std::vector<at::Tensor> weights,
                          std::int64_t rows)
    : objective_(&objective), weights_(std::move(weights)), rows_(rows) {
  find_factors();
}

void Objective::Scales::find_factors() {
  if (!objective_->needs_weights())
    return;
  for (std::size_t i = 0; i < objective_->terms_.size(); ++i) {
    const double factor = objective_->terms_[i].factor;
    const at::Tensor weight = weight_of(i);
    factors_.push_back(i == 0 ? at::full_like(weight, factor)
                              : weight_of(0).div(weight).mul(factor).masked_fill(weight.eq(0), 0));
  }
}

at::Tensor Objective::Scales::weight_of(std::size_t term) const {
  if (batch_ != nullptr)
    return objective_->weight_of(objective_->terms_[term], *batch_);
  TREADLE_EXPECTS(term < weights_.size(),
                  "a model that adds losses declares them (LogsValues), as its steps need the "
                  "weights of all shards");
  return weights_[term];
}

at::Tensor Objective::Scales::combine(const BatchLoss& part) const {
  at::Tensor total;
  if (factors_.empty()) {
    total = part.terms.front().sum;
  } else {
    for (std::size_t i = 0; i < factors_.size(); ++i) {
      const at::Tensor& sum = part.terms[i].sum;
      const at::Tensor term = sum.mul(as_number_like(factors_[i], sum));
      total = total.defined() ? total.add(term) : term;
    }
  }
  if (!part.auxiliary.empty()) {
    const at::Tensor per_row = as_number_like(weight_of(0), total).div(static_cast<double>(rows_));
    for (const AuxiliaryLoss& one : part.auxiliary)
      total = total.add(one.sum.mul(per_row));
  }
  return factor_.defined() ? total.mul(as_number_like(factor_, total)) : total;
}

}  // namespace treadle
