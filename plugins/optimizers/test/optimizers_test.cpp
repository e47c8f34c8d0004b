#include <cmath>

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/reference.h>
#include <treadle/testing/training/optimizer_contract.h>

#include "layers.h"

namespace treadle::testing {
namespace {

const PluginUnderTest& plugin() {
  static const PluginUnderTest kPlugin(TREADLE_PLUGIN_FOLDER);
  return kPlugin;
}

std::unique_ptr<Optimizer> make(std::string_view name, nlohmann::json parameters = {}) {
  return plugin().make<Optimizer>(name, std::move(parameters));
}

OptimizerCase case_of(std::string name, std::string component, nlohmann::json parameters = {}) {
  return {std::move(name),
          [component, parameters] { return plugin().make<Optimizer>(component, parameters); }};
}

OptimizerCase decaying(OptimizerCase one) {
  one.decays_weights = true;
  return one;
}

/// Its slots have 8 bits.
OptimizerCase rounding(OptimizerCase one) {
  one.precision_distance = 0.02;
  return one;
}

/// Its numbers are sensitive to rounding.
OptimizerCase sensitive(double distance, OptimizerCase one) {
  one.precision_distance = distance;
  return one;
}

OptimizerCase at_rate(double rate, OptimizerCase one) {
  one.learning_rate = rate;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, OptimizerContract,
    ::testing::Values(
        case_of("Sgd", "sgd"), decaying(case_of("SgdWithDecay", "sgd", {{"weight_decay", 0.1}})),
        decaying(case_of("Momentum", "sgd", {{"momentum", 0.9}, {"weight_decay", 0.1}})),
        case_of("DampedMomentum", "sgd", {{"momentum", 0.9}, {"dampening", 0.5}}),
        case_of("Nesterov", "sgd", {{"momentum", 0.9}, {"nesterov", true}}),
        case_of("Adam", "adam"),
        decaying(case_of("AdamWithDecay", "adam", {{"weight_decay", 0.1}})),
        decaying(case_of("AdamW", "adamw")), rounding(decaying(case_of("AdamW8bit", "adamw8bit"))),
        case_of("RmsProp", "rmsprop"),
        decaying(case_of("RmsPropWithDecay", "rmsprop", {{"weight_decay", 0.1}, {"eps", 1}})),
        case_of("RmsPropInside", "rmsprop", {{"eps_inside_root", true}}),
        at_rate(0.01, case_of("RollingRmsProp", "rmsprop", {{"momentum", 0.9}})),
        at_rate(0.01, case_of("CenteredRmsProp", "rmsprop", {{"centered", true}})),
        at_rate(0.01, case_of("RollingCenteredRmsProp", "rmsprop",
                              {{"centered", true}, {"momentum", 0.5}, {"eps_inside_root", true}})),
        at_rate(0.5, case_of("Adagrad", "adagrad")),
        at_rate(0.5, decaying(case_of("AdagradWithDecay", "adagrad",
                                      {{"weight_decay", 0.1}, {"initial_accumulator_value", 2}}))),
        at_rate(0.5, case_of("AgeingAdagrad", "adagrad",
                             {{"learning_rate_decay", 0.001}, {"initial_accumulator_value", 2}})),
        case_of("Lion", "lion"),
        decaying(case_of("LionWithDecay", "lion", {{"weight_decay", 0.1}})),
        case_of("LambWithoutDecay", "lamb", {{"weight_decay", 0}}),
        decaying(case_of("Lamb", "lamb")),
        sensitive(0.01, case_of("Muon", "muon", {{"adamw_learning_rate", 0.02}})),
        sensitive(0.01, decaying(case_of("MuonWithDecay", "muon",
                                         {{"adamw_learning_rate", 0.02},
                                          {"weight_decay", 0.1},
                                          {"adamw_weight_decay", 0.1},
                                          {"cautious_weight_decay", true},
                                          {"nesterov", false}}))),
        sensitive(1, case_of("Soap", "soap")),
        sensitive(1, case_of("SoapOften", "soap", {{"precondition_frequency", 2}})),
        case_of("SoapOfOneSide", "soap", {{"max_precond_dim", 3}}),
        at_rate(0.2, case_of("ScheduleFree", "schedule_free_adamw")),
        at_rate(0.2, decaying(case_of("ScheduleFreeWithDecay", "schedule_free_adamw",
                                      {{"weight_decay", 0.1}, {"warmup_steps", 5}, {"r", 1}}))),
        case_of("Adafactor", "adafactor"),
        decaying(case_of("AdafactorWithDecay", "adafactor", {{"weight_decay", 0.1}}))),
    CaseName());

// --- the same numbers as libtorch's optimizers -------------------------------------------------

constexpr double kRate = 0.01;

template <typename Torch, typename Options>
::testing::AssertionResult agrees(std::string_view name, const nlohmann::json& parameters,
                                  const Options& options) {
  return steps_like_torch(
      *make(name, parameters),
      [&](const std::vector<at::Tensor>& theirs) { return Torch(theirs, options); },
      {.learning_rate = kRate});
}

TEST(Sgd, StepsLikeTorchs) {
  using torch::optim::SGD;
  using Options = torch::optim::SGDOptions;

  EXPECT_TRUE(agrees<SGD>("sgd", {}, Options(kRate)));
  EXPECT_TRUE(agrees<SGD>("sgd", {{"weight_decay", 0.2}}, Options(kRate).weight_decay(0.2)));
  EXPECT_TRUE(agrees<SGD>("sgd", {{"momentum", 0.9}, {"dampening", 0.3}, {"weight_decay", 0.2}},
                          Options(kRate).momentum(0.9).dampening(0.3).weight_decay(0.2)));
  EXPECT_TRUE(agrees<SGD>("sgd", {{"momentum", 0.8}, {"nesterov", true}},
                          Options(kRate).momentum(0.8).nesterov(true)));
}

TEST(Adam, StepsLikeTorchs) {
  using torch::optim::Adam;
  using Options = torch::optim::AdamOptions;

  EXPECT_TRUE(agrees<Adam>("adam", {}, Options(kRate)));
  EXPECT_TRUE(agrees<Adam>("adam", {{"betas", {0.8, 0.95}}, {"eps", 1e-4}, {"weight_decay", 0.2}},
                           Options(kRate).betas({0.8, 0.95}).eps(1e-4).weight_decay(0.2)));
}

TEST(AdamW, StepsLikeTorchs) {
  using torch::optim::AdamW;
  using Options = torch::optim::AdamWOptions;

  EXPECT_TRUE(agrees<AdamW>("adamw", {}, Options(kRate)));
  EXPECT_TRUE(agrees<AdamW>("adamw", {{"betas", {0.8, 0.95}}, {"eps", 1e-4}, {"weight_decay", 0.3}},
                            Options(kRate).betas({0.8, 0.95}).eps(1e-4).weight_decay(0.3)));
}

TEST(RmsProp, StepsLikeTorchs) {
  using torch::optim::RMSprop;
  using Options = torch::optim::RMSpropOptions;

  EXPECT_TRUE(agrees<RMSprop>("rmsprop", {}, Options(kRate)));
  EXPECT_TRUE(agrees<RMSprop>("rmsprop", {{"alpha", 0.9}, {"eps", 1e-3}, {"weight_decay", 0.2}},
                              Options(kRate).alpha(0.9).eps(1e-3).weight_decay(0.2)));
  EXPECT_TRUE(agrees<RMSprop>("rmsprop", {{"momentum", 0.8}}, Options(kRate).momentum(0.8)));
  EXPECT_TRUE(agrees<RMSprop>("rmsprop", {{"centered", true}}, Options(kRate).centered(true)));
  EXPECT_TRUE(agrees<RMSprop>("rmsprop", {{"centered", true}, {"momentum", 0.8}},
                              Options(kRate).centered(true).momentum(0.8)));
}

TEST(Adagrad, StepsLikeTorchs) {
  using Torch = torch::optim::Adagrad;
  using Options = torch::optim::AdagradOptions;

  EXPECT_TRUE(agrees<Torch>("adagrad", {}, Options(kRate)));
  EXPECT_TRUE(agrees<Torch>(
      "adagrad",
      {{"learning_rate_decay", 0.01},
       {"initial_accumulator_value", 0.5},
       {"eps", 1e-3},
       {"weight_decay", 0.2}},
      Options(kRate).lr_decay(0.01).initial_accumulator_value(0.5).eps(1e-3).weight_decay(0.2)));
}

// --- steps computed by hand --------------------------------------------------------------------

// One parameter of 2 in the third segment, and the gradient it gets.
double after(const Optimizer& optimizer, std::initializer_list<double> gradients) {
  TrainedParameters trained(optimizer);
  trained.arena().parameter(trained.arena().segments()[2]).fill_(2);
  for (const double gradient : gradients)
    trained.step({{}, {}, at::full({1}, gradient, at::kDouble)}, 0.5);
  return trained.value(2).item<double>();
}

TEST(Sgd, GoesDownTheGradient) {
  EXPECT_EQ(after(*make("sgd"), {3}), 2 - 0.5 * 3);
  EXPECT_EQ(after(*make("sgd", {{"weight_decay", 0.25}}), {3}), 2 - 0.5 * (3 + 0.25 * 2));
}

TEST(Sgd, MomentumStartsWithTheWholeFirstGradient) {
  // b: 3, then 0.5 * 3 + 0.75 * 1 = 2.25
  EXPECT_EQ(after(*make("sgd", {{"momentum", 0.5}, {"dampening", 0.25}}), {3, 1}),
            2 - 0.5 * 3 - 0.5 * 2.25);
}

TEST(Sgd, NesterovLooksAhead) {
  // b: 3, then 2.5; directions: 3 + 0.5 * 3 = 4.5, then 1 + 0.5 * 2.5 = 2.25
  EXPECT_EQ(after(*make("sgd", {{"momentum", 0.5}, {"nesterov", true}}), {3, 1}),
            2 - 0.5 * 4.5 - 0.5 * 2.25);
}

TEST(Sgd, DampeningNeedsMomentum) {
  try {
    make("sgd", {{"dampening", 0.1}});
    ADD_FAILURE() << "it has no effect";
  } catch (const DocumentError& error) {
    EXPECT_STREQ(error.what(), "/dampening: has no effect without \"momentum\" above 0");
  }
}

TEST(Sgd, NesterovNeedsMomentumWithoutDampening) {
  for (const nlohmann::json& parameters :
       {nlohmann::json{{"nesterov", true}},
        nlohmann::json{{"nesterov", true}, {"momentum", 0.9}, {"dampening", 0.1}}}) {
    try {
      make("sgd", parameters);
      ADD_FAILURE() << parameters;
    } catch (const DocumentError& error) {
      EXPECT_STREQ(error.what(), "/nesterov: needs \"momentum\" above 0 and \"dampening\" 0");
    }
  }
}

TEST(Sgd, RemembersNothingWithoutMomentum) {
  EXPECT_TRUE(make("sgd")->slots().empty());
  EXPECT_EQ(make("sgd", {{"momentum", 0.9}})->slots().size(), 1u);
}

TEST(Adam, TheFirstStepIsTheRateWhateverTheGradient) {
  // Both corrections cancel the betas: m^ = g, sqrt(v^) = |g|.
  EXPECT_NEAR(after(*make("adam", {{"eps", 1e-300}}), {3}), 2 - 0.5, 1e-15);
  EXPECT_NEAR(after(*make("adam", {{"eps", 1e-300}}), {-1e-3}), 2 + 0.5, 1e-15);
  // 3 / (3 + 1)
  EXPECT_NEAR(after(*make("adam", {{"eps", 1}}), {3}), 2 - 0.5 * 0.75, 1e-15);
}

TEST(Adam, DecaysThroughTheGradient) {
  // g = 3 + 0.5 * 2 = 4; 4 / (4 + 1)
  EXPECT_NEAR(after(*make("adam", {{"eps", 1}, {"weight_decay", 0.5}}), {3}), 2 - 0.5 * 0.8, 1e-15);
}

// Gradients at random, so that both walk at random, and every rounding stays: more than in a
// training.
TEST(AdamW8bit, StaysCloseToAdamWOverManySteps) {
  const auto full = make("adamw");
  const auto narrow = make("adamw8bit");
  TrainedParameters wide(*full, at::kFloat);
  TrainedParameters close(*narrow, at::kFloat);
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto gradients = TrainedParameters::random_gradients(i, at::kFloat);
    wide.step(gradients, kRate);
    close.step(gradients, kRate);
  }
  TrainedParameters start(*full, at::kFloat);
  for (std::size_t i = 0; i < wide.count(); ++i) {
    const double moved = (wide.value(i) - start.value(i)).norm().item<double>();
    EXPECT_LT((wide.value(i) - close.value(i)).norm().item<double>(), 0.2 * moved);
    EXPECT_FALSE(wide.value(i).equal(close.value(i)));
  }
}

TEST(AdamW8bit, TakesAQuarterOfTheMemory) {
  const auto module = std::make_shared<torch::nn::LinearImpl>(512, 512);
  const auto bytes_of = [&](const Optimizer& optimizer) {
    const ParameterArena arena(*module, OptimizerSlots::alignment_of(optimizer.slots()));
    return OptimizerSlots(optimizer.slots(), arena).bytes();
  };
  const std::int64_t full = bytes_of(*make("adamw"));
  const std::int64_t narrow = bytes_of(*make("adamw8bit"));
  EXPECT_LT(static_cast<double>(narrow), 0.26 * static_cast<double>(full));
}

TEST(AdamW, DecaysTheParameterItself) {
  EXPECT_NEAR(after(*make("adamw", {{"eps", 1}, {"weight_decay", 0.5}}), {3}),
              2 * (1 - 0.5 * 0.5) - 0.5 * 0.75, 1e-15);
}

TEST(RmsProp, DividesByTheRootOfTheMeanSquare) {
  // v = 0.25 * 9 = 2.25
  const nlohmann::json outside = {{"alpha", 0.75}, {"eps", 1}};
  EXPECT_EQ(after(*make("rmsprop", outside), {3}), 2 - 0.5 * (3 / (1.5 + 1)));
  const nlohmann::json inside = {{"alpha", 0.75}, {"eps", 1.75}, {"eps_inside_root", true}};
  EXPECT_EQ(after(*make("rmsprop", inside), {3}), 2 - 0.5 * (3 / 2.0));
}

TEST(RmsProp, CenteredTakesTheSquareOfTheMeanOff) {
  // v = 2.25, a = 0.75, v - a^2 + eps = 2.25
  const nlohmann::json centered = {
      {"alpha", 0.75}, {"eps", 0.5625}, {"eps_inside_root", true}, {"centered", true}};
  EXPECT_EQ(after(*make("rmsprop", centered), {3}), 2 - 0.5 * (3 / 1.5));
}

TEST(RmsProp, CenteredStaysFiniteWhenTheGradientNeverChanges) {
  // Where v and a^2 meet, rounding decides which is the larger.
  for (const double gradient : {0.1, 0.3, 1.7, 1e3}) {
    const auto optimizer = make("rmsprop", {{"centered", true}, {"alpha", 0.5}});
    TrainedParameters trained(*optimizer);
    for (int i = 0; i < 200; ++i)
      trained.step({{}, {}, at::full({1}, gradient, at::kDouble)}, 1e-9);
    EXPECT_TRUE(std::isfinite(trained.value(2).item<double>())) << gradient;
  }
}

TEST(RmsProp, MomentumAddsUpWhatWasDivided) {
  // v: 2.25, then 0.75 * 2.25 + 0.25 * 1 = 1.9375
  const double first = 3 / (1.5 + 1);
  const double second = 0.5 * first + 1 / (std::sqrt(1.9375) + 1);
  const nlohmann::json rolling = {{"alpha", 0.75}, {"eps", 1}, {"momentum", 0.5}};
  EXPECT_NEAR(after(*make("rmsprop", rolling), {3, 1}), 2 - 0.5 * first - 0.5 * second, 1e-15);
}

TEST(Adagrad, DividesByTheRootOfTheSumOfSquares) {
  // s: 7 + 9 = 16, then 25; the second rate is 0.5 / (1 + 0.25)
  const nlohmann::json parameters = {
      {"initial_accumulator_value", 7}, {"learning_rate_decay", 0.25}, {"eps", 1}};
  EXPECT_EQ(after(*make("adagrad", parameters), {3}), 2 - 0.5 * (3 / 5.0));
  EXPECT_NEAR(after(*make("adagrad", parameters), {3, 3}), 2 - 0.5 * (3 / 5.0) - 0.4 * (3 / 6.0),
              1e-15);
}

TEST(Lion, GoesByTheSignOfTheMomentumAlone) {
  // c: 1.5, then 0.5 * 0.75 - 0.5 * 1 = -0.125
  const nlohmann::json parameters = {{"betas", {0.5, 0.75}}};
  EXPECT_EQ(after(*make("lion", parameters), {3}), 2 - 0.5);
  EXPECT_EQ(after(*make("lion", parameters), {3e-9}), 2 - 0.5);
  EXPECT_EQ(after(*make("lion", parameters), {3, -1}), 2);
  EXPECT_EQ(after(*make("lion", parameters), {0}), 2);
}

TEST(Lion, DecaysTheParameterItself) {
  EXPECT_EQ(after(*make("lion", {{"weight_decay", 0.25}}), {3}), 2 - 0.5 * (1 + 0.25 * 2));
}

TEST(Lamb, AStepIsAsLongAsItsLayerTimesTheRate) {
  // In the first step Adam's direction is the sign of the gradient: |(3, 4)| = 5, |(1, -1)| =
  // sqrt(2).
  const auto optimizer = make("lamb", {{"eps", 1e-300}, {"weight_decay", 0}});
  Layers layers(*optimizer, {2, 2}, at::tensor({3., 4., 0., 0.}));

  layers.step(at::tensor({5., -1e-3, 2., -3.}), 0.5);

  // The second layer has no length yet: the ratio is 1.
  const double length = 0.5 * 5 / std::sqrt(2.0);
  EXPECT_TRUE(values_match(layers.values(), at::tensor({3 - length, 4 + length, -0.5, 0.5}),
                           {.absolute = 1e-15}));
}

TEST(Lamb, DecayIsPartOfTheDirection) {
  // (1, -1) + 0.5 * (3, 4) = (2.5, 1), of length sqrt(7.25)
  const auto optimizer = make("lamb", {{"eps", 1e-300}, {"weight_decay", 0.5}});
  Layers layers(*optimizer, {2}, at::tensor({3., 4.}));

  layers.step(at::tensor({5., -1e-3}), 0.5);

  const double length = 0.5 * 5 / std::sqrt(7.25);
  EXPECT_TRUE(values_match(layers.values(), at::tensor({3 - 2.5 * length, 4 - length}),
                           {.absolute = 1e-15}));
}

TEST(Optimizers, RememberNoMoreThanTheirRuleNeeds) {
  const auto slots = [](const char* name, const nlohmann::json& parameters) {
    std::vector<std::string> names;
    for (const SlotSpec& slot : make(name, parameters)->slots())
      names.push_back(slot.name);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(slots("rmsprop", {}), (Names{"square_average"}));
  EXPECT_EQ(slots("rmsprop", {{"momentum", 0.9}}), (Names{"square_average", "momentum"}));
  EXPECT_EQ(slots("rmsprop", {{"momentum", 0.9}, {"centered", true}}),
            (Names{"square_average", "gradient_average", "momentum"}));
  EXPECT_EQ(slots("adagrad", {}), (Names{"square_sum"}));
  EXPECT_EQ(slots("lion", {}), (Names{"momentum"}));
  EXPECT_EQ(slots("lamb", {}), (Names{"first_moment", "second_moment"}));
  EXPECT_EQ(slots("muon", {}), (Names{"first_moment", "second_moment"}));
  EXPECT_EQ(slots("adafactor", {}), (Names{"row_variance", "column_variance", "variance"}));
}

// An eps that single precision cannot hold does not become 0: nothing is divided by nothing.
TEST(Optimizers, StandATinyEpsInSinglePrecision) {
  for (const char* name :
       {"adam", "adamw", "rmsprop", "adagrad", "lamb", "soap", "schedule_free_adamw"}) {
    const auto optimizer = make(name, {{"eps", 1e-300}});
    Layers layers(*optimizer, {3}, at::tensor({1.f, 2.f, 3.f}));
    layers.step(at::tensor({0.f, 0.f, 1.f}), 0.01);
    EXPECT_TRUE(layers.arena().parameters().isfinite().all().item<bool>())
        << name << layers.arena().parameters();
  }
}

TEST(Optimizers, HaveDocumentedDefaults) {
  EXPECT_EQ(make("sgd")->learning_rate(), 0.01);
  EXPECT_EQ(make("adam")->learning_rate(), 0.001);
  EXPECT_EQ(make("adamw")->learning_rate(), 0.001);
  EXPECT_EQ(make("rmsprop")->learning_rate(), 0.01);
  EXPECT_EQ(make("adagrad")->learning_rate(), 0.01);
  EXPECT_EQ(make("lion")->learning_rate(), 0.0001);
  EXPECT_EQ(make("lamb")->learning_rate(), 0.001);
  EXPECT_EQ(make("muon")->learning_rate(), 0.02);
  EXPECT_EQ(make("soap")->learning_rate(), 0.003);
  EXPECT_EQ(make("schedule_free_adamw")->learning_rate(), 0.0025);
  EXPECT_EQ(make("adafactor")->learning_rate(), 0.01);
  EXPECT_EQ(plugin().completed("rmsprop").at("eps_inside_root"), false);
  EXPECT_EQ(plugin().completed("adamw").at("weight_decay"), 0.01);
  EXPECT_EQ(plugin().completed("adam").at("weight_decay"), 0);
  EXPECT_EQ(plugin().completed("adam").at("betas"), (nlohmann::json{0.9, 0.999}));
}

TEST(Optimizers, RefuseParametersOutOfRange) {
  EXPECT_THROW(make("sgd", {{"learning_rate", 0}}), DocumentError);
  EXPECT_THROW(make("sgd", {{"momentum", 1}}), DocumentError);
  EXPECT_THROW(make("adam", {{"eps", 0}}), DocumentError);
  EXPECT_THROW(make("adam", {{"betas", {0.9, 1.0}}}), DocumentError);
  EXPECT_THROW(make("adam", {{"betas", {0.9}}}), DocumentError);
  EXPECT_THROW(make("adamw", {{"momentum", 0.9}}), DocumentError);
  EXPECT_THROW(make("rmsprop", {{"alpha", 1}}), DocumentError);
  EXPECT_THROW(make("adagrad", {{"initial_accumulator_value", -1}}), DocumentError);
  EXPECT_THROW(make("lion", {{"eps", 1e-8}}), DocumentError);
  EXPECT_THROW(make("lamb", {{"eps", 0}}), DocumentError);
  EXPECT_THROW(make("muon", {{"adjust_lr_fn", "spectral"}}), DocumentError);
  EXPECT_THROW(make("soap", {{"precondition_frequency", 0}}), DocumentError);
  EXPECT_THROW(make("schedule_free_adamw", {{"betas", {0, 0.999}}}), DocumentError);
  EXPECT_THROW(make("adafactor", {{"beta2_decay", 0.5}}), DocumentError);
}

}  // namespace
}  // namespace treadle::testing
