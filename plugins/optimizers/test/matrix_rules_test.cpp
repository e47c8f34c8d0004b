// Muon, SOAP, schedule-free AdamW and Adafactor beside their references, and the rule of each
// parameter. test/reference_2024.json is made by NumPy 1.24:
// /usr/bin/python3 test/reference_2024.py > test/reference_2024.json
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include <treadle/core/model/abilities/names_parameter_roles.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/training/optimizer_abilities.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/source_path.h>
#include <treadle/testing/support/tensor_comparison.h>

#include "newton_schulz.h"

namespace treadle::testing {
namespace {

std::unique_ptr<Optimizer> make_by_matrices(const std::string& name,
                                            const nlohmann::json& parameters = {}) {
  static const PluginUnderTest kPlugin(TREADLE_PLUGIN_FOLDER);
  return kPlugin.make<Optimizer>(name, parameters);
}

/// The parameters of reference_2024.py, with their roles.
class RoledModule final : public torch::nn::Module, public NamesParameterRoles {
 public:
  RoledModule() {
    add("hidden", {4, 4});
    add("twin", {4, 4});
    add("tall", {6, 3});
    add("kernel", {3, 2, 2, 2});
    add("stack", {2, 3, 3}, ParameterRole::kStack);
    add("bias", {5});
    add("table", {3, 2}, ParameterRole::kTable);
    add("output", {3, 3}, ParameterRole::kOutput);
    add("tied", {2, 2}, ParameterRole::kTied);
  }
  Roles parameter_roles() const override { return roles_; }

 private:
  void add(const char* name, const std::vector<std::int64_t>& sizes,
           ParameterRole role = ParameterRole::kHidden) {
    at::Tensor values = at::empty(sizes, at::kDouble);
    double* const at = values.data_ptr<double>();
    for (std::int64_t i = 0; i < values.numel(); ++i, ++first_)
      at[i] = static_cast<double>((37 * first_ + 11) % 64 - 31) / 32;
    const at::Tensor parameter = register_parameter(name, values);
    if (role != ParameterRole::kHidden)
      roles_.emplace_back(parameter, role);
  }

  std::int64_t first_ = 0;
  Roles roles_;
};

/// 50 steps as reference_2024.py makes them.
class ReferenceTraining {
 public:
  static constexpr std::int64_t kSteps = 50;

  ReferenceTraining(const Optimizer& optimizer, ParameterView::Path path)
      : optimizer_(optimizer),
        arena_(module_, 1),
        slots_(optimizer.slots(), arena_),
        view_(arena_, slots_, path) {}

  void run() {
    for (std::int64_t step = 0; step < kSteps; ++step) {
      receive(step);
      const double rate = 0.02 * (1 - static_cast<double>(step) / (2 * kSteps));
      view_.begin_step({.step = step + 1, .learning_rate = rate, .gradient_scale = 0.5});
      optimizer_.update(view_);
    }
  }

  std::vector<double> values(const at::Tensor& flat) const {
    std::vector<double> all;
    const double* const at = flat.data_ptr<double>();
    for (const Segment& segment : arena_.segments())
      all.insert(all.end(), at + segment.offset, at + segment.offset + segment.size);
    return all;
  }
  const ParameterArena& arena() const { return arena_; }
  const OptimizerSlots& slots() const { return slots_; }

 private:
  void receive(std::int64_t step) {
    arena_.zero_gradients();
    const at::NoGradGuard no_gradients;
    std::int64_t first = 0;
    for (const at::Tensor& parameter : module_.parameters()) {
      at::Tensor gradient = at::empty_like(parameter);
      double* const at = gradient.data_ptr<double>();
      for (std::int64_t i = 0; i < gradient.numel(); ++i, ++first)
        at[i] = static_cast<double>(
                    (7919 * step * step + 104729 * first + 31 * step * first) % 1021 - 510) /
                256;
      parameter.grad().copy_(gradient);
    }
    arena_.collect();
  }

  const Optimizer& optimizer_;
  RoledModule module_;
  ParameterArena arena_;
  OptimizerSlots slots_;
  ParameterView view_;
};

struct ReferenceCase {
  std::string name;
  nlohmann::json content;
};

std::vector<ReferenceCase> reference_cases() {
  std::ifstream file(source_path(TREADLE_PLUGIN_FOLDER) / "test/reference_2024.json");
  std::vector<ReferenceCase> cases;
  std::map<std::string, int> seen;
  for (const nlohmann::json& one : nlohmann::json::parse(file)) {
    const std::string component = one.at("name");
    cases.push_back({component + std::to_string(++seen[component]), one});
  }
  return cases;
}

void expect_near(const std::vector<double>& values, const nlohmann::json& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i].get<double>(), 1e-9) << "element " << i;
}

class AgainstTheReference : public ::testing::TestWithParam<ReferenceCase> {};

TEST_P(AgainstTheReference, FiftyStepsEndWhereNumPyDoes) {
  const nlohmann::json& one = GetParam().content;
  const auto optimizer = make_by_matrices(one.at("name"), one.at("parameters"));
  for (const auto path : {ParameterView::Path::kFastest, ParameterView::Path::kTensors}) {
    ReferenceTraining training(*optimizer, path);

    training.run();

    expect_near(training.values(training.arena().parameters()), one.at("values"));
    if (const auto* const ability = optimizer->ask<EvaluationWeights>()) {
      expect_near(training.values(
                      ability->evaluation_weights(training.arena().parameters(), training.slots())),
                  one.at("evaluated"));
    } else {
      EXPECT_FALSE(one.contains("evaluated"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, AgainstTheReference, ::testing::ValuesIn(reference_cases()),
                         CaseName());

using RulesByName = std::map<std::string, std::string>;

RulesByName rules_of(const Optimizer& optimizer) {
  RoledModule module;
  const ParameterArena arena(module);
  RulesByName rules;
  for (const Segment& segment : arena.segments())
    rules[segment.name] = optimizer.ask<NamesRules>()->rule_of(segment);
  return rules;
}

TEST(Muon, UpdatesMatricesOfHiddenLayersAlone) {
  EXPECT_EQ(rules_of(*make_by_matrices("muon")), (RulesByName{{"hidden", "muon"},
                                                              {"twin", "muon"},
                                                              {"tall", "muon"},
                                                              {"kernel", "muon"},
                                                              {"stack", "muon"},
                                                              {"bias", "adamw"},
                                                              {"table", "adamw (table)"},
                                                              {"output", "adamw (output)"},
                                                              {"tied", "adamw (tied)"}}));
}

TEST(Soap, LeavesLongSidesAndTablesTheirBasis) {
  EXPECT_EQ(rules_of(*make_by_matrices("soap", {{"max_precond_dim", 3}})),
            (RulesByName{{"hidden", "adam (larger than max_precond_dim)"},
                         {"twin", "adam (larger than max_precond_dim)"},
                         {"tall", "soap (columns only)"},
                         {"kernel", "soap (rows only)"},
                         {"stack", "soap"},
                         {"bias", "adam"},
                         {"table", "adam (table)"},
                         {"output", "soap"},
                         {"tied", "soap"}}));
}

TEST(Muon, RemembersOneNumberForAnElementOfAMatrix) {
  RoledModule module;
  const ParameterArena arena(module);
  const OptimizerSlots slots(make_by_matrices("muon")->slots(), arena);
  EXPECT_EQ(slots.place(1, 0).size, 0);  // hidden
  EXPECT_EQ(slots.place(1, 5).size, 5);  // bias
}

TEST(NewtonSchulz, BringsSingularValuesNearOne) {
  const TaskRandom random(3);
  for (const auto& [rows, columns] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{20, 40}, {40, 20}, {30, 200}}) {
    const at::Tensor x = at::randn({3, rows, columns}, at::kDouble);

    const at::Tensor values = at::linalg_svdvals(optimizers::newton_schulz(x));

    EXPECT_GT(values.min().item<double>(), 0.6);
    EXPECT_LT(values.max().item<double>(), 1.25);
  }
}

// Of these the five polynomials are found from A alone; one row is in all of the first matrix.
TEST(NewtonSchulz, OfWideMatricesIsTheSamePolynomial) {
  const TaskRandom random(3);
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    at::Tensor x = at::randn({2, 6, 40}, dtype);
    x.select(0, 0).copy_(x[0][0].expand({6, 40}).clone());
    at::Tensor expected = x / (x.square().sum({1, 2}, true).sqrt() + 1e-7);
    for (int step = 0; step < 5; ++step) {
      const at::Tensor a = at::matmul(expected, expected.transpose(1, 2));
      expected = 3.4445 * expected + at::matmul(-4.775 * a + 2.0315 * at::matmul(a, a), expected);
    }
    const double most = dtype == at::kDouble ? 1e-11 : 2e-3;
    EXPECT_TRUE(values_match(optimizers::newton_schulz(x), expected, {.absolute = most}));
  }
}

TEST(NewtonSchulz, AMatrixDoesNotDependOnThoseBesideIt) {
  const TaskRandom random(3);
  const at::Tensor x = at::randn({3, 16, 24}, at::kDouble);
  EXPECT_TRUE(values_match(optimizers::newton_schulz(x).narrow(0, 1, 1),
                           optimizers::newton_schulz(x.narrow(0, 1, 1)), {.absolute = 1e-13}));
}

}  // namespace
}  // namespace treadle::testing
