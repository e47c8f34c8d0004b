#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/training/draws_samples.h>
#include <treadle/core/training/loss.h>
#include <treadle/testing/model/loss_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_losses {
namespace {

/// Squared error. What a wrong one does otherwise it overrides.
class Squared : public Loss {
 protected:
  using Outputs = std::vector<at::Tensor>;

  virtual at::Tensor each(const at::Tensor& output, const TargetBatch& target) const {
    return output.sub(target.values()).square().sum(-1);
  }
  /// Without what is in padding.
  static at::Tensor counted(const at::Tensor& values, const TargetBatch& target) {
    return target.weights().defined() ? values.masked_fill(target.weights().eq(0).unsqueeze(-1), 0)
                                      : values;
  }

  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    if (target.kind != TargetKind::kNumbers)
      throw DataError("squared needs numbers");
    return {{"value", target.shape}};
  }
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    const at::Tensor positions = each(counted(outputs[0], target), target);
    if (!target.weights().defined())
      return {positions.sum(), {}};
    return {positions.mul(target.weights()).sum(), {}};
  }
  Prediction do_prediction(const Outputs& outputs) const override {
    return {TargetKind::kNumbers, outputs[0]};
  }
};

/// The mean of squared errors over exactly the given rows.
class WholeMean : public Squared {
 protected:
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    const LossTerms terms = Squared::do_forward(outputs, target);
    return {terms.sum.div(weight_of(terms, target)), at::ones({}, terms.sum.dtype())};
  }
  at::Tensor do_weight(const TargetBatch&) const override { return at::ones({}); }
  bool do_is_additive() const override { return false; }
};

class ForgetsThatItsWeightIsOne final : public WholeMean {
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    LossTerms terms = WholeMean::do_forward(outputs, target);
    terms.weight.mul_(2);
    return terms;
  }
  at::Tensor do_weight(const TargetBatch&) const override { return at::ones({}).mul(2); }
};

class CountsPositionsInsteadOfWeights final : public Squared {
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    const auto positions = static_cast<double>(target.positions());
    return {Squared::do_forward(outputs, target).sum, at::full({}, positions, at::kDouble)};
  }
  at::Tensor do_weight(const TargetBatch& target) const override {
    return at::full({}, static_cast<double>(target.positions()), at::kDouble);
  }
};

/// Looks at the weights of rows only.
class CountsPadding final : public Squared {
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    const at::Tensor rows = each(outputs[0], target).flatten(1).sum(1);
    const at::Tensor& weights = target.batch().weights;
    return {weights.defined() ? rows.mul(weights).sum() : rows.sum(), {}};
  }
};

/// NaN times 0 is NaN.
class MultipliesPaddingByZero final : public Squared {
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    const at::Tensor positions = each(outputs[0], target);
    return {(target.weights().defined() ? positions.mul(target.weights()) : positions).sum(), {}};
  }
};

class PullsAtPadding final : public Squared {
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    LossTerms terms = Squared::do_forward(outputs, target);
    if (target.weights().defined()) {
      const at::Tensor padding =
          outputs[0].masked_fill(target.weights().gt(0).unsqueeze(-1), 0).nan_to_num();
      terms.sum = terms.sum.add(padding.sub(padding.detach()).sum());
    }
    return terms;
  }
};

/// Divides by how long the batch's longest row is.
class MeansOverThePaddedLength final : public Squared {
  at::Tensor each(const at::Tensor& output, const TargetBatch& target) const override {
    return Squared::each(output, target).div(static_cast<double>(output.size(1)));
  }
};

class WeighsByItsOutputs final : public Squared {
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    const LossTerms terms = Squared::do_forward(outputs, target);
    const at::Tensor sizes = counted(outputs[0], target).detach().abs().sum(-1);
    return {terms.sum, (target.weights().defined() ? sizes.mul(target.weights()) : sizes).sum()};
  }
};

/// Says beforehand that it divides by something else.
class TellsAnotherWeight final : public Squared {
  at::Tensor do_weight(const TargetBatch& target) const override {
    return at::full({}, weight_of({}, target) * 2, at::kDouble);
  }
};

class GivesTheMean final : public Squared {
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    const LossTerms terms = Squared::do_forward(outputs, target);
    return {terms.sum.div(weight_of(terms, target)), at::ones({}, terms.sum.dtype())};
  }
  at::Tensor do_weight(const TargetBatch&) const override { return at::ones({}); }
};

class HalvesItsGradient final : public Squared {
  at::Tensor each(const at::Tensor& output, const TargetBatch& target) const override {
    const at::Tensor positions = Squared::each(output, target);
    return positions.add(positions.detach()).div(2);
  }
};

class DifferentiatesItsWeight final : public Squared {
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    const LossTerms terms = Squared::do_forward(outputs, target);
    return {terms.sum, terms.sum.mul(0).add(weight_of(terms, target))};
  }
};

class MeasuresAgainstOriginalTargets final : public Squared {
  at::Tensor each(const at::Tensor& output, const TargetBatch& target) const override {
    return output.sub(target.batch().original_targets[0]).square().sum(-1);
  }
};

class ClampsTheTargets final : public Squared {
  at::Tensor each(const at::Tensor& output, const TargetBatch& target) const override {
    target.values().clamp_(-0.5, 0.5);
    return Squared::each(output, target);
  }
};

class Explodes final : public Squared {
  at::Tensor each(const at::Tensor& output, const TargetBatch& target) const override {
    return output.sub(target.values()).exp().sum(-1);
  }
};

class TakesAnyTarget final : public Squared {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"value", target.shape}};
  }
};

class PredictsClasses final : public Squared {
  Prediction do_prediction(const Outputs& outputs) const override {
    return {TargetKind::kClasses, outputs[0]};
  }
};

/// One name for two further numbers.
class PredictsTwoOfAName final : public Squared {
  Prediction do_prediction(const Outputs& outputs) const override {
    return {TargetKind::kNumbers, outputs[0], {}, {{"low", outputs[0]}, {"low", outputs[0]}}};
  }
};

class GivesAVector final : public Squared {
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    const LossTerms terms = Squared::do_forward(outputs, target);
    return {terms.sum.view({1}), terms.weight};
  }
};

class AsksForNothing final : public Squared {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    return {{"", Squared::do_outputs_for(target)[0].shape}};
  }
};

/// Two numbers for each of the target, of which it says nothing.
class ForgetsItsEstimates final : public Squared {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    OutputSpec output = Squared::do_outputs_for(target)[0];
    output.shape.back() *= 2;
    return {output};
  }
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    return Squared::do_forward({outputs[0].chunk(2, -1)[0]}, target);
  }
  Prediction do_prediction(const Outputs& outputs) const override {
    return Squared::do_prediction({outputs[0].chunk(2, -1)[0]});
  }
};

class CallsALocationAScale final : public Squared {
  std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
    OutputSpec output = Squared::do_outputs_for(target)[0];
    output.estimates = {Estimate::kScale};
    return {output};
  }
};

class DoublesWeightedRows final : public Squared {
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    LossTerms terms = Squared::do_forward(outputs, target);
    if (target.weights().defined())
      terms.sum = terms.sum.mul(2);
    return terms;
  }
};

/// Keeps its last answer in a place that all threads share.
class SharesItsScratch final : public Squared {
  LossTerms do_forward(const Outputs& outputs, const TargetBatch& target) const override {
    LossTerms terms = Squared::do_forward(outputs, target);
    if (!thread_.is_mine())
      terms.sum = terms.sum.add(1);
    return terms;
  }
  OneThread thread_;
};

/// The outputs and noise, uniform, the same for all numbers of a row.
class Noisy : public Squared, public DrawsSamples {
 protected:
  virtual std::uint64_t noise_of(std::span<const std::uint64_t> seeds, std::size_t row) const {
    return seeds[row];
  }

  at::Tensor do_draw(const std::vector<at::Tensor>& outputs,
                     std::span<const std::uint64_t> seeds) const override {
    at::Tensor drawn = outputs[0].clone();
    for (std::size_t row = 0; row < seeds.size(); ++row)
      drawn[static_cast<std::int64_t>(row)].add_(RandomBits(noise_of(seeds, row)).uniform());
    return drawn;
  }
  void* do_ask(std::string_view interface_id) override {
    return interface_id == DrawsSamples::kInterface ? static_cast<DrawsSamples*>(this) : nullptr;
  }
};

class DrawsByThePlaceInTheBatch final : public Noisy {
  std::uint64_t noise_of(std::span<const std::uint64_t> seeds, std::size_t row) const override {
    return seeds[row] + row;
  }
};

class DrawsWithOneSeed final : public Noisy {
  std::uint64_t noise_of(std::span<const std::uint64_t>, std::size_t) const override { return 7; }
};

template <typename T>
LossCase one(std::string name) {
  return {std::move(name), [] { return std::make_unique<T>(); }, LossCase::numbers(2, {kVaries})};
}

std::vector<Wrong<LossCase>> all() {
  return {{one<CountsPositionsInsteadOfWeights>("CountsPositionsInsteadOfWeights"),
           {"WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow", "APaddedBatchEqualsItsRowsOneByOne"}},
          {one<CountsPadding>("CountsPadding"),
           {"PaddingChangesNothing", "NaNInPaddingChangesNothing", "PaddingHasNoGradient",
            "APaddedBatchEqualsItsRowsOneByOne"}},
          {one<MultipliesPaddingByZero>("MultipliesPaddingByZero"), {"NaNInPaddingChangesNothing"}},
          {one<PullsAtPadding>("PullsAtPadding"),
           {"PaddingHasNoGradient", "GradientsAreTheSlopesOfTheSum"}},
          {one<MeansOverThePaddedLength>("MeansOverThePaddedLength"),
           {"APaddedBatchEqualsItsRowsOneByOne"}},
          {one<WeighsByItsOutputs>("WeighsByItsOutputs"), {"TheWeightIsAFunctionOfTheTargetAlone"}},
          {one<TellsAnotherWeight>("TellsAnotherWeight"), {"TheWeightIsAFunctionOfTheTargetAlone"}},
          {one<ForgetsThatItsWeightIsOne>("ForgetsThatItsWeightIsOne"),
           {"ItsWeightIsOneUnlessItAddsUp"}},
          {one<GivesTheMean>("GivesTheMean"),
           {"AddsUpOverPartsOfABatch", "APaddedBatchEqualsItsRowsOneByOne"}},
          {one<HalvesItsGradient>("HalvesItsGradient"), {"GradientsAreTheSlopesOfTheSum"}},
          {one<DifferentiatesItsWeight>("DifferentiatesItsWeight"), {"TheWeightHasNoGradient"}},
          {one<MeasuresAgainstOriginalTargets>("MeasuresAgainstOriginalTargets"),
           {"MeasuresAgainstTheTargetsAsTransformsLeaveThem"}},
          {one<ClampsTheTargets>("ClampsTheTargets"), {"LeavesOutputsAndBatchAlone"}},
          {one<Explodes>("Explodes"), {"StaysFiniteForSureOutputs"}},
          {one<TakesAnyTarget>("TakesAnyTarget"), {"RefusesTheOtherKindOfTarget"}},
          {one<PredictsClasses>("PredictsClasses"), {"SaysWhatOutputsMean"}},
          {one<PredictsTwoOfAName>("PredictsTwoOfAName"), {"SaysWhatOutputsMean"}},
          {one<AsksForNothing>("AsksForNothing"), {"AsksForOutputs"}},
          {one<ForgetsItsEstimates>("ForgetsItsEstimates"), {"EstimatesNumbersOfTheTarget"}},
          {one<CallsALocationAScale>("CallsALocationAScale"), {"PredictsInTheUnitsOfItsEstimates"}},
          {one<DoublesWeightedRows>("DoublesWeightedRows"),
           {"WeightsOfOneChangeNothing", "WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow",
            "APaddedBatchEqualsItsRowsOneByOne"}},
          {one<DrawsByThePlaceInTheBatch>("DrawsByThePlaceInTheBatch"),
           {"ItsDrawsAreThoseOfEachRowAndSeed"}},
          {one<DrawsWithOneSeed>("DrawsWithOneSeed"), {"ItsDrawsAreThoseOfEachRowAndSeed"}},
          {one<SharesItsScratch>("SharesItsScratch"), {"SeveralThreadsMayUseItAtOnce"}},
          {one<GivesAVector>("GivesAVector"), {"GivesScalarsInTheOutputsDtype"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, LossContract,
                         ::testing::Values(one<Squared>("Squared"), one<WholeMean>("WholeMean"),
                                           one<Noisy>("Noisy")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, LossContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_losses

std::vector<Defect> loss_defects() {
  return defects_of("LossContract", wrong_losses::all());
}

}  // namespace treadle::testing
