#include <treadle/core/training/parameter_arena.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <treadle/base/error.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/optimizer_slots.h>

namespace treadle {
namespace {

struct TwoLayers : torch::nn::Module {
  TwoLayers() {
    first = register_module("first", torch::nn::Linear(3, 5));
    second = register_module("second", torch::nn::Linear(5, 2));
  }
  at::Tensor forward(const at::Tensor& x) { return second(first(x).relu()); }
  torch::nn::Linear first{nullptr};
  torch::nn::Linear second{nullptr};
};

TEST(ParameterArena, KeepsValuesNamesAndTheModuleWorking) {
  TwoLayers module;
  const at::Tensor x = at::randn({4, 3});
  const at::Tensor before = module.forward(x);
  const at::Tensor weight = module.first->weight.detach().clone();

  const ParameterArena arena(module);

  EXPECT_TRUE(at::equal(before, module.forward(x)));
  ASSERT_EQ(arena.segments().size(), 4u);
  EXPECT_EQ(arena.segments()[0].name, "first.weight");
  EXPECT_TRUE(at::equal(arena.parameter(arena.segments()[0]), weight));
  EXPECT_EQ(arena.parameter_count(), 3 * 5 + 5 + 5 * 2 + 2);
}

TEST(ParameterArena, OfAModuleWithoutParametersIsEmpty) {
  torch::nn::Module nothing;
  const ParameterArena arena(nothing);
  EXPECT_TRUE(arena.segments().empty());
  EXPECT_EQ(arena.size(), 0);
}

TEST(ParameterArena, PutsEverySegmentOnA64ByteBoundaryWithZeroPadding) {
  TwoLayers module;
  ParameterArena arena(module);

  module.forward(at::ones({1, 3})).sum().backward();

  const auto address = reinterpret_cast<std::uintptr_t>(arena.parameters().data_ptr());
  EXPECT_EQ(address % 64, 0u);
  double inside = 0;
  for (const Segment& segment : arena.segments()) {
    EXPECT_EQ(segment.offset * 4 % 64, 0) << segment.name;
    inside += arena.parameter(segment).abs().sum().item<double>();
  }
  EXPECT_NEAR(arena.parameters().abs().sum().item<double>(), inside, 1e-5);
}

TEST(ParameterArena, SeesAWriteToTheFlatVectorInTheModule) {
  TwoLayers module;
  const ParameterArena arena(module);

  arena.parameters().fill_(0.5);

  EXPECT_EQ(module.second->bias[1].item<float>(), 0.5f);
}

TEST(ParameterArena, CollectsGradientsInPlace) {
  TwoLayers module;
  TwoLayers twin;
  for (const auto& item : module.named_parameters()) {
    torch::NoGradGuard no_gradients;
    twin.named_parameters()[item.key()].copy_(item.value());
  }
  const at::Tensor x = at::randn({4, 3});
  ParameterArena arena(module);

  for (int step = 0; step < 2; ++step) {
    arena.zero_gradients();
    module.forward(x).sum().backward();
    arena.collect();
  }
  twin.forward(x).sum().backward();

  for (const Segment& segment : arena.segments()) {
    EXPECT_TRUE(segment.touched);
    EXPECT_TRUE(at::equal(arena.gradient(segment), twin.named_parameters()[segment.name].grad()))
        << segment.name;
  }
}

TEST(ParameterArena, KnowsWhichSegmentsTheBackwardTouched) {
  TwoLayers module;
  ParameterArena arena(module);
  arena.zero_gradients();

  module.first(at::ones({1, 3})).sum().backward();
  arena.collect();

  EXPECT_TRUE(arena.segments()[0].active());
  EXPECT_FALSE(arena.segments()[2].touched);
  EXPECT_EQ(arena.segments()[2].name, "second.weight");
}

TEST(ParameterArena, LeavesAFrozenParameterInactive) {
  TwoLayers module;
  module.first->weight.set_requires_grad(false);
  ParameterArena arena(module);
  arena.zero_gradients();

  module.forward(at::ones({1, 3})).sum().backward();
  arena.collect();

  EXPECT_FALSE(arena.segments()[0].active());
  EXPECT_TRUE(arena.segments()[1].active());
}

/// One weight under two names, as in a language model whose output layer is its embedding.
struct Tied : torch::nn::Module {
  Tied() {
    encoder = register_parameter("encoder", at::ones({4, 4}));
    decoder = register_parameter("decoder", encoder);
  }
  at::Tensor encoder;
  at::Tensor decoder;
};

TEST(ParameterArena, HoldsATiedParameterOnce) {
  Tied module;
  ParameterArena arena(module);
  arena.zero_gradients();

  (module.encoder * 2 + module.decoder * 3).sum().backward();
  arena.collect();

  ASSERT_EQ(arena.segments().size(), 1u);
  EXPECT_EQ(arena.segments()[0].name, "encoder");
  EXPECT_EQ(arena.gradient(arena.segments()[0])[0][0].item<float>(), 5.0f);
}

TEST(ParameterArena, AdoptsAGradientThatWasPutElsewhere) {
  TwoLayers module;
  ParameterArena arena(module);
  arena.zero_gradients();

  module.zero_grad();  // sets gradients to none: backward will make new tensors
  module.second->bias.mutable_grad() = at::ones({2});
  arena.collect();

  EXPECT_TRUE(arena.segments()[3].touched);
  EXPECT_TRUE(at::equal(arena.gradient(arena.segments()[3]), at::ones({2})));
}

TEST(ParameterArena, ReportsAParameterThatMovedAway) {
  TwoLayers module;
  ParameterArena arena(module);
  arena.zero_gradients();
  module.first->bias.set_data(at::ones({5}));

  try {
    arena.collect();
    FAIL() << "collect() did not notice";
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("parameter \"first.bias\" was moved out of the "
                                                   "parameter arena during the step"));
  }
}

TEST(ParameterArena, KeepsMastersOfParametersOfSixteenBits) {
  TwoLayers module;
  module.to(at::kBFloat16);
  const at::Tensor weight = module.first->weight.detach().clone();

  ParameterArena arena(module);

  EXPECT_TRUE(arena.has_masters());
  EXPECT_EQ(arena.dtype(), at::kFloat);
  EXPECT_EQ(module.first->weight.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(module.first->weight.detach(), weight));
  EXPECT_TRUE(at::equal(arena.parameter(arena.segments()[0]), weight.to(at::kFloat)));
  for (const Segment& segment : arena.segments())
    EXPECT_EQ(segment.offset * 2 % 64, 0);
  EXPECT_EQ(arena.bytes(), arena.size() * (4 + 4 + 2 + 2));
}

// Between 1 and 2 bfloat16 has steps of 1/128.
TEST(ParameterArena, RoundsMastersIntoTheModuleWhenAsked) {
  TwoLayers module;
  module.to(at::kBFloat16);
  ParameterArena arena(module);
  arena.parameters().fill_(1);
  for (int i = 0; i < 100; ++i) {
    arena.parameters().add_(0.001F);
    arena.write_back();
  }

  EXPECT_NEAR(arena.parameters()[0].item<double>(), 1.1, 1e-5);
  EXPECT_EQ(module.second->bias[1].item<double>(), 1 + 13.0 / 128);
}

TEST(ParameterArena, WidensTheGradientsOfSixteenBits) {
  TwoLayers module;
  module.to(at::kBFloat16);
  ParameterArena arena(module);
  arena.zero_gradients();

  module.forward(at::ones({4, 3}, at::kBFloat16)).sum().backward();
  arena.collect();

  for (const Segment& segment : arena.segments()) {
    EXPECT_TRUE(segment.touched);
    EXPECT_TRUE(at::equal(arena.gradient(segment),
                          module.named_parameters()[segment.name].grad().to(at::kFloat)));
  }
  EXPECT_EQ(arena.gradient(arena.segments()[3])[0].item<double>(), 4);
}

TEST(ParameterArena, WhatAModuleWritesIntoAParameterOfSixteenBitsBecomesTheMaster) {
  TwoLayers module;
  module.to(at::kBFloat16);
  ParameterArena arena(module);
  arena.parameters().fill_(1.001F);
  arena.write_back();
  arena.zero_gradients();
  {
    const at::NoGradGuard no_gradients;
    module.first->bias.fill_(3);
  }

  arena.collect();

  EXPECT_EQ(arena.parameter(arena.segments()[1])[0].item<float>(), 3.0F);
  // The others are more than the module knows.
  EXPECT_EQ(arena.parameter(arena.segments()[0])[0][0].item<float>(), 1.001F);
}

TEST(ParameterArena, RefusesParametersThatAreNoFloatingPointNumbers) {
  torch::nn::Module module;
  module.register_parameter("counts", at::ones({2}, at::kLong), /*requires_grad=*/false);

  try {
    const ParameterArena arena(module);
    FAIL() << "the arena took whole numbers";
  } catch (const TrainingError& error) {
    EXPECT_STREQ(error.what(),
                 "parameter \"counts\" has dtype Long; expected float32, float64, "
                 "bfloat16 or float16");
  }
}

TEST(ParameterArena, RefusesMixedTypes) {
  TwoLayers module;
  module.second->to(at::kDouble);

  try {
    const ParameterArena arena(module);
    FAIL() << "the arena took two dtypes";
  } catch (const TrainingError& error) {
    EXPECT_STREQ(error.what(),
                 "parameter \"second.weight\" is Double on cpu, but \"first.weight\" is Float on "
                 "cpu; one model has one dtype and device");
  }
}

// --- roles --------------------------------------------------------------------------------------

/// A table beside a matrix, both of which it knows.
struct TableAndStack : torch::nn::Module, NamesParameterRoles {
  TableAndStack() {
    table = register_parameter("table", at::ones({4, 3}));
    stack = register_parameter("stack", at::ones({2, 3, 3}));
    matrix = register_parameter("matrix", at::ones({3, 3}));
  }
  Roles parameter_roles() const override {
    return {{table, ParameterRole::kTable}, {stack, ParameterRole::kStack}};
  }
  at::Tensor table;
  at::Tensor stack;
  at::Tensor matrix;
};

std::map<std::string, ParameterRole> roles_by_name(const torch::nn::Module& module) {
  std::map<std::string, ParameterRole> roles;
  for (const Segment& segment : segments_of(module))
    roles[segment.name] = segment.role;
  return roles;
}

using RolesByName = std::map<std::string, ParameterRole>;

TEST(ParameterRoles, AreThoseThatAModuleNames) {
  TableAndStack module;
  const RolesByName expected{{"table", ParameterRole::kTable},
                             {"stack", ParameterRole::kStack},
                             {"matrix", ParameterRole::kHidden}};

  EXPECT_EQ(roles_by_name(module), expected);
  const ParameterArena arena(module);
  for (const Segment& segment : arena.segments())
    EXPECT_EQ(segment.role, expected.at(segment.name));
}

/// Names all within it outputs.
struct AllOutputs : torch::nn::Module, NamesParameterRoles {
  AllOutputs() { inner = register_module("inner", std::make_shared<TableAndStack>()); }
  Roles parameter_roles() const override {
    return {{inner->table, ParameterRole::kOutput}, {inner->stack, ParameterRole::kOutput}};
  }
  std::shared_ptr<TableAndStack> inner;
};

TEST(ParameterRoles, ATableStaysOneWhateverIsAroundIt) {
  EXPECT_EQ(roles_by_name(AllOutputs()), (RolesByName{{"inner.table", ParameterRole::kTable},
                                                      {"inner.stack", ParameterRole::kOutput},
                                                      {"inner.matrix", ParameterRole::kHidden}}));
}

struct TiedTwice : torch::nn::Module {
  TiedTwice() {
    embedding = register_module("embedding", torch::nn::Embedding(4, 3));
    first = register_module("first", torch::nn::Linear(3, 3));
    register_parameter("head", embedding->weight);
    register_parameter("again", first->weight);
  }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear first{nullptr};
};

TEST(ParameterRoles, AWeightOfSeveralNamesIsTiedUnlessItIsATable) {
  const RolesByName roles = roles_by_name(TiedTwice());

  EXPECT_EQ(roles.size(), 3u);
  for (const auto& [name, role] : roles) {
    if (name == "first.bias")
      EXPECT_EQ(role, ParameterRole::kHidden);
    else if (name == "head" || name == "embedding.weight")
      EXPECT_EQ(role, ParameterRole::kTable);
    else
      EXPECT_EQ(role, ParameterRole::kTied) << name;
  }
}

/// Names no role.
struct Nameless : Model {
  Nameless() {
    register_module("first", torch::nn::Linear(3, 4));
    register_module("last", torch::nn::Linear(4, 2));
    register_module("embedding", torch::nn::Embedding(4, 3));
  }
  void forward(const Inputs&, Outputs&, ForwardContext&) override {}
};

TEST(ParameterRoles, TheLastMatrixOfAModelThatNamesNoOutputIsOne) {
  const RolesByName roles = roles_by_name(Nameless());

  EXPECT_EQ(roles.at("first.weight"), ParameterRole::kHidden);
  EXPECT_EQ(roles.at("last.weight"), ParameterRole::kOutput);
  EXPECT_EQ(roles.at("embedding.weight"), ParameterRole::kTable);
}

// --- state of any shape -------------------------------------------------------------------------

SlotSpec rows_and_one() {
  return {"rows", SlotSpec::Kind::kTensor, 3, SlotSpec::Storage::kFull,
          [](const Segment& segment) -> std::vector<std::int64_t> {
            if (segment.shape.size() < 2)
              return {0};
            return {segment.shape.front(), 1};
          }};
}

TEST(OptimizerSlots, ATensorHasTheShapeThatItsSegmentGives) {
  TwoLayers module;
  const ParameterArena arena(module);

  OptimizerSlots slots({rows_and_one()}, arena);

  EXPECT_EQ(slots.tensor_of(0, 0).sizes(), (std::vector<std::int64_t>{5, 1}));
  EXPECT_EQ(slots.tensor_of(0, 1).numel(), 0);
  EXPECT_EQ(slots.tensor_of(0, 2).sizes(), (std::vector<std::int64_t>{2, 1}));
  EXPECT_TRUE(slots.tensor_of(0, 0).eq(3).all().item<bool>());
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(slots.place(0, i).offset * 4 % 64, 0);
  slots.tensor_of(0, 2).fill_(7);
  OptimizerSlots other({rows_and_one()}, arena);
  other.load_state(slots.state().snapshot());
  EXPECT_TRUE(other.tensor(0).equal(slots.tensor(0)));
}

TEST(OptimizerSlots, TakeMemoryForMembersAlone) {
  TwoLayers module;
  const ParameterArena arena(module);

  const OptimizerSlots slots({rows_and_one()}, arena, {false, false, true, true});

  EXPECT_EQ(slots.place(0, 0).size, 0);
  EXPECT_EQ(slots.place(0, 2).size, 2);
  EXPECT_EQ(slots.tensor(0).numel(), 16);
}

}  // namespace
}  // namespace treadle
