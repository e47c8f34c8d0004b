#include "ensemble_loss.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <treadle/base/random.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/training/chunked_loss.h>
#include <treadle/core/validation/mean_of_members.h>

namespace treadle::losses {

EnsembleLoss::EnsembleLoss(const Config& config, const ComponentContext& context)
    : EnsembleLoss(make_nested<Loss>(context, config, "loss"),
                   config.get<std::int64_t>("members")) {
  if (!loss_->is_additive()) {
    config.fail("loss",
                "must be a sum over rows, since members are rows to it, but this one is computed "
                "over all rows of a step");
  }
  if (const auto* chunks = loss_->ask<ChunksOutputs>();
      chunks != nullptr && chunks->num_output_chunks() > 0) {
    config.fail(
        "loss",
        "has \"num_output_chunks\", but the outputs of an ensemble are computed as a whole; "
        "remove it");
  }
}

EnsembleLoss::EnsembleLoss(std::unique_ptr<Loss> loss, std::int64_t members)
    : loss_(std::move(loss)), members_(members) {}

std::vector<OutputSpec> EnsembleLoss::do_outputs_for(const TargetSpec& target) const {
  std::vector<OutputSpec> outputs = loss_->outputs_for(target);
  for (OutputSpec& output : outputs)
    output.shape.insert(output.shape.end() - 1, members_);
  return outputs;
}

std::vector<at::Tensor> EnsembleLoss::as_rows(const std::vector<at::Tensor>& outputs) const {
  std::vector<at::Tensor> rows;
  rows.reserve(outputs.size());
  for (const at::Tensor& output : outputs)
    rows.push_back(output.movedim(-2, 1).flatten(0, 1));
  return rows;
}

at::Tensor EnsembleLoss::by_members(const at::Tensor& rows) const {
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes[0] /= members_;
  sizes.insert(sizes.begin() + 1, members_);
  return rows.view(sizes);
}

at::Tensor EnsembleLoss::mean_of_members(const at::Tensor& rows) const {
  return by_members(rows).mean(1);
}

LossTerms EnsembleLoss::do_forward(const std::vector<at::Tensor>& outputs,
                                   const TargetBatch& target) const {
  LossTerms terms = loss_->forward(as_rows(outputs), target.repeated(members_));
  // The weight is that of the rows of one member, and so is the sum.
  terms.sum = terms.sum.div(members_);
  if (terms.weight.defined())
    terms.weight = loss_->weight(target);
  return terms;
}

at::Tensor EnsembleLoss::do_weight(const TargetBatch& target) const {
  return loss_->weight(target);
}

Prediction EnsembleLoss::do_prediction(const std::vector<at::Tensor>& outputs) const {
  Prediction prediction = loss_->prediction(as_rows(outputs));
  prediction.values = mean_of_members(prediction.values);
  prediction.logits = at::Tensor();  // a mean of probabilities has none
  for (Prediction::Extra& extra : prediction.extras)
    extra.values = mean_of_members(extra.values);
  if (prediction.crossed.defined())
    prediction.crossed = mean_of_members(prediction.crossed.to(at::kFloat)).gt(0);
  return prediction;
}

void* EnsembleLoss::do_ask(std::string_view interface_id) {
  if (interface_id == FitsTargets::kInterface && loss_->ask<FitsTargets>() != nullptr)
    return static_cast<FitsTargets*>(this);
  if (interface_id == DrawsSamples::kInterface && loss_->ask<DrawsSamples>() != nullptr)
    return static_cast<DrawsSamples*>(this);
  if (interface_id == PredictsUncertainty::kInterface)
    return static_cast<PredictsUncertainty*>(this);
  return nullptr;
}

Prediction::Uncertainty EnsembleLoss::do_uncertainty(const std::vector<at::Tensor>& outputs) const {
  const std::vector<at::Tensor> rows = as_rows(outputs);
  Prediction all{loss_->prediction(rows)};
  if (const auto* const predicts = loss_->ask<PredictsUncertainty>())
    all.uncertainty = predicts->uncertainty(rows);
  const auto of_member = [&](const at::Tensor& values, std::int64_t member) {
    return values.defined() ? by_members(values).select(1, member) : values;
  };
  MeanOfMembers mean;
  for (std::int64_t i = 0; i < members_; ++i) {
    Prediction member{all.kind, of_member(all.values, i)};
    member.uncertainty = {
        {}, of_member(all.uncertainty.aleatoric, i), of_member(all.uncertainty.epistemic, i)};
    mean.add(member, at::ones({}, at::kDouble));
  }
  return mean.uncertainty();
}

at::Tensor EnsembleLoss::do_draw(const std::vector<at::Tensor>& outputs,
                                 std::span<const std::uint64_t> seeds) const {
  at::Tensor chosen = at::empty({static_cast<std::int64_t>(seeds.size())}, at::kLong);
  auto* const row = chosen.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    RandomBits bits = RandomStreams(seeds[i]).bits("member");
    row[i] = static_cast<std::int64_t>(i) * members_ +
             static_cast<std::int64_t>(bits.below(static_cast<std::uint64_t>(members_)));
  }
  std::vector<at::Tensor> of_members = as_rows(outputs);
  for (at::Tensor& output : of_members)
    output = output.index_select(0, chosen);
  return loss_->ask<DrawsSamples>()->draw(of_members, seeds);
}

StateDict EnsembleLoss::do_fit(const RowReader& data, const RowList& rows,
                               std::size_t target) const {
  return loss_->ask<FitsTargets>()->fit(data, rows, target);
}

std::unique_ptr<Loss> EnsembleLoss::do_fitted(const StateDict& state) const {
  return std::unique_ptr<Loss>(
      new EnsembleLoss(loss_->ask<FitsTargets>()->fitted(state), members_));
}

}  // namespace treadle::losses
