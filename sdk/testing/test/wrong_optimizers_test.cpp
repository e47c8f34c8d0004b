#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros_like.h>

#include <treadle/testing/optimizer_contract.h>

#include "wrong.h"

namespace treadle::testing {
namespace wrong_optimizers {
namespace {

/// Gradient descent with momentum. What a wrong one does otherwise it overrides.
class Momentum : public Optimizer {
 protected:
  virtual void move(const at::Tensor& parameter, const at::Tensor& momentum,
                    const at::Tensor& gradient, const StepInfo& info) const {
    momentum.mul_(0.5).add_(gradient, info.gradient_scale);
    parameter.sub_(momentum, info.learning_rate);
  }

  double do_learning_rate() const override { return 0.05; }
  std::vector<SlotSpec> do_slots() const override { return {{"momentum"}}; }
  void do_update(Block& block, const StepInfo& info) const override {
    for (const Segment& segment : block.segments()) {
      if (segment.active()) {
        move(block.parameter(segment), block.slot(0, segment), block.gradient(segment), info);
      }
    }
  }
};

/// Keeps its momentum in itself, where no checkpoint finds it.
class Hoarder final : public Momentum {
  void move(const at::Tensor& parameter, const at::Tensor&, const at::Tensor& gradient,
            const StepInfo& info) const override {
    at::Tensor& momentum = momenta_[parameter.data_ptr()];
    if (!momentum.defined() || info.step == 1)
      momentum = at::zeros_like(gradient);
    Momentum::move(parameter, momentum, gradient, info);
  }
  mutable std::map<void*, at::Tensor> momenta_;
};

/// Divides by the largest gradient it has ever seen of a segment, in whichever model.
class RemembersOtherModels final : public Momentum {
  void move(const at::Tensor& parameter, const at::Tensor& momentum, const at::Tensor& gradient,
            const StepInfo& info) const override {
    double& largest = largest_[gradient.numel()];
    if (info.step == 1)
      largest = 1;
    largest = std::max(largest, gradient.abs().max().item<double>() * info.gradient_scale);
    StepInfo slower = info;
    slower.learning_rate /= largest;
    Momentum::move(parameter, momentum, gradient, slower);
  }
  mutable std::map<std::int64_t, double> largest_;
};

class UpdatesTheUntouched final : public Momentum {
  void do_update(Block& block, const StepInfo& info) const override {
    for (const Segment& segment : block.segments()) {
      if (!segment.frozen)
        move(block.parameter(segment), block.slot(0, segment), block.gradient(segment), info);
    }
  }
};

class UpdatesTheFrozen final : public Momentum {
  void do_update(Block& block, const StepInfo& info) const override {
    Momentum::do_update(block, info);
    for (const Segment& segment : block.segments()) {
      if (segment.frozen)
        block.parameter(segment).mul_(0.99);
    }
  }
};

class CountsEveryStep final : public Momentum {
  void move(const at::Tensor& parameter, const at::Tensor& momentum, const at::Tensor& gradient,
            const StepInfo& info) const override {
    StepInfo slower = info;
    slower.learning_rate /= 1 + 0.01 * static_cast<double>(info.step);
    Momentum::move(parameter, momentum, gradient, slower);
  }
};

class WritesGradients final : public Momentum {
  void move(const at::Tensor& parameter, const at::Tensor& momentum, const at::Tensor& gradient,
            const StepInfo& info) const override {
    gradient.mul_(info.gradient_scale);
    momentum.mul_(0.5).add_(gradient);
    parameter.sub_(momentum, info.learning_rate);
  }
};

class WritesPadding final : public Momentum {
  void do_update(Block& block, const StepInfo& info) const override {
    Momentum::do_update(block, info);
    const Segment& bias = block.segments()[1];
    if (block.dtype() == at::kFloat)
      block.parameters<float>()[bias.offset + bias.size] = 1;
    else
      block.parameters<double>()[bias.offset + bias.size] = 1;
  }
};

class TakesItsNameFromTheFramework final : public Momentum {
  std::vector<SlotSpec> do_slots() const override { return {{"segments"}}; }
};

/// One whose moves are `rule`, with the scaled gradient.
class Moves final : public Momentum {
 public:
  using Rule = std::function<void(const at::Tensor& parameter, const at::Tensor& momentum,
                                  const at::Tensor& gradient, const StepInfo& info)>;
  explicit Moves(Rule rule) : rule_(std::move(rule)) {}

 private:
  void move(const at::Tensor& parameter, const at::Tensor& momentum, const at::Tensor& gradient,
            const StepInfo& info) const override {
    rule_(parameter, momentum, gradient, info);
    Momentum::move(parameter, momentum, gradient, info);
  }
  Rule rule_;
};

template <typename T>
OptimizerCase one(std::string name) {
  return {std::move(name), [] { return std::make_unique<T>(); }};
}

OptimizerCase that_also(std::string name, const Moves::Rule& rule) {
  return {std::move(name), [rule] { return std::make_unique<Moves>(rule); }};
}

std::vector<Wrong<OptimizerCase>> all() {
  using T = const at::Tensor&;
  using Info = const StepInfo&;
  return {
      {one<Hoarder>("ForgetsItsState"), {"StateRoundTripContinuesBitwise"}},
      {one<RemembersOtherModels>("RemembersOtherModels"),
       {"HasNoMemoryButItsSlots", "StateRoundTripContinuesBitwise"}},
      {one<UpdatesTheUntouched>("UpdatesTheUntouched"),
       {"LeavesUntouchedSegmentsAlone", "ASegmentThatMissedAStepContinuesAsIfThereHadBeenNone"}},
      {one<UpdatesTheFrozen>("UpdatesTheFrozen"), {"LeavesFrozenSegmentsAlone"}},
      {one<CountsEveryStep>("CountsStepsThatASegmentMissed"),
       {"ASegmentThatMissedAStepContinuesAsIfThereHadBeenNone"}},
      {one<WritesGradients>("WritesGradients"), {"ReadsGradientsButNeverWritesThem"}},
      {one<WritesPadding>("WritesPadding"), {"PaddingStaysZero"}},
      {one<TakesItsNameFromTheFramework>("TakesANameOfTheFrameworks"),
       {"DeclaresTheSameSlotsEveryTime"}},
      {that_also("Climbs",
                 [](T p, T, T g, Info i) { p.add_(g, 3 * i.learning_rate * i.gradient_scale); }),
       {"DecreasesAQuadratic"}},
      {that_also("ForgetsTheScale", [](T p, T, T g, Info i) { p.sub_(g, 0.1 * i.learning_rate); }),
       {"ScalesGradientsBeforeAnythingElse"}},
      {that_also("MovesAtRateZero",
                 [](T p, T, T g, Info i) { p.sub_(g, 1e-9 * i.gradient_scale); }),
       {"ARateOfZeroMovesNothing"}},
      {that_also("LosesPrecision",
                 [](T p, T, T g, Info i) {
                   if (p.scalar_type() == at::kFloat)
                     p.sub_(g, 0.01 * i.learning_rate * i.gradient_scale);
                 }),
       {"SingleAndDoublePrecisionAgree"}},
      {that_also("Overflows", [](T p, T, T g, Info) { p.add_(g.pow(4).mul(0)); }),
       {"FiniteGradientsLeaveFiniteParameters"}},
      {that_also("DecaysUndeclared", [](T p, T, T, Info i) { p.mul_(1 - 0.1 * i.learning_rate); }),
       {"AGradientOfZeroOnlyDecays"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, OptimizerContract, ::testing::Values(one<Momentum>("Momentum")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, OptimizerContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_optimizers

std::vector<Defect> optimizer_defects() {
  return defects_of("OptimizerContract", wrong_optimizers::all());
}

}  // namespace treadle::testing
