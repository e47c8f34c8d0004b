#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/core/model/abilities/adds_losses.h>
#include <treadle/core/model/abilities/gathers_statistics.h>
#include <treadle/core/model/abilities/logs_values.h>
#include <treadle/core/model/abilities/names_outputs.h>
#include <treadle/core/model/running_statistics.h>
#include <treadle/plan/lowerable.h>
#include <treadle/plan/ops.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/model/layer_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_layers {
namespace {

/// A linear map to three numbers. `Change` has what makes it wrong: `prepare` sees the new layer,
/// `before` the input, `after` the result of each call, `result` what it announces.
class Affine final : public Layer {
 public:
  struct Change {
    std::function<void(Affine&, const LayerSpec&)> prepare = nullptr;
    std::function<at::Tensor(Affine&, const at::Tensor&)> before = nullptr;
    std::function<at::Tensor(Affine&, const at::Tensor&)> after = nullptr;
    std::function<TensorSpec(Affine&, TensorSpec)> result = nullptr;
  };

  Affine(const LayerSpec& spec, const Change& change) : change_(change) {
    weight = register_parameter("weight", at::randn({3, spec.inputs[0].width()}, spec.dtype));
    bias = register_parameter("bias", at::randn({3}, spec.dtype));
    if (change_.prepare)
      change_.prepare(*this, spec);
  }

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    const at::Tensor input = change_.before ? change_.before(*this, inputs[0]) : inputs[0];
    const at::Tensor result = at::linear(input, weight, bias);
    return change_.after ? change_.after(*this, result) : result;
  }

  at::Tensor weight;
  at::Tensor bias;
  at::Tensor other;  ///< for prepare

 private:
  TensorSpec do_result(std::span<const TensorSpec> inputs) override {
    TensorSpec result({TensorSpec::kVaries, 3}, inputs[0].dtype);
    return change_.result ? change_.result(*this, result) : result;
  }

  Change change_;
};

/// Gives what it is given, and keeps a running mean of it.
class Counting final : public Layer, public GathersStatistics {
 public:
  struct Change {
    bool forgets = true;
    bool ends = true;
  };

  Counting(const LayerSpec& spec, const Change& change)
      : change_(change),
        statistics_{register_buffer("mean", at::zeros({spec.inputs[0].width()}, spec.dtype)),
                    register_buffer("var", at::ones({1}, spec.dtype)), 0.5} {}

  at::Tensor forward(const Inputs& inputs, LayerContext&) override {
    if (is_training()) {
      const at::NoGradGuard no_gradients;
      statistics_.mean().lerp_(inputs[0].mean(0).to(statistics_.mean().scalar_type()),
                               statistics_.next_momentum());
    }
    return inputs[0].clone();
  }
  void begin_gathering() override {
    const at::Tensor kept = statistics_.mean().clone();
    statistics_.begin_gathering();
    if (!change_.forgets) {
      statistics_.mean().copy_(kept);
      statistics_.next_momentum();  // so that the first batch does not replace it
    }
  }
  void end_gathering() override {
    if (change_.ends)
      statistics_.end_gathering();
  }

 private:
  Change change_;
  RunningStatistics statistics_;
};

class CountingFactory final : public LayerFactory {
 public:
  explicit CountingFactory(Counting::Change change) : change_(change) {}

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<Counting>(spec, change_);
  }
  Counting::Change change_;
};

LayerCase counting(const std::string& name, Counting::Change change = {}) {
  return {.name = name, .make = [change] { return std::make_unique<CountingFactory>(change); }};
}

class AffineFactory final : public LayerFactory {
 public:
  explicit AffineFactory(Affine::Change change) : change_(std::move(change)) {}

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<Affine>(spec, change_);
  }
  Affine::Change change_;
};

LayerCase affine(std::string name, const Affine::Change& change = {}) {
  LayerCase one;
  one.name = std::move(name);
  one.make = [change] { return std::make_unique<AffineFactory>(change); };
  return one;
}

/// Affine; what it gave stays in its memory.
class Remembering final : public Layer {
 public:
  explicit Remembering(const LayerSpec& spec)
      : affine_(register_module("affine", std::make_shared<Affine>(spec, Affine::Change()))) {}

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    at::Tensor result = affine_->forward(inputs, context);
    context.state().put("last", result);
    return result;
  }

 private:
  std::shared_ptr<Affine> affine_;
};

/// Affine; adds the mean of what it gave to the loss, and logs it.
class Reporting final : public Layer, public LogsValues, public AddsLosses {
 public:
  struct What {
    bool declares_log = true;
    bool declares_loss = true;
    bool adds_mean = false;
  };
  Reporting(const LayerSpec& spec, What what)
      : affine_(register_module("affine", std::make_shared<Affine>(spec, Affine::Change()))),
        what_(what) {}

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    at::Tensor result = affine_->forward(inputs, context);
    context.log("size", result, Reduction::kNorm);
    const at::Tensor squares = result.square();
    context.add_loss("penalty", what_.adds_mean ? squares.mean() : squares.sum());
    return result;
  }
  std::vector<std::string> logged_names() const override {
    return what_.declares_log ? std::vector<std::string>{"size"} : std::vector<std::string>{};
  }
  std::vector<std::string> loss_names() const override {
    return what_.declares_loss ? std::vector<std::string>{"penalty"} : std::vector<std::string>{};
  }

 private:
  std::shared_ptr<Affine> affine_;
  What what_;
};

class ReportingFactory final : public LayerFactory {
 public:
  explicit ReportingFactory(Reporting::What what) : what_(what) {}

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<Reporting>(spec, what_);
  }
  Reporting::What what_;
};

LayerCase reporting(std::string name, Reporting::What what = {}) {
  LayerCase one;
  one.name = std::move(name);
  one.make = [what] { return std::make_unique<ReportingFactory>(what); };
  return one;
}

/// h_t = tanh(W x_t + b + h_{t-1} / 2), for sequences [B, T, width]: [B, T, 3].
class Recurrent final : public Layer {
 public:
  struct What {
    bool cuts_state = true;
    bool cuts_too_much = false;
    bool gives_other_numbers = false;
  };
  Recurrent(const LayerSpec& spec, What what)
      : affine_(register_module("affine", std::make_shared<Affine>(spec, Affine::Change()))),
        what_(what) {}

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    const bool is_cut = context.truncates_bptt();
    const at::Tensor& x = inputs[0];
    const at::Tensor result = over(*this, is_cut && what_.cuts_too_much ? x.detach() : x,
                                   is_cut && what_.cuts_state ? cut : HandOn(whole));
    return is_cut && what_.gives_other_numbers ? result.add(1) : result;
  }

  static at::Tensor over(const Layer& layer, const at::Tensor& x, const HandOn& hand_on) {
    const std::vector<at::Tensor> weights = layer.parameters();
    std::vector<at::Tensor> states;
    for (std::int64_t time = 0; time < x.size(1); ++time) {
      at::Tensor sum = at::linear(x.select(1, time), weights[0], weights[1]);
      if (time > 0)
        sum = sum.add(hand_on(states.back()).div(2));
      states.push_back(sum.tanh());
    }
    return at::stack(states, 1);
  }

 private:
  static at::Tensor whole(const at::Tensor& state) { return state; }
  static at::Tensor cut(const at::Tensor& state) { return state.detach(); }

  TensorSpec do_result(std::span<const TensorSpec> inputs) override {
    return {{TensorSpec::kVaries, inputs[0].sizes[1], 3}, inputs[0].dtype};
  }

  std::shared_ptr<Affine> affine_;
  What what_;
};

class RecurrentFactory final : public LayerFactory {
 public:
  explicit RecurrentFactory(Recurrent::What what) : what_(what) {}

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<Recurrent>(spec, what_);
  }
  Recurrent::What what_;
};

LayerCase recurrent(std::string name, Recurrent::What what = {}) {
  LayerCase one;
  one.name = std::move(name);
  one.make = [what] { return std::make_unique<RecurrentFactory>(what); };
  one.inputs = {{4, 6}};
  one.by_hand = [](const Layer& layer, const std::vector<at::Tensor>& inputs,
                   const HandOn& hand_on) { return Recurrent::over(layer, inputs[0], hand_on); };
  return one;
}

/// Affine; "size" [B, 1] is the sum of squares of a row of the result.
class Sizing final : public Layer, public NamesOutputs {
 public:
  struct What {
    std::vector<std::string> names = {"size"};
    bool adds_up_rows = false;
    bool is_cut = false;
    bool moves_the_result = false;
    bool announces_more = false;
  };
  Sizing(const LayerSpec& spec, What what)
      : affine_(register_module("affine", std::make_shared<Affine>(spec, Affine::Change()))),
        what_(std::move(what)) {}

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    at::Tensor result = affine_->forward(inputs, context);
    for (const std::string& name : what_.names) {
      if (!context.is_requested(name))
        continue;
      at::Tensor size = (what_.is_cut ? result.detach() : result).square().sum(1, true);
      if (what_.adds_up_rows)
        size = size.cumsum(0);
      // In a trial on zeros there are two or three rows.
      if (what_.announces_more && result.size(0) < 4)
        size = at::cat({size, size}, 1);
      context.set_output(name, size);
      if (what_.moves_the_result)
        result = result.add(1);
    }
    return result;
  }
  std::vector<std::string> output_names() const override { return what_.names; }

 private:
  std::shared_ptr<Affine> affine_;
  What what_;
};

class SizingFactory final : public LayerFactory {
 public:
  explicit SizingFactory(Sizing::What what) : what_(std::move(what)) {}

 private:
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<Sizing>(spec, what_);
  }
  Sizing::What what_;
};

LayerCase sizing(std::string name, Sizing::What what = {}) {
  LayerCase one;
  one.name = std::move(name);
  one.make = [what = std::move(what)] { return std::make_unique<SizingFactory>(what); };
  return one;
}

LayerCase without_reference(LayerCase one) {
  one.by_hand = nullptr;
  return one;
}

/// Affine; asked for gradients through one step of time it halves them, but not in a plan.
class CutWhereCalled final : public Layer, public Lowerable {
 public:
  explicit CutWhereCalled(const LayerSpec& spec)
      : affine_(register_module("affine", std::make_shared<Affine>(spec, Affine::Change()))) {}

  at::Tensor forward(const Inputs& inputs, LayerContext& context) override {
    const at::Tensor result = affine_->forward(inputs, context);
    return context.truncates_bptt() ? result.detach().add(result).div(2) : result;
  }
  std::optional<PlanValue> lower(PlanBuilder& builder,
                                 std::span<const PlanValue> inputs) const override {
    return builder.apply(plan_linear(affine_->weight, affine_->bias), inputs[0]);
  }

 private:
  std::shared_ptr<Affine> affine_;
};

class CutWhereCalledFactory final : public LayerFactory {
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<CutWhereCalled>(spec);
  }
};

class RememberingFactory final : public LayerFactory {
  std::shared_ptr<Layer> do_create(const LayerSpec& spec) const override {
    return std::make_shared<Remembering>(spec);
  }
};

std::vector<Wrong<LayerCase>> all() {
  using Tensor = const at::Tensor&;
  using Spec = const LayerSpec&;
  return {
      {affine("AnnouncesAnotherWidth", {.result =
                                            [](Affine&, TensorSpec result) {
                                              result.sizes[1] = 4;
                                              return result;
                                            }}),
       {"GivesWhatItAnnounces"}},
      {affine("AnnouncesAnotherDtype", {.result =
                                            [](Affine&, TensorSpec result) {
                                              result.dtype = at::kHalf;
                                              return result;
                                            }}),
       {"GivesWhatItAnnounces"}},
      {affine("LearnsByAnnouncing", {.result =
                                         [](Affine& layer, TensorSpec result) {
                                           layer.weight.detach().add_(1);
                                           return result;
                                         }}),
       {"AnnouncingChangesNothing"}},
      {affine("StaysInEvaluation", {.result =
                                        [](Affine& layer, TensorSpec result) {
                                          layer.eval();
                                          return result;
                                        }}),
       {"AnnouncingChangesNothing"}},
      {affine("HasAParameterOfAnotherDtype",
              {.prepare =
                   [](Affine& layer, Spec) {
                     layer.other = layer.register_parameter("scale", at::randn({1}, at::kDouble));
                   },
               .after =
                   [](Affine& layer, Tensor result) {
                     return result.mul(layer.other.to(result.scalar_type()));
                   }}),
       {"ParametersAndFloatingBuffersHaveTheSpecsDtype"}},
      {affine("MultipliesInTheDtypeOfItsOperandsAlone",
              {.after =
                   [](Affine&, Tensor result) {
                     // As an operator with one dtype for all of its operands.
                     TORCH_CHECK(result.scalar_type() != at::kBFloat16,
                                 "expected scalar type BFloat16 but found Float");
                     return result;
                   }}),
       {"ComputesUnderAutocast", "ComputesInBfloat16"}},
      {affine("AddsAFloat32Constant", {.after =
                                           [](Affine&, Tensor result) {
                                             return result.scalar_type() == at::kBFloat16
                                                        ? result.to(at::kFloat)
                                                        : result;
                                           }}),
       {"ComputesInBfloat16"}},
      {affine("HasABufferOfAnotherDtype",
              {.prepare = [](Affine& layer,
                             Spec) { layer.register_buffer("seen", at::zeros({1}, at::kFloat)); }}),
       {"ParametersAndFloatingBuffersHaveTheSpecsDtype"}},
      {affine("HasABufferBeyondBfloat16",
              {.prepare =
                   [](Affine& layer, const LayerSpec& spec) {
                     constexpr float kMost = std::numeric_limits<float>::max();
                     layer.register_buffer("far", at::full({1}, kMost, at::kFloat).to(spec.dtype));
                   }}),
       {"BuffersThatAreFiniteAreSoInBfloat16"}},
      {affine("NumbersItsParameters",
              {.prepare =
                   [](Affine& layer, Spec spec) {
                     static int count = 0;
                     layer.other = layer.register_parameter("scale-" + std::to_string(++count),
                                                            at::randn({1}, spec.dtype));
                   },
               .after = [](Affine& layer, Tensor result) { return result.mul(layer.other); }}),
       {"HasTheSameStructureEveryTime", "StateRoundTripGivesTheSameBits"}},
      {affine("SharesABuffer", {.prepare =
                                    [](Affine& layer, Spec) {
                                      static const at::Tensor shared = at::zeros({1}, at::kLong);
                                      layer.other = layer.register_buffer("shared", shared);
                                    },
                                .before =
                                    [](Affine& layer, Tensor input) {
                                      layer.other.add_(1);
                                      return input;
                                    }}),
       {"EachLayerHasMemoryOfItsOwn", "GathersAnewWhatTrainingLeavesInItsBuffers"}},
      {affine(
           "HidesAParameter",
           {.prepare = [](Affine& layer, Spec spec) { layer.other = at::randn({6}, spec.dtype); },
            .before = [](Affine& layer, Tensor input) { return input.mul(layer.other); }}),
       {"StateRoundTripGivesTheSameBits"}},
      {affine("DrawsFromElsewhere", {.prepare =
                                         [](Affine& layer, Spec) {
                                           static std::uint64_t count = 0;
                                           const TaskRandom random(++count);
                                           const at::NoGradGuard no_gradients;
                                           layer.bias.add_(at::randn({3}, at::kDouble));
                                         }}),
       {"DrawsItsWeightsFromTheTasksStream", "WorksTheSameFromAnArena"}},
      {affine("DropsOutUndeclared", {.after =
                                         [](Affine& layer, Tensor result) {
                                           return at::dropout(result, 0.5, layer.is_training());
                                         }}),
       {"TrainingDiffersFromEvaluationOnlyIfItMay"}},
      {affine("DropsOutInEvaluation",
              {.after = [](Affine&, Tensor result) { return at::dropout(result, 0.5, true); }}),
       {"EvaluationIsAFunctionOfTheInputs"}},
      {affine("LooksAtTheWholeBatch",
              {.after = [](Affine&, Tensor result) { return result.sub(result.mean(0)); }}),
       {"EvaluationIsAFunctionOfTheInputs"}},
      {affine("HalvesItsGradient",
              {.after = [](Affine&, Tensor result) { return result.add(result.detach()).div(2); }}),
       {"GradientsAreTheSlopesOfTheResult"}},
      {affine("HasAnUnusedParameter", {.prepare =
                                           [](Affine& layer, Spec spec) {
                                             layer.register_parameter("unused",
                                                                      at::randn({2}, spec.dtype));
                                           }}),
       {"EveryParameterGetsAGradient"}},
      {affine("WritesToItsInputs", {.before =
                                        [](Affine&, Tensor input) {
                                          const at::NoGradGuard no_gradients;
                                          if (input.size(0) == 5)
                                            input.detach()[4][5].zero_();
                                          return input;
                                        }}),
       {"LeavesItsInputsAlone"}},
      {affine("CountsSilently", {.prepare =
                                     [](Affine& layer, const LayerSpec& spec) {
                                       layer.other = layer.register_buffer(
                                           "count", at::zeros({1}, spec.dtype));
                                     },
                                 .after =
                                     [](Affine& layer, Tensor result) {
                                       const at::NoGradGuard no_gradients;
                                       if (layer.is_training())
                                         layer.other.add_(1);
                                       return result;
                                     }}),
       {"GathersAnewWhatTrainingLeavesInItsBuffers"}},
      {counting("KeepsWhatWasThere", {.forgets = false}),
       {"GathersAnewWhatTrainingLeavesInItsBuffers"}},
      {counting("GoesOnGathering", {.ends = false}), {"GathersAnewWhatTrainingLeavesInItsBuffers"}},
      {LayerCase{.name = "RemembersSilently",
                 .make = [] { return std::make_unique<RememberingFactory>(); }},
       {"RemembersOnlyIfItSaysSo"}},
      {reporting("LogsSilently", {.declares_log = false}), {"ReportsOnlyWhatItDeclares"}},
      {reporting("AddsLossesSilently", {.declares_loss = false}), {"ReportsOnlyWhatItDeclares"}},
      {reporting("AddsTheMeanToTheLoss", {.adds_mean = true}), {"LossesAddUpOverRows"}},
      {recurrent("HandsItsStateOnWhole", {.cuts_state = false}),
       {"TruncatedBpttEndsAtEveryStepOfTime"}},
      {recurrent("CutsWhatItIsGiven", {.cuts_too_much = true}),
       {"TruncatedBpttEndsAtEveryStepOfTime"}},
      {recurrent("GivesOtherNumbersWhenCut", {.gives_other_numbers = true}),
       {"TruncatedBpttLeavesTheResultAlone"}},
      {without_reference(recurrent("HandsItsStateOnSilently", {.cuts_state = false})),
       {"AStateCarriedThroughTimeHasAReference"}},
      {without_reference(recurrent("CutsSilently")),
       {"AStateCarriedThroughTimeHasAReference", "TruncatedBpttEndsAtEveryStepOfTime"}},
      {LayerCase{.name = "CutsNothingInAPlan",
                 .make = [] { return std::make_unique<CutWhereCalledFactory>(); }},
       {"APlanOfItGivesTheSameBits", "TruncatedBpttEndsAtEveryStepOfTime"}},
      {sizing("NamesTheFirstOutput", {.names = {"output"}}), {"NamesEachFurtherOutputOnce"}},
      {sizing("AnnouncesAnotherOutput", {.announces_more = true}),
       {"FurtherOutputsAreAsAnnounced", "FurtherOutputsAreOfTheirRows"}},
      {sizing("MovesTheResultOnRequest", {.moves_the_result = true}),
       {"RequestsChangeNoOtherOutput"}},
      {sizing("AddsUpRowsInAnOutput", {.adds_up_rows = true}), {"FurtherOutputsAreOfTheirRows"}},
      {sizing("CutsAnOutput", {.is_cut = true}), {"GradientsAreTheSlopesOfEveryOutput"}},
      {affine("SharesItsScratch", {.after =
                                       [thread = OneThread()](Affine&, Tensor result) {
                                         return thread.is_mine() ? result : result.add(1);
                                       }}),
       {"SeveralThreadsMayEvaluateAtOnce"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, LayerContract,
                         ::testing::Values(affine("Affine"), counting("Counting"),
                                           reporting("Reporting"), recurrent("Recurrent"),
                                           sizing("Sizing")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, LayerContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_layers

std::vector<Defect> layer_defects() {
  return defects_of("LayerContract", wrong_layers::all());
}

}  // namespace treadle::testing
