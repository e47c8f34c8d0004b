#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/core/model/forward_context.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/model/model_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_models {
namespace {

/// One linear layer. `Change` has what makes it wrong: `prepare` sees the new net, `before` the
/// input, `after` the output of each call.
class Net final : public Model {
 public:
  struct Change {
    std::function<void(Net&, const ModelSpec&)> prepare = nullptr;
    std::function<at::Tensor(Net&, const at::Tensor&)> before = nullptr;
    std::function<at::Tensor(Net&, const at::Tensor&)> after = nullptr;
  };

  Net(const ModelSpec& spec, const Change& change) : change_(change) {
    weight = register_parameter(
        "weight", at::randn({spec.outputs[0].width(), spec.inputs[0].shape[0]}, spec.dtype));
    bias = register_parameter("bias", at::randn({spec.outputs[0].width()}, spec.dtype));
    if (change_.prepare)
      change_.prepare(*this, spec);
  }

  void forward(const Inputs& inputs, Outputs& outputs, ForwardContext&) override {
    const at::Tensor input = change_.before ? change_.before(*this, inputs[0]) : inputs[0];
    const at::Tensor output = at::linear(input, weight, bias);
    outputs[0] = change_.after ? change_.after(*this, output) : output;
  }

  at::Tensor weight;
  at::Tensor bias;
  at::Tensor other;  ///< for prepare

 private:
  Change change_;
};

class NetProvider final : public ModelProvider {
 public:
  explicit NetProvider(Net::Change change) : change_(std::move(change)) {}

 private:
  std::shared_ptr<Model> do_create(const ModelSpec& spec) const override {
    return std::make_shared<Net>(spec, change_);
  }
  Net::Change change_;
};

ModelCase net(std::string name, const Net::Change& change = {}) {
  return {std::move(name), [change] { return std::make_unique<NetProvider>(change); }};
}

ModelCase looked_up(ModelCase one) {
  one.differentiable_in_inputs = false;
  return one;
}

std::vector<Wrong<ModelCase>> all() {
  using Tensor = const at::Tensor&;
  using Spec = const ModelSpec&;
  return {
      {net("SharesABuffer", {.prepare =
                                 [](Net& net, Spec) {
                                   static const at::Tensor shared = at::zeros({1}, at::kLong);
                                   net.register_buffer("shared", shared);
                                 }}),
       {"EachModelHasMemoryOfItsOwn"}},
      {net("CountsSilently", {.prepare =
                                  [](Net& net, Spec spec) {
                                    net.other =
                                        net.register_buffer("count", at::zeros({1}, spec.dtype));
                                  },
                              .before =
                                  [](Net& net, Tensor input) {
                                    const at::NoGradGuard no_gradients;
                                    if (net.is_training())
                                      net.other.add_(1);
                                    return input;
                                  }}),
       {"DeclaresWhatTrainingLeavesInItsBuffers"}},
      {net("HidesAParameter",
           {.prepare = [](Net& net, Spec spec) { net.other = at::randn({6}, spec.dtype); },
            .before = [](Net& net, Tensor input) { return input.mul(net.other); }}),
       {"StateRoundTripGivesTheSameBits"}},
      {net("DrawsFromElsewhere", {.prepare =
                                      [](Net& net, Spec) {
                                        static std::uint64_t count = 0;
                                        const TaskRandom random(++count);
                                        const at::NoGradGuard no_gradients;
                                        net.bias.add_(at::randn({3}, at::kDouble));
                                      }}),
       {"DrawsItsWeightsFromTheTasksStream", "WorksTheSameFromAnArena"}},
      {net("DropsOutInEvaluation",
           {.after = [](Net&, Tensor output) { return at::dropout(output, 0.5, true); }}),
       {"EvaluationIsAFunctionOfTheInputs"}},
      {net("LooksAtTheWholeBatch",
           {.after = [](Net&, Tensor output) { return output.sub(output.mean(0)); }}),
       {"EvaluationIsAFunctionOfTheInputs"}},
      {net("DropsOutUndeclared",
           {.after = [](Net& net,
                        Tensor output) { return at::dropout(output, 0.5, net.is_training()); }}),
       {"TrainingDiffersFromEvaluationOnlyIfItMay"}},
      {looked_up(net("WritesToItsInputs", {.before =
                                               [](Net&, Tensor input) {
                                                 if (input.size(0) > 1)
                                                   input.detach()[0].zero_();
                                                 return input;
                                               }})),
       {"LeavesItsInputsAlone"}},
      {net("HasAnUnusedParameter", {.prepare =
                                        [](Net& net, Spec spec) {
                                          net.register_parameter("unused",
                                                                 at::randn({2}, spec.dtype));
                                        }}),
       {"EveryParameterGetsAGradient"}},
      {net("HasAParameterOfAnotherDtype",
           {.prepare =
                [](Net& net, Spec) {
                  net.other = net.register_parameter("scale", at::randn({1}, at::kDouble));
                },
            .after = [](Net& net,
                        Tensor output) { return output.mul(net.other.to(output.scalar_type())); }}),
       {"ParametersHaveTheSpecsDtype"}},
      {net("HasABufferOfAnotherDtype",
           {.prepare = [](Net& net,
                          Spec) { net.register_buffer("seen", at::zeros({1}, at::kFloat)); }}),
       {"FloatingBuffersHaveTheSpecsDtype"}},
      {net("DividesByTheInput",
           {.before = [](Net&, Tensor input) { return input.div(input.abs().sum(1, true)); }}),
       {"FiniteInputsGiveNumbers"}},
      {net("HalvesItsGradient",
           {.after = [](Net&, Tensor output) { return output.add(output.detach()).div(2); }}),
       {"GradientsAreTheSlopesOfTheOutputs"}},
      {net("GivesWideOutputs", {.after =
                                    [](Net&, Tensor output) {
                                      return output.repeat({1, 2});
                                    }}),
       {"GivesOutputsOfTheAskedShapesAndDtype"}},
      {net("SharesItsScratch", {.after =
                                    [thread = OneThread()](Net&, Tensor output) {
                                      return thread.is_mine() ? output : output.add(1);
                                    }}),
       {"SeveralThreadsMayEvaluateAtOnce"}},
      {net("NumbersItsParameters",
           {.prepare =
                [](Net& net, Spec spec) {
                  static int count = 0;
                  net.other = net.register_parameter("scale-" + std::to_string(++count),
                                                     at::randn({1}, spec.dtype));
                },
            .after = [](Net& net, Tensor output) { return output.mul(net.other); }}),
       {"HasTheSameStructureEveryTime", "StateRoundTripGivesTheSameBits"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, ModelContract, ::testing::Values(net("Net")), CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, ModelContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_models

std::vector<Defect> model_defects() {
  return defects_of("ModelContract", wrong_models::all());
}

}  // namespace treadle::testing
