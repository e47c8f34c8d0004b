#include <treadle/testing/model/gradients_contract.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/components/module_state.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/parameter_arena.h>
#include <treadle/tensor/process_state.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/tensor_comparison.h>
#include <treadle/testing/support/test_device.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class GradientStrategyClaims : public ::testing::WithParamInterface<GradientsCase> {
 protected:
  static constexpr std::int64_t kRows = 12;
  static constexpr std::uint64_t kSeed = 17;
  /// In float64, of sums over at most kRows rows of numbers of about 1.
  static constexpr Closeness kRounding{.relative = 1e-10, .absolute = 1e-12};

  /// Two layers, and what a careless strategy trips over: a parameter that is frozen, one that no
  /// batch reaches, one that is used under two names; a buffer; dropout and a memory where asked.
  class ManySidedModel final : public Model {
   public:
    struct Traits {
      at::ScalarType dtype = at::kDouble;
      double dropout = 0;
      bool keeps_state = false;
    };

    explicit ManySidedModel(Traits traits) : traits_(traits) {
      const TaskRandom random(23);
      hidden_ = register_module("hidden", torch::nn::Linear(3, 4));
      output_ = register_module("output", torch::nn::Linear(4, 2));
      shared_ = register_parameter("shared", hidden_->weight);
      frozen_ = register_parameter("frozen", at::randn({4}), /*requires_grad=*/false);
      register_parameter("unreached", at::randn({2, 2}));
      scale_ = register_buffer("scale", at::rand({4}).add(0.5));
      to(traits.dtype);
    }

    void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
      const at::Tensor twice = inputs[0].square().matmul(shared_.t());
      at::Tensor hidden = hidden_->forward(inputs[0]).add(twice).tanh().mul(scale_).add(frozen_);
      if (traits_.dropout > 0)
        hidden = at::dropout(hidden, traits_.dropout, is_training());
      if (traits_.keeps_state)
        hidden = hidden.add(remembered(hidden, context.state()));
      outputs[0] = output_->forward(hidden);
    }

   private:
    /// What earlier rows have left, by a name and in a part; these rows then add to it.
    static at::Tensor remembered(const at::Tensor& hidden, StateDict& carried) {
      const at::Tensor mean = hidden.mean(0);
      at::Tensor memory = at::zeros_like(mean);
      if (carried.has_tensor("memory"))
        memory = carried.tensor("memory").add(carried.part("layer").tensor("memory"));
      StateDict layer;
      layer.put("memory", memory.mul(0.25).add(mean));
      carried.put("layer", std::move(layer));
      carried.put("memory", memory.mul(0.5).add(mean));
      return memory;
    }

    Traits traits_;
    torch::nn::Linear hidden_{nullptr};
    torch::nn::Linear output_{nullptr};
    at::Tensor shared_;
    at::Tensor frozen_;
    at::Tensor scale_;
  };

  /// Logs a value, adds a term to the loss and looks at its batch's targets.
  class TalkativeModel final : public Model {
   public:
    explicit TalkativeModel(bool adds_penalty = true)
        : adds_penalty_(adds_penalty),
          scale_(register_parameter("scale", at::full({}, 0.5, at::kDouble))) {}

    void forward(const Inputs& inputs, Outputs& outputs, ForwardContext& context) override {
      const std::int64_t rows = inputs[0].size(0);
      could_be_stopped_ = context.stop().stop_possible();
      is_one_step_ = context.truncates_bptt();
      if (context.batch() != nullptr && context.batch()->targets.at(0).size(0) == rows)
        rows_with_targets_ += rows;
      context.log("scale", scale_);
      if (adds_penalty_)
        context.add_loss("penalty", scale_.square().div(2).mul(static_cast<double>(rows)));
      outputs[0] = inputs[0].slice(1, 0, 2).mul(scale_);
    }

    bool could_be_stopped() const { return could_be_stopped_; }
    bool is_one_step() const { return is_one_step_; }
    std::int64_t rows_with_targets() const { return rows_with_targets_; }
    const at::Tensor& scale() const { return scale_; }

   private:
    bool adds_penalty_;
    at::Tensor scale_;
    bool could_be_stopped_ = false;
    bool is_one_step_ = false;
    std::int64_t rows_with_targets_ = 0;
  };

  /// Half the squared error of each row, weighted.
  class RowwiseLoss : public Loss {
    std::vector<OutputSpec> do_outputs_for(const TargetSpec& target) const override {
      return {{"value", {target.width()}}};
    }
    LossTerms do_forward(const std::vector<at::Tensor>& outputs,
                         const TargetBatch& target) const override {
      const at::Tensor each = outputs[0].sub(target.values()).square().sum(1).div(2);
      if (!target.weights().defined())
        return {each.sum(), {}};
      return {each.mul(target.weights()).sum(), target.weights().sum()};
    }
    Prediction do_prediction(const std::vector<at::Tensor>& outputs) const override {
      return {TargetKind::kNumbers, outputs[0]};
    }
  };

  class FailingLoss final : public RowwiseLoss {
    LossTerms do_forward(const std::vector<at::Tensor>&, const TargetBatch&) const override {
      throw DataError("row 7 has no target");
    }
  };

  static Objective objective_of_pairs(const Loss& loss) {
    const TargetSpec target = number_target("pair", 2);
    return {{{.loss = &loss}}, std::span(&target, 1)};
  }

  /// Where the model has left its memory last: here, or in the part that a strategy keeps for some
  /// of the rows. Null when nowhere.
  static const StateDict* last_with_memory(const StateDict& carried) {
    if (carried.has_tensor("memory") && carried.has_part("layer"))
      return &carried;
    const StateDict* found = nullptr;
    for (const auto& [name, part] : carried.parts()) {
      if (const StateDict* in_part = last_with_memory(part))
        found = in_part;
    }
    return found;
  }

  /// By the parameters' names; undefined where there is none.
  using Gradients = std::map<std::string, at::Tensor>;

  /// A replica of the model with a stream of its own, as a shard has them.
  struct Replica {
    Replica() : Replica(ManySidedModel::Traits()) {}
    explicit Replica(ManySidedModel::Traits traits) : model(traits) {}

    BatchLoss add(const GradientStrategy& strategy, const Batch& batch,
                  std::uint64_t seed = kSeed) {
      const TaskRandom random(seed);
      return strategy.add_gradients(task(), batch, context);
    }
    GradientTask task() { return {&model, &objective}; }
    Gradients gradients() const {
      Gradients all;
      for (const auto& parameter : model.named_parameters()) {
        const at::Tensor& gradient = parameter.value().grad();
        all[parameter.key()] = gradient.defined() ? gradient.clone() : gradient;
      }
      return all;
    }

    ManySidedModel model;
    RowwiseLoss loss;
    Objective objective = objective_of_pairs(loss);
    ForwardContext context;
  };

  static Batch batch_of(std::int64_t rows, bool weighted, at::ScalarType dtype = at::kDouble) {
    const TaskRandom random(static_cast<std::uint64_t>(rows));
    Batch batch;
    batch.inputs = {at::randn({rows, 3}, dtype)};
    batch.targets = batch.original_targets = {at::randn({rows, 2}, dtype)};
    if (weighted)
      batch.weights = at::rand({rows}, dtype);
    batch.rows = at::arange(rows);
    return batch;
  }

  static std::unique_ptr<GradientStrategy> make() { return GetParam().make(); }

  /// Of a new strategy on a new model.
  static Gradients gradients_of(const Batch& batch) {
    Replica replica;
    replica.add(*make(), batch);
    return replica.gradients();
  }

  /// Those of the rows of `batch` by themselves, with weights of 1.
  static Batch rows_of(const Batch& batch, const std::vector<std::int64_t>& rows) {
    Batch chosen;
    const auto pick = [&](const at::Tensor& tensor) {
      std::vector<at::Tensor> picked;
      for (const std::int64_t row : rows)
        picked.push_back(tensor.slice(0, row, row + 1));
      return at::cat(picked);
    };
    chosen.inputs = {pick(batch.inputs[0])};
    chosen.targets = chosen.original_targets = {pick(batch.targets[0])};
    chosen.rows = pick(batch.rows);
    return chosen;
  }

  static ::testing::AssertionResult gradients_match(const Gradients& got, const Gradients& expected,
                                                    const Closeness& allowed = {}) {
    for (const auto& [name, gradient] : expected) {
      if (auto result = values_match(got.at(name), gradient, allowed); !result)
        return result << ", in the gradient of \"" << name << "\"";
    }
    return ::testing::AssertionSuccess();
  }

  static double weight_of(const BatchLoss::Term& term) {
    return term.weight.defined() ? term.weight.item<double>() : term.count;
  }

  static bool has_value(const LoggedValues& logged, std::string_view name) {
    const std::vector<MetricValue> values = logged.means();
    return std::any_of(values.begin(), values.end(),
                       [name](const MetricValue& value) { return value.name == name; });
  }

  /// Calls `work(batch)` with batches of all kinds: whole, ragged, of one row; weighted or not.
  template <typename Work>
  static void for_each_batch(Work&& work) {
    for (const bool weighted : {false, true}) {
      for (const std::int64_t rows : {kRows, std::int64_t{7}, std::int64_t{2}, std::int64_t{1}}) {
        SCOPED_TRACE(std::to_string(rows) + (weighted ? " weighted rows" : " rows"));
        work(batch_of(rows, weighted));
      }
    }
  }
};

}  // namespace

LINKS_CLAIMS_OF(GradientStrategy)

CLAIM(GradientStrategy, GivesThoseOfBackPropagationIfItIsExact) {
  const auto by_back_propagation = [](const Batch& batch) {
    Replica replica;
    back_propagate(replica.task(), batch, replica.context);
    return replica.gradients();
  };
  if (!GetParam().exact) {
    const Batch batch = batch_of(kRows, true);
    EXPECT_FALSE(gradients_match(gradients_of(batch), by_back_propagation(batch), kRounding))
        << "they are those of back-propagation, although the case says that it is not exact";
    return;
  }
  for_each_batch([&](const Batch& batch) {
    EXPECT_TRUE(gradients_match(gradients_of(batch), by_back_propagation(batch), kRounding));
  });
}

CLAIM(GradientStrategy, ReturnsTheLossOfTheBatch) {
  for_each_batch([](const Batch& batch) {
    Replica replica;
    const BatchLoss loss = replica.add(*make(), batch);

    const at::NoGradGuard no_gradients;
    Replica reference;
    Outputs outputs(1);
    reference.model.forward(batch.inputs, outputs, reference.context);
    const BatchLoss::Term expected = reference.objective.forward(outputs, batch).front();

    ASSERT_EQ(loss.terms.size(), 1U);
    EXPECT_TRUE(values_match(loss.terms[0].sum, expected.sum, kRounding)) << "the sum";
    EXPECT_NEAR(weight_of(loss.terms[0]), weight_of(expected), 1e-12 * kRows);
  });
}

CLAIM(GradientStrategy, ReturnsScalarsInTheModelsDtypeWithoutAGraph) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    Replica replica({.dtype = dtype});

    const BatchLoss loss = replica.add(*make(), batch_of(kRows, true, dtype));
    const BatchLoss::Term& terms = loss.terms.front();

    EXPECT_EQ(terms.sum.dim(), 0);
    EXPECT_EQ(terms.sum.scalar_type(), dtype);
    EXPECT_FALSE(terms.sum.requires_grad());
    if (terms.weight.defined()) {
      EXPECT_EQ(terms.weight.dim(), 0);
      EXPECT_FALSE(terms.weight.requires_grad());
    }
  }
}

CLAIM(GradientStrategy, AddsToTheGradientsThatAreThere) {
  const Batch batch = batch_of(kRows, true);
  const Gradients alone = gradients_of(batch);
  Replica replica;
  Gradients sums;
  {
    const TaskRandom random(31);
    for (const auto& parameter : replica.model.named_parameters()) {
      const at::Tensor& added = alone.at(parameter.key());
      if (!parameter.value().requires_grad())
        continue;
      if (!parameter.value().grad().defined())  // a shared one has it by its other name
        parameter.value().mutable_grad() = at::randn_like(parameter.value().detach());
      const at::Tensor before = parameter.value().grad().clone();
      sums[parameter.key()] = added.defined() ? before.add(added) : before;
    }
  }

  replica.add(*make(), batch);

  EXPECT_TRUE(gradients_match(replica.gradients(), sums, kRounding));
}

CLAIM(GradientStrategy, WeightTwoEqualsTheRowTwiceAndWeightZeroNoRow) {
  Batch weighted = batch_of(kRows, false);
  const Batch twice = rows_of(weighted, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0});
  weighted.weights = at::ones({kRows}, at::kDouble);
  weighted.weights[0].fill_(2);
  weighted.weights.slice(0, kRows - 2).zero_();

  EXPECT_TRUE(gradients_match(gradients_of(weighted), gradients_of(twice), kRounding));
}

// Gradients that lie in an arena are never undefined: what was not reached is known by nobody
// having written to it, not even a zero. Optimizers leave such parameters alone.
CLAIM(GradientStrategy, LeavesAloneWhatTheBatchDoesNotReach) {
  Replica plain;
  Replica adopted;
  ParameterArena arena(adopted.model);
  arena.zero_gradients();

  plain.add(*make(), batch_of(kRows, true));
  adopted.add(*make(), batch_of(kRows, true));
  arena.collect();

  const Gradients gradients = plain.gradients();
  for (const auto& parameter : plain.model.named_parameters()) {
    const bool reached = parameter.key() != "frozen" && parameter.key() != "unreached";
    EXPECT_EQ(gradients.at(parameter.key()).defined(), reached) << parameter.key();
  }
  for (const Segment& segment : arena.segments()) {
    EXPECT_EQ(segment.touched, gradients.at(segment.name).defined()) << segment.name;
    EXPECT_EQ(segment.frozen, segment.name == "frozen") << segment.name;
    if (segment.active()) {
      EXPECT_TRUE(values_match(arena.gradient(segment), gradients.at(segment.name)))
          << segment.name;
    }
  }
}

CLAIM(GradientStrategy, LeavesModelAndBatchAlone) {
  Replica replica;
  replica.model.children()[0]->eval();  // one layer alone
  const StateDict before = module_state(replica.model).snapshot();
  const StateDict places = module_state(replica.model);
  const Batch batch = batch_of(kRows, true);
  const Batch batch_before = copy_of(batch);

  replica.add(*make(), batch);

  const StateDict after = module_state(replica.model);
  for (const auto& [name, tensor] : before.tensors()) {
    EXPECT_TRUE(values_match(after.tensor(name), tensor)) << name;
    EXPECT_EQ(after.tensor(name).data_ptr(), places.tensor(name).data_ptr()) << name;
  }
  for (const auto& parameter : replica.model.named_parameters())
    EXPECT_EQ(parameter.value().requires_grad(), parameter.key() != "frozen") << parameter.key();
  EXPECT_TRUE(replica.model.is_training());
  EXPECT_FALSE(replica.model.children()[0]->is_training());
  EXPECT_FALSE(replica.context.truncates_bptt())
      << "the next forward with this context goes on with gradients of one step";
  expect_same(batch, batch_before);
  EXPECT_FALSE(batch.inputs[0].requires_grad());
}

CLAIM(GradientStrategy, LeavesTheProcessAlone) {
  const auto strategy = make();
  const Batch batch = batch_of(kRows, true);
  Replica({.dropout = 0.5}).add(*strategy, batch);  // what the first of its kind sets up
  // On a thread of its own, where nobody has left anything.
  const auto errors = at_once(1, [&](std::size_t) {
    Replica replica({.dropout = 0.5});
    const ProcessState before = ProcessState::now();

    replica.add(*strategy, batch);

    for (const std::string& change : before.changes_until(ProcessState::now()))
      ADD_FAILURE() << "it changed the process: " << change;
  });

  EXPECT_EQ(errors, kNoErrors);
}

CLAIM(GradientStrategy, DependsOnTheBatchAndTheTasksRandomStreamAlone) {
  const auto used = make();
  const auto noisy_gradients = [](const GradientStrategy& strategy, std::uint64_t seed) {
    Replica replica({.dropout = 0.5});
    replica.add(strategy, batch_of(kRows, true), seed);
    return replica.gradients();
  };
  Replica().add(*used, batch_of(7, false));

  const Gradients expected = noisy_gradients(*make(), kSeed);

  EXPECT_TRUE(gradients_match(noisy_gradients(*used, kSeed), expected)) << "from a used one";
  EXPECT_FALSE(gradients_match(noisy_gradients(*used, kSeed + 1), expected))
      << "another random stream gives the same";
}

CLAIM(GradientStrategy, SeveralThreadsMayUseItAtOnceWithAReplicaEach) {
  constexpr std::size_t kThreads = 4;
  const auto gradients_by = [](const GradientStrategy& strategy, std::size_t thread) {
    Replica replica({.dropout = 0.2});
    const Batch batch = batch_of(kRows - static_cast<std::int64_t>(thread), thread % 2 == 0);
    for (int step = 0; step < 10; ++step)
      replica.add(strategy, batch, thread);
    return replica.gradients();
  };
  std::vector<Gradients> expected;
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    expected.push_back(gradients_by(*make(), thread));
  const auto strategy = make();
  std::vector<Gradients> results(kThreads);

  const auto errors = at_once(
      kThreads, [&](std::size_t thread) { results[thread] = gradients_by(*strategy, thread); });

  ASSERT_EQ(errors, kNoErrors);
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    EXPECT_TRUE(gradients_match(results[thread], expected[thread])) << "thread " << thread;
}

CLAIM(GradientStrategy, HandsOnWhatTheModelCarriesDetached) {
  const auto strategy = make();
  const Batch batch = batch_of(kRows, false);
  Replica replica({.keeps_state = true});
  at::Tensor before = at::zeros({4}, at::kDouble);
  for (const char* step : {"the first batch", "the second"}) {
    SCOPED_TRACE(step);
    replica.add(*strategy, batch);

    const StateDict* carried = last_with_memory(replica.context.state());
    ASSERT_NE(carried, nullptr) << "what the model carries is lost";
    ASSERT_FALSE(carried->tensor("memory").requires_grad());
    ASSERT_FALSE(carried->part("layer").tensor("memory").requires_grad());
    EXPECT_FALSE(values_match(carried->tensor("memory"), before, kRounding))
        << "what was carried into the batch does not matter";
    before = carried->tensor("memory").clone();
  }
}

// What a strategy hands a model is derived from the context it was given, whatever is in there.
CLAIM(GradientStrategy, EverythingInTheContextReachesTheModel) {
  const Batch batch = batch_of(kRows, true);
  TalkativeModel model;
  RowwiseLoss loss;
  const Objective objective = objective_of_pairs(loss);
  LoggedValues logged;
  std::stop_source stop;
  ForwardContext context(stop.get_token());
  context.set_log(&logged);
  const TruncatingBptt one_step(context);

  const BatchLoss of_batch = make()->add_gradients({&model, &objective}, batch, context);

  EXPECT_TRUE(model.could_be_stopped()) << "the stop token is lost";
  EXPECT_TRUE(model.is_one_step()) << "the model does not see that gradients end at every step";
  EXPECT_EQ(model.rows_with_targets(), kRows) << "the model does not see the batch's targets";
  EXPECT_TRUE(has_value(logged, "scale")) << "what the model logs is lost";
  ASSERT_EQ(of_batch.auxiliary.size(), 1U) << "the terms that the model adds to the loss are lost";
  EXPECT_EQ(of_batch.auxiliary.front().name, "penalty");
  // By hand: half the square of 0.5, for each of the rows.
  EXPECT_NEAR(of_batch.auxiliary.front().sum.item<double>(), 0.125 * kRows, 1e-12);
}

CLAIM(GradientStrategy, LogsOnlyWhatItDeclares) {
  const auto strategy = make();
  const std::vector<std::string> declared = strategy->log_names();
  TalkativeModel model;
  RowwiseLoss loss;
  const Objective objective = objective_of_pairs(loss);
  LoggedValues logged;
  ForwardContext context;
  context.set_log(&logged);

  strategy->add_gradients({&model, &objective}, batch_of(kRows, true), context);

  for (const MetricValue& value : logged.means()) {
    if (value.name == "scale")
      continue;  // the model's
    EXPECT_EQ(std::count(declared.begin(), declared.end(), value.name), 1)
        << value.name << ": derive from LogsValues";
  }
}

// By hand: the penalty's slope is the scale, 0.5, for each row, as the weight of the batch over its
// rows has it: what is divided by the weight later is then a mean over rows.
CLAIM(GradientStrategy, TermsOfTheModelHaveTheirGradients) {
  if (!GetParam().exact)
    return;
  const Batch batch = batch_of(kRows, true);
  RowwiseLoss loss;
  const Objective objective = objective_of_pairs(loss);
  const auto slope_of_scale = [&](bool adds_penalty) {
    TalkativeModel model(adds_penalty);
    ForwardContext context;
    make()->add_gradients({&model, &objective}, batch, context);
    return model.scale().grad().item<double>();
  };

  EXPECT_NEAR(slope_of_scale(true) - slope_of_scale(false),
              0.5 * batch.weights.sum().item<double>(), 1e-10);
}

CLAIM(GradientStrategy, LetsWhatTheLossThrowsThrough) {
  const auto strategy = make();
  Replica replica;
  const FailingLoss failing;
  const Objective objective = objective_of_pairs(failing);
  try {
    strategy->add_gradients({&replica.model, &objective}, batch_of(kRows, true), replica.context);
    ADD_FAILURE() << "expected the loss' DataError";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "row 7 has no target");
  }
}

CLAIM(GradientStrategy, GradientsAgreeOnADevice) {
  const TestDevice* const device = TestDevice::chosen();
  if (device == nullptr)
    GTEST_SKIP() << TestDevice::kNone;
  for (const bool weighted : {false, true}) {
    const auto results_on = [&](c10::Device where) {
      Replica replica({.keeps_state = true});
      replica.model.to(where);
      const BatchLoss loss = replica.add(*make(), batch_of(kRows, weighted).to(where));
      NamedResults results;
      for (const auto& [name, gradient] : replica.gradients())
        add_result(results, "gradient of " + name, gradient);
      add_result(results, "sum", loss.terms.front().sum);
      add_result(results, "weight", loss.terms.front().weight);
      if (const StateDict* memory = last_with_memory(replica.context.state()))
        add_result(results, "memory", memory->tensor("memory"));
      return results;
    };

    expect_results(results_on(device->device()), results_on(c10::kCPU),
                   device->closeness(at::kDouble));
  }
}

}  // namespace treadle::testing
