#include <cmath>

#include <ATen/ops/full.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <treadle/testing/optimizer_contract.h>
#include <treadle/testing/plugin_under_test.h>
#include <treadle/testing/reference.h>

#include "flat_rules.h"

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

INSTANTIATE_TEST_SUITE_P(
    Optimizers, OptimizerContract,
    ::testing::Values(
        case_of("Sgd", "sgd"), decaying(case_of("SgdWithDecay", "sgd", {{"weight_decay", 0.1}})),
        decaying(case_of("Momentum", "sgd", {{"momentum", 0.9}, {"weight_decay", 0.1}})),
        case_of("DampedMomentum", "sgd", {{"momentum", 0.9}, {"dampening", 0.5}}),
        case_of("Nesterov", "sgd", {{"momentum", 0.9}, {"nesterov", true}}),
        case_of("Adam", "adam"),
        decaying(case_of("AdamWithDecay", "adam", {{"weight_decay", 0.1}})),
        decaying(case_of("AdamW", "adamw"))),
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
  EXPECT_EQ(make("sgd", {{"momentum", 0.9}})->slots().size(), 2u);
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

TEST(AdamW, DecaysTheParameterItself) {
  EXPECT_NEAR(after(*make("adamw", {{"eps", 1}, {"weight_decay", 0.5}}), {3}),
              2 * (1 - 0.5 * 0.5) - 0.5 * 0.75, 1e-15);
}

TEST(Optimizers, HaveDocumentedDefaults) {
  EXPECT_EQ(make("sgd")->learning_rate(), 0.01);
  EXPECT_EQ(make("adam")->learning_rate(), 0.001);
  EXPECT_EQ(make("adamw")->learning_rate(), 0.001);
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
}

// --- vector instructions -----------------------------------------------------------------------

// The library picks AVX2 when it can; arithmetic one element at a time must give the same bits.
TEST(FlatRules, VectorsGiveTheBitsOfSingleElements) {
  constexpr std::int64_t kCount = 1003;  // not a multiple of any vector
  const auto check = [&]<typename T>(T) {
    std::vector<T> p(kCount), g(kCount), m(kCount), v(kCount);
    for (std::int64_t i = 0; i < kCount; ++i) {
      p[i] = static_cast<T>(std::sin(i));
      g[i] = static_cast<T>(std::cos(3 * i));
      m[i] = static_cast<T>(std::sin(5 * i));
      v[i] = static_cast<T>(std::abs(std::sin(7 * i)));
    }
    auto p1 = p, m1 = m, v1 = v;
    const optimizers::AdamRule<T> adam{T(0.3),  T(0.01),  T(0.9),  T(0.1), T(0.99),
                                       T(0.01), T(0.999), T(0.02), T(1.7), T(1e-8)};
    optimizers::apply(adam, kCount, p.data(), g.data(), m.data(), v.data());
    for (std::int64_t i = 0; i < kCount; ++i)
      optimizers::apply(adam, 1, &p1[i], &g[i], &m1[i], &v1[i]);
    EXPECT_EQ(p, p1);
    EXPECT_EQ(m, m1);
    EXPECT_EQ(v, v1);

    const optimizers::MomentumRule<T> momentum{T(0.3), T(0.01), T(0.02), T(0.9),
                                               T(0.7), T(1),    T(0.9)};
    optimizers::apply(momentum, kCount, p.data(), g.data(), m.data());
    for (std::int64_t i = 0; i < kCount; ++i)
      optimizers::apply(momentum, 1, &p1[i], &g[i], &m1[i]);
    EXPECT_EQ(p, p1);
    EXPECT_EQ(m, m1);

    const optimizers::DescentRule<T> descent{T(0.3), T(0.01), T(0.02)};
    optimizers::apply(descent, kCount, p.data(), g.data());
    for (std::int64_t i = 0; i < kCount; ++i)
      optimizers::apply(descent, 1, &p1[i], &g[i]);
    EXPECT_EQ(p, p1);
  };
  check(float{});
  check(double{});
}

}  // namespace
}  // namespace treadle::testing
