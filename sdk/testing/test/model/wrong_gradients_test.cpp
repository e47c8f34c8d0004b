#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/batch.h>
#include <treadle/core/model/abilities/logs_values.h>
#include <treadle/core/model/forward_context.h>
#include <treadle/core/training/loss.h>
#include <treadle/core/training/objective.h>
#include <treadle/testing/model/gradients_contract.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_gradients {
namespace {

/// Back-propagation. What a wrong one does otherwise it overrides.
class BackPropagation : public GradientStrategy {
 protected:
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    return back_propagate(task, batch, context);
  }

  /// The loss with its graph.
  static BatchLoss forward(const GradientTask& task, const Batch& batch, ForwardContext& context) {
    Outputs outputs(task.objective->outputs().size());
    (*task.model)(batch.inputs, outputs, context);
    return {task.objective->forward(outputs, batch), {}};
  }

  /// Gradients `factor` times as large, with the same loss.
  static BatchLoss scaled(double factor, const GradientTask& task, const Batch& batch,
                          ForwardContext& context) {
    class Scaled final : public Loss {
     public:
      Scaled(double factor, const Loss& inner) : factor_(factor), inner_(inner) {}

     private:
      std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
        return inner_.outputs_for(target);
      }
      LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                           const TargetBatch& target) const override {
        const LossTerms terms = inner_.forward(outputs, target);
        return {terms.sum.mul(factor_).add(terms.sum.detach().mul(1 - factor_)), terms.weight};
      }
      Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
        return inner_.prediction(outputs);
      }

      double factor_;
      const Loss& inner_;
    };
    const Scaled loss(factor, *task.objective->terms().front().loss);
    const Objective objective({{.loss = &loss}}, task.objective->targets());
    return back_propagate({task.model, &objective}, batch, context);
  }
};

class Overwrites final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    for (at::Tensor& parameter : task.model->parameters())
      parameter.mutable_grad().reset();
    return back_propagate(task, batch, context);
  }
};

/// Sets aside what is there and adds it afterwards, by name: some parameters have two.
class AddsASharedOneTwice final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    std::vector<at::Tensor> parameters = task.model->parameters();
    std::vector<at::Tensor> earlier;
    for (const at::Tensor& parameter : parameters)
      earlier.push_back(parameter.grad());
    for (at::Tensor& parameter : parameters)
      parameter.mutable_grad().reset();
    const BatchLoss loss = back_propagate(task, batch, context);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].grad().defined())
        parameters[i].mutable_grad() = earlier[i];
      else if (earlier[i].defined())
        parameters[i].mutable_grad() = parameters[i].grad().add(earlier[i]);
    }
    return loss;
  }
};

class GivesThoseOfTheMean final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    return scaled(1 / static_cast<double>(batch.size()), task, batch, context);
  }
};

class Exaggerates final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    return scaled(1.001, task, batch, context);
  }
};

class ReturnsTheMean final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    BatchLoss loss = back_propagate(task, batch, context);
    loss.terms[0].sum = loss.terms[0].sum.div(batch.size());
    loss.terms[0].weight = at::ones_like(loss.terms[0].sum);
    return loss;
  }
};

class KeepsTheGraph final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    ForwardContext once = context;
    BatchLoss loss = forward(task, batch, once);
    back_propagate(task, batch, context);
    return loss;
  }
};

class IgnoresWeights final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    Batch unweighted = batch;
    unweighted.weights.reset();
    return back_propagate(task, unweighted, context);
  }
};

/// Works in halves, and twice half of an odd number is too little.
class DropsTheOddRow final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    const std::int64_t half = batch.size() / 2;
    BatchLoss loss = back_propagate(task, batch.slice(0, half), context);
    loss.add(back_propagate(task, batch.slice(half, half), context));
    return loss;
  }
};

class ThawsTheFrozen final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    std::vector<at::Tensor> frozen;
    for (const at::Tensor& parameter : task.model->parameters()) {
      if (!parameter.requires_grad())
        frozen.push_back(parameter.set_requires_grad(true));
    }
    const BatchLoss loss = back_propagate(task, batch, context);
    for (const at::Tensor& parameter : frozen)
      parameter.set_requires_grad(false);
    return loss;
  }
};

/// Adds a zero to all gradients there are, also where no row has reached.
class TouchesThemAll final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    const BatchLoss loss = back_propagate(task, batch, context);
    for (const at::Tensor& parameter : task.model->parameters()) {
      if (parameter.grad().defined())
        parameter.grad().add_(0);
    }
    return loss;
  }
};

class ShrinksTheParameters final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    const BatchLoss loss = back_propagate(task, batch, context);
    const at::NoGradGuard no_gradients;
    for (const at::Tensor& parameter : task.model->parameters())
      parameter.mul_(0.99);
    return loss;
  }
};

class LeavesTheModelInEvaluation final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    const BatchLoss loss = back_propagate(task, batch, context);
    task.model->eval();
    return loss;
  }
};

class RenumbersTheRows final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    batch.rows.add_(1);
    return back_propagate(task, batch, context);
  }
};

class StaysAtOneStep final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    context.set_truncated_bptt(true);
    return back_propagate(task, batch, context);
  }
};

class SeedsTheProcess final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    static std::atomic<std::uint64_t> seed = 1;
    at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    {
      const std::lock_guard lock(generator.mutex());
      generator.set_current_seed(++seed);
    }
    return back_propagate(task, batch, context);
  }
};

/// Adds to a gradient what has nothing to do with the batch: the loss of the one before.
class RemembersTheLastLoss final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    const BatchLoss loss = back_propagate(task, batch, context);
    const std::lock_guard lock(mutex_);
    const auto parameters = task.model->named_parameters();
    if (const at::Tensor* bias = parameters.find("output.bias"))
      bias->grad().add_(last_);
    last_ = loss.terms[0].sum.item<double>();
    return loss;
  }
  mutable std::mutex mutex_;
  mutable double last_ = 0;
};

/// Leaves its last answer in a place that all threads share.
class SharesItsScratch final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    const BatchLoss loss = back_propagate(task, batch, context);
    if (!thread_.is_mine())
      task.model->named_parameters()["output.bias"].grad().add_(1);
    return loss;
  }
  OneThread thread_;
};

class DetachesNothing final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    BatchLoss loss = forward(task, batch, context);
    loss.terms[0].sum.backward();
    loss.terms[0].sum = loss.terms[0].sum.detach();
    return loss;
  }
};

class ForgetsWhatWasCarried final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    context.state() = {};
    return back_propagate(task, batch, context);
  }
};

class SwallowsErrors final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    try {
      return back_propagate(task, batch, context);
    } catch (const DataError&) {
      return {{{at::scalar_tensor(0, at::kDouble), {}, 0}}, {}};
    }
  }
};

/// Makes a context of its own for the model, and copies what it knows of.
class RebuildsTheContext final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    ForwardContext own(context.stop());
    own.state() = context.state();
    BatchLoss loss = back_propagate(task, batch, own);
    context.state() = own.state();
    return loss;
  }
};

/// Forgets what the model added to the loss.
class LosesTermsOfTheModel final : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    BatchLoss loss = back_propagate(task, batch, context);
    loss.auxiliary.clear();
    return loss;
  }
};

class LogsWithoutDeclaring : public BackPropagation {
  BatchLoss do_add_gradients(const GradientTask& task, const Batch& batch,
                             ForwardContext& context) const override {
    context.log("rows", at::scalar_tensor(batch.size(), at::kDouble));
    return back_propagate(task, batch, context);
  }
};

class LogsWhatItDeclares final : public LogsWithoutDeclaring, public LogsValues {
  std::vector<std::string> logged_names() const override { return {"rows"}; }
};

template <typename T>
GradientsCase one(std::string name, bool exact = true) {
  return {std::move(name), [] { return std::make_unique<T>(); }, exact};
}

std::vector<Wrong<GradientsCase>> all() {
  return {
      {one<Overwrites>("Overwrites"), {"AddsToTheGradientsThatAreThere"}},
      {one<AddsASharedOneTwice>("AddsASharedOneTwice"), {"AddsToTheGradientsThatAreThere"}},
      {one<GivesThoseOfTheMean>("GivesThoseOfTheMean"),
       {"GivesThoseOfBackPropagationIfItIsExact", "WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow"}},
      {one<Exaggerates>("Exaggerates"), {"GivesThoseOfBackPropagationIfItIsExact"}},
      {one<BackPropagation>("SaysThatItIsNotExact", false),
       {"GivesThoseOfBackPropagationIfItIsExact"}},
      {one<ReturnsTheMean>("ReturnsTheMean"), {"ReturnsTheLossOfTheBatch"}},
      {one<KeepsTheGraph>("KeepsTheGraph"),
       {"ReturnsScalarsInTheModelsDtypeWithoutAGraph", "EverythingInTheContextReachesTheModel"}},
      {one<IgnoresWeights>("IgnoresWeights"),
       {"GivesThoseOfBackPropagationIfItIsExact", "ReturnsTheLossOfTheBatch",
        "WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow", "TermsOfTheModelHaveTheirGradients"}},
      {one<DropsTheOddRow>("DropsTheOddRow"),
       {"GivesThoseOfBackPropagationIfItIsExact", "ReturnsTheLossOfTheBatch",
        "WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow"}},
      {one<ThawsTheFrozen>("ThawsTheFrozen"),
       {"GivesThoseOfBackPropagationIfItIsExact", "LeavesAloneWhatTheBatchDoesNotReach"}},
      {one<TouchesThemAll>("TouchesThemAll"), {"LeavesAloneWhatTheBatchDoesNotReach"}},
      {one<ShrinksTheParameters>("ShrinksTheParameters"), {"LeavesModelAndBatchAlone"}},
      {one<LeavesTheModelInEvaluation>("LeavesTheModelInEvaluation"), {"LeavesModelAndBatchAlone"}},
      {one<RenumbersTheRows>("RenumbersTheRows"), {"LeavesModelAndBatchAlone"}},
      {one<StaysAtOneStep>("StaysAtOneStep"), {"LeavesModelAndBatchAlone"}},
      {one<SeedsTheProcess>("SeedsTheProcess"), {"LeavesTheProcessAlone"}},
      {one<RemembersTheLastLoss>("RemembersTheLastLoss"),
       {"DependsOnTheBatchAndTheTasksRandomStreamAlone",
        "SeveralThreadsMayUseItAtOnceWithAReplicaEach"}},
      {one<SharesItsScratch>("SharesItsScratch"), {"SeveralThreadsMayUseItAtOnceWithAReplicaEach"}},
      {one<DetachesNothing>("DetachesNothing"),
       {"HandsOnWhatTheModelCarriesDetached", "EverythingInTheContextReachesTheModel",
        "TermsOfTheModelHaveTheirGradients"}},
      {one<ForgetsWhatWasCarried>("ForgetsWhatWasCarried"), {"HandsOnWhatTheModelCarriesDetached"}},
      {one<RebuildsTheContext>("RebuildsTheContext"), {"EverythingInTheContextReachesTheModel"}},
      {one<LosesTermsOfTheModel>("LosesTermsOfTheModel"),
       {"EverythingInTheContextReachesTheModel"}},
      {one<LogsWithoutDeclaring>("LogsWithoutDeclaring"), {"LogsOnlyWhatItDeclares"}},
      {one<SwallowsErrors>("SwallowsErrors"), {"LetsWhatTheLossThrowsThrough"}}};
}

INSTANTIATE_TEST_SUITE_P(Right, GradientStrategyContract,
                         ::testing::Values(one<BackPropagation>("BackPropagation"),
                                           one<LogsWhatItDeclares>("LogsWhatItDeclares")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, GradientStrategyContract,
                         ::testing::ValuesIn(cases_of(all())), CaseName());

}  // namespace
}  // namespace wrong_gradients

std::vector<Defect> gradients_defects() {
  return defects_of("GradientStrategyContract", wrong_gradients::all());
}

}  // namespace treadle::testing
