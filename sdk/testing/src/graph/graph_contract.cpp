#include <treadle/testing/graph/graph_contract.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <treadle/base/config.h>
#include <treadle/core/components/plugin_registry.h>
#include <treadle/core/data/data_spec.h>
#include <treadle/core/model/graph_builder.h>
#include <treadle/graph/flow_builder.h>
#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/gradient_check.h>
#include <treadle/testing/support/tensor_comparison.h>
#include <treadle/testing/support/test_device.h>

#include "claim.h"

namespace treadle::testing {
namespace {

/// What the claims share.
class GraphClaims : public ::testing::WithParamInterface<GraphCase> {
 protected:
  static constexpr std::int64_t kRows = 8;

  static LayerSpec spec(at::ScalarType dtype = at::kDouble, std::int64_t output_width = 0) {
    LayerSpec spec;
    spec.dtype = dtype;
    spec.outputs = {
        {"output", output_sizes(output_width > 0 ? output_width : GetParam().output_width)}};
    for (std::size_t i = 0; i < GetParam().inputs.size(); ++i) {
      const std::vector<std::int64_t>& shape = GetParam().inputs[i];
      std::vector<std::int64_t> sizes{TensorSpec::kVaries};
      sizes.insert(sizes.end(), shape.begin(), shape.end());
      spec.inputs.emplace_back(std::move(sizes), dtype_of(role_of(i), dtype));
      if (role_of(i) == Role::kTokens || role_of(i) == Role::kCategories)
        spec.inputs.back().vocabulary = {GetParam().vocabulary};
    }
    return spec;
  }

  static std::vector<std::int64_t> output_sizes(std::int64_t width) {
    std::vector<std::int64_t> sizes = GetParam().output_positions;
    sizes.push_back(width);
    return sizes;
  }

  static Role role_of(std::size_t input) {
    return input < GetParam().roles.size() ? GetParam().roles[input] : Role::kFeatures;
  }

  static at::ScalarType dtype_of(Role role, at::ScalarType of_numbers) {
    if (role == Role::kFeatures || role == Role::kImage)
      return of_numbers;
    return role == Role::kMask ? at::kBool : at::kLong;
  }

  static const PluginRegistry& components() { return GetParam().components().get(); }

  std::shared_ptr<graph::Graph> network(std::uint64_t seed, const LayerSpec& spec) const {
    const TaskRandom random(seed);
    return graph::read_steps(Config(), builder_->build(spec), "", components()).build(spec);
  }
  std::shared_ptr<graph::Graph> network(std::uint64_t seed = 1) const {
    return network(seed, spec());
  }

  static std::vector<at::Tensor> random_inputs(std::int64_t rows = kRows,
                                               at::ScalarType dtype = at::kDouble) {
    const TaskRandom random(99);
    std::vector<at::Tensor> inputs;
    const LayerSpec asked = spec(dtype);
    for (std::size_t i = 0; i < asked.inputs.size(); ++i) {
      std::vector<std::int64_t> sizes = asked.inputs[i].sizes;
      sizes[0] = rows;
      inputs.push_back(random_input(role_of(i), sizes, dtype));
    }
    return inputs;
  }

  static at::Tensor random_input(Role role, const std::vector<std::int64_t>& sizes,
                                 at::ScalarType dtype) {
    const at::TensorOptions indices(at::kLong);
    switch (role) {
      case Role::kFeatures:
      case Role::kImage:
        return at::randn(sizes, dtype);
      case Role::kLengths:
        return at::randint(1, GetParam().inputs[0][0] + 1, sizes, indices);
      case Role::kMask:
        return at::randint(2, sizes, indices).to(at::kBool);
      default:
        return at::randint(GetParam().vocabulary, sizes, indices);
    }
  }

  static at::Tensor run(const graph::Graph& network, const std::vector<at::Tensor>& inputs,
                        std::uint64_t seed = 1) {
    const TaskRandom random(seed);
    graph::GraphState state(network);
    return network.run(inputs, state).front();
  }

  static void expect_same_structure(const graph::Graph& first, const graph::Graph& second) {
    const auto same = [](const auto& ours, const auto& theirs) {
      ASSERT_EQ(ours.keys(), theirs.keys());
      for (const auto& item : ours)
        EXPECT_EQ(item.value().sizes(), theirs[item.key()].sizes()) << item.key();
    };
    same(first.named_parameters(), second.named_parameters());
    same(first.named_buffers(), second.named_buffers());
  }

  std::unique_ptr<GraphBuilder> builder_ = GetParam().make();
};

}  // namespace

LINKS_CLAIMS_OF(Graph)

CLAIM(Graph, SaysTheSameStepsEveryTime) {
  const nlohmann::json steps = builder_->build(spec());
  builder_->build(spec(at::kDouble, GetParam().output_width + 1));

  EXPECT_EQ(builder_->build(spec()), steps) << "the same builder, after another network";
  EXPECT_EQ(GetParam().make()->build(spec()), steps) << "another builder";
}

// A network is trained in one dtype and may be used in another.
CLAIM(Graph, SaysTheSameStepsForEveryDtype) {
  EXPECT_EQ(builder_->build(spec(at::kFloat)), builder_->build(spec(at::kDouble)));
}

CLAIM(Graph, SaysWhatADocumentCanSay) {
  const nlohmann::json steps = builder_->build(spec());

  EXPECT_EQ(nlohmann::json::parse(steps.dump()), steps);
  for (const nlohmann::json& step : steps) {
    const bool names_a_layer = step.is_string() || (step.is_object() && step.contains("use"));
    EXPECT_TRUE(names_a_layer) << step;
  }
}

CLAIM(Graph, BuildsANetworkForWhatItIsAsked) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const auto built = network(1, spec(dtype));
    for (const auto& parameter : built->named_parameters())
      EXPECT_EQ(parameter.value().scalar_type(), dtype) << parameter.key();
    built->eval();
    for (const std::int64_t rows : {1, 4}) {
      const at::Tensor given = run(*built, random_inputs(rows, dtype));
      EXPECT_EQ(given.scalar_type(), dtype);
      ASSERT_GT(given.dim(), 0);
      EXPECT_EQ(given.size(0), rows);
      if (GetParam().is_whole) {
        std::vector<std::int64_t> sizes = output_sizes(GetParam().output_width);
        sizes.insert(sizes.begin(), rows);
        EXPECT_EQ(given.sizes(), sizes);
      }
    }
  }
}

CLAIM(Graph, FollowsTheLoss) {
  if (!GetParam().is_whole)
    return;
  const std::int64_t width = GetParam().output_width + 2;
  const auto built = network(1, spec(at::kDouble, width));
  built->eval();

  EXPECT_EQ(run(*built, random_inputs()).size(-1), width);
}

CLAIM(Graph, NetworksHaveOneStructureAndTheTasksRandomStream) {
  const auto one = network(1);
  const auto same = network(1);
  const auto other = network(2);

  expect_same_structure(*one, *other);
  EXPECT_TRUE(same_bits(one->parameters(), same->parameters()));
}

// What was read from the steps and written again is the same network: it can be saved and shown.
CLAIM(Graph, NetworksCanBeWrittenDown) {
  const TaskRandom random(1);
  const graph::FlowBuilder read =
      graph::read_steps(Config(), builder_->build(spec()), "", components());
  const Config written(graph::write_flow(read));

  expect_same_structure(*graph::read_whole_flow(written, components()).build(spec()), *network());
}

CLAIM(Graph, NetworksAreAPartOfOthers) {
  graph::FlowBuilder flow;
  std::vector<std::string> further;
  for (std::size_t i = 1; i < GetParam().inputs.size(); ++i)
    further.push_back("given_" + std::to_string(i));
  if (!further.empty())
    flow.input(further);
  flow.through(graph::built(GetParam().make(), "tested", nlohmann::json::object(), components()));
  if (!further.empty())
    flow.using_(further);
  const TaskRandom random(1);
  const auto around = flow.build(spec());
  const auto alone = network(1);
  around->eval();
  alone->eval();

  EXPECT_TRUE(at::equal(run(*around, random_inputs()), run(*alone, random_inputs())));
}

CLAIM(Graph, GradientsAreTheSlopesOfTheResult) {
  const auto built = network();
  const auto inputs = random_inputs(4);
  std::vector<Differentiated> differentiated = parameters_of(*built);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_floating_point())
      differentiated.push_back({"input " + std::to_string(i), inputs[i]});
  }
  built->eval();

  EXPECT_TRUE(gradients_match([&] { return weighted_sum({run(*built, inputs)}); }, differentiated,
                              {.most_elements = 6}));
}

CLAIM(Graph, EveryParameterGetsAGradient) {
  const auto built = network();
  ASSERT_EQ(!built->parameters().empty(), GetParam().has_parameters);
  if (!GetParam().has_parameters)
    return;

  run(*built, random_inputs()).square().sum().backward();

  for (const auto& parameter : built->named_parameters())
    EXPECT_TRUE(parameter.value().grad().defined()) << parameter.key();
}

// Node by node or as a plan, branches one by one or at once: wherever a network carries a state
// through time, gradients end in the same places.
CLAIM(Graph, TruncatedBpttAreTheSameOnEveryWay) {
  if (!GetParam().has_parameters)
    return;
  const auto built = network();
  const auto seen_on = [&](graph::Execution execution, graph::Branches branches, bool one_step) {
    built->set_execution(execution);
    built->set_branches(branches);
    built->zero_grad();
    const TaskRandom random(1);
    ForwardContext context;
    context.set_truncated_bptt(one_step);
    Outputs outputs(1);
    built->forward(random_inputs(), outputs, context);
    outputs[0].square().sum().backward();
    std::vector<at::Tensor> seen{outputs[0].detach()};
    for (const at::Tensor& parameter : built->parameters()) {
      const at::Tensor& gradient = parameter.grad();
      seen.push_back(gradient.defined() ? gradient.clone() : at::zeros_like(parameter));
    }
    return seen;
  };
  using graph::Branches;
  using graph::Execution;
  const auto all_of_time = seen_on(Execution::kDynamic, Branches::kSequential, false);
  const auto one_step = seen_on(Execution::kDynamic, Branches::kSequential, true);
  EXPECT_TRUE(values_match(one_step[0], all_of_time[0],
                           {.relative = 1e-10, .absolute = 1e-12}));  // in float64

  for (const Execution execution : {Execution::kDynamic, Execution::kCompiled}) {
    for (const Branches branches : {Branches::kSequential, Branches::kParallel}) {
      const std::string way =
          std::string(execution == Execution::kCompiled ? "compiled" : "dynamic") +
          (branches == Branches::kParallel ? ", branches at once" : ", branches one by one");
      EXPECT_TRUE(same_bits(seen_on(execution, branches, false), all_of_time)) << way;
      EXPECT_TRUE(same_bits(seen_on(execution, branches, true), one_step))
          << way << ": what asks LayerContext::truncates_bptt() in forward() asks "
          << "PlanBuilder::truncates_bptt() in lower()";
    }
  }
}

CLAIM(Graph, NetworksLearn) {
  if (!GetParam().has_parameters)
    return;
  const auto built = network(1, spec(at::kFloat));
  const auto inputs = random_inputs(kRows, at::kFloat);
  const TaskRandom random(5);
  const at::Tensor targets = at::randn(run(*built, inputs).sizes(), at::kFloat);
  const auto loss = [&] { return run(*built, inputs).sub(targets).square().mean(); };
  torch::optim::Adam adam(built->parameters(), torch::optim::AdamOptions(0.01));

  const double before = loss().item<double>();
  for (int step = 0; step < 50; ++step) {
    adam.zero_grad();
    loss().backward();
    adam.step();
  }

  EXPECT_LT(loss().item<double>(), before);
}

CLAIM(Graph, SeveralThreadsMayBuildAtOnce) {
  const nlohmann::json expected = builder_->build(spec());
  constexpr std::size_t kThreads = 4;
  std::vector<nlohmann::json> results(kThreads);

  const auto errors = at_once(kThreads, [&](std::size_t thread) {
    for (int repeat = 0; repeat < 20; ++repeat)
      results[thread] = builder_->build(spec());
  });

  EXPECT_EQ(errors, kNoErrors);
  for (const nlohmann::json& result : results)
    EXPECT_EQ(result, expected);
}

CLAIM(Graph, ForwardAndBackwardAgreeOnADevice) {
  const TestDevice* const device = TestDevice::chosen();
  if (device == nullptr)
    GTEST_SKIP() << TestDevice::kNone;
  for (const graph::Execution execution :
       {graph::Execution::kDynamic, graph::Execution::kCompiled}) {
    SCOPED_TRACE(execution == graph::Execution::kCompiled ? "compiled" : "dynamic");
    const auto passed = [&](c10::Device where) {
      const auto built = network();
      built->set_execution(execution);
      built->train(device->draws_as_a_cpu());
      const auto forward = [&](const std::vector<at::Tensor>& inputs) {
        ForwardContext context;
        Outputs outputs(1);
        built->forward(inputs, outputs, context);
        return outputs;
      };
      return passed_on(where, *built, random_inputs(), forward, /*has_slopes=*/true);
    };

    constexpr Closeness kRounded{.relative = 1e-9, .absolute = 1e-12};
    expect_results(passed(device->device()), passed(c10::kCPU),
                   GetParam().is_recurrent ? kRounded : device->closeness(at::kDouble));
  }
}

}  // namespace treadle::testing
