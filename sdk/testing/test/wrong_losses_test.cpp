#include <functional>
#include <memory>
#include <utility>

#include <ATen/TensorOperators.h>

#include <treadle/testing/loss_contract.h>

#include "wrong.h"

namespace treadle::testing {
namespace wrong_losses {
namespace {

/// Squared error. What a wrong one does otherwise it overrides.
class Squared : public Loss {
 protected:
  virtual at::Tensor each(const at::Tensor& output, const Batch& batch) const {
    return output.sub(batch.targets).square().sum(1);
  }

  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    if (target.kind != TargetKind::kNumbers)
      throw DataError("squared needs numbers");
    return {{"value", target.width}};
  }
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const override {
    const at::Tensor rows = each(outputs[0], batch);
    if (!batch.weights.defined())
      return {rows.sum(), {}};
    return {rows.mul(batch.weights).sum(), batch.weights.sum()};
  }
  Predictions do_predictions(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kNumbers, outputs[0]};
  }
};

class CountsRowsInsteadOfWeights final : public Squared {
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const override {
    return {Squared::do_forward(outputs, batch).sum, {}};
  }
};

class GivesTheMean final : public Squared {
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const override {
    const LossTerms terms = Squared::do_forward(outputs, batch);
    const at::Tensor one = terms.sum.detach().mul(0).add(1);
    return {terms.weight.defined() ? terms.sum.div(terms.weight) : terms.sum.div(batch.size()),
            one};
  }
};

class HalvesItsGradient final : public Squared {
  at::Tensor each(const at::Tensor& output, const Batch& batch) const override {
    const at::Tensor rows = Squared::each(output, batch);
    return rows.add(rows.detach()).div(2);
  }
};

class DifferentiatesItsWeight final : public Squared {
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const override {
    const LossTerms terms = Squared::do_forward(outputs, batch);
    const at::Tensor none = terms.sum.mul(0);
    return {terms.sum, terms.weight.defined() ? terms.weight.add(none) : none.add(batch.size())};
  }
};

class MeasuresAgainstOriginalTargets final : public Squared {
  at::Tensor each(const at::Tensor& output, const Batch& batch) const override {
    return output.sub(batch.original_targets).square().sum(1);
  }
};

class ClampsTheTargets final : public Squared {
  at::Tensor each(const at::Tensor& output, const Batch& batch) const override {
    batch.targets.clamp_(-0.5, 0.5);
    return Squared::each(output, batch);
  }
};

class Explodes final : public Squared {
  at::Tensor each(const at::Tensor& output, const Batch& batch) const override {
    return output.sub(batch.targets).exp().sum(1);
  }
};

class TakesAnyTarget final : public Squared {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"value", target.width}};
  }
};

class PredictsClasses final : public Squared {
  Predictions do_predictions(const std::vector<at::Tensor>& outputs) const override {
    return {TargetKind::kClasses, outputs[0]};
  }
};

class GivesAVector final : public Squared {
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const override {
    const LossTerms terms = Squared::do_forward(outputs, batch);
    return {terms.sum.view({1}), terms.weight};
  }
};

class AsksForNothing final : public Squared {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"", Squared::do_outputs_for(target)[0].width}};
  }
};

class DoublesWeightedRows final : public Squared {
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const override {
    LossTerms terms = Squared::do_forward(outputs, batch);
    if (terms.weight.defined())
      terms.sum = terms.sum.mul(2);
    return terms;
  }
};

/// Remembers its last answer in a place that all threads share.
class SharesItsScratch final : public Squared {
  LossTerms do_forward(const std::vector<at::Tensor>& outputs, const Batch& batch) const override {
    LossTerms terms = Squared::do_forward(outputs, batch);
    if (!thread_.is_mine())
      terms.sum = terms.sum.add(1);
    return terms;
  }
  OneThread thread_;
};

template <typename T>
LossCase one(std::string name) {
  return {std::move(name), [] { return std::make_unique<T>(); }, LossCase::numbers(2)};
}

std::vector<Wrong<LossCase>> all() {
  return {{one<CountsRowsInsteadOfWeights>("CountsRowsInsteadOfWeights"),
           {"WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow"}},
          {one<GivesTheMean>("GivesTheMean"), {"AddsUpOverPartsOfABatch"}},
          {one<HalvesItsGradient>("HalvesItsGradient"), {"GradientsAreTheSlopesOfTheSum"}},
          {one<DifferentiatesItsWeight>("DifferentiatesItsWeight"), {"TheWeightHasNoGradient"}},
          {one<MeasuresAgainstOriginalTargets>("MeasuresAgainstOriginalTargets"),
           {"MeasuresAgainstTheTargetsAsTransformsLeaveThem"}},
          {one<ClampsTheTargets>("ClampsTheTargets"), {"LeavesOutputsAndBatchAlone"}},
          {one<Explodes>("Explodes"), {"StaysFiniteForSureOutputs"}},
          {one<TakesAnyTarget>("TakesAnyTarget"), {"RefusesTheOtherKindOfTarget"}},
          {one<PredictsClasses>("PredictsClasses"), {"SaysWhatOutputsMean"}},
          {one<AsksForNothing>("AsksForNothing"), {"AsksForOutputs"}},
          {one<DoublesWeightedRows>("DoublesWeightedRows"),
           {"WeightsOfOneChangeNothing", "WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow"}},
          {one<SharesItsScratch>("SharesItsScratch"), {"SeveralThreadsMayUseItAtOnce"}},
          {one<GivesAVector>("GivesAVector"), {"GivesScalarsInTheOutputsDtype"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, LossContract, ::testing::Values(one<Squared>("Squared")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, LossContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_losses

std::vector<Defect> loss_defects() {
  return defects_of("LossContract", wrong_losses::all());
}

}  // namespace treadle::testing
