// The losses of this plugin, of rows that a transform has mixed.
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/training/objective.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

constexpr std::int64_t kMixedRows = 7;

/// One target of each kind, with values.
std::vector<std::pair<TargetSpec, at::Tensor>> targets_of_each_kind() {
  const std::vector<std::string> names{"a", "b", "c"};
  return {
      {class_target("kind", names), at::randint(0, 3, {kMixedRows}, at::kLong)},
      {class_target("side", {"left", "right"}), at::randint(0, 2, {kMixedRows}, at::kLong)},
      {class_target("mask", names, {4, 5}), at::randint(0, 3, {kMixedRows, 4, 5}, at::kLong)},
      {number_target("price", 2), at::rand({kMixedRows, 2}, at::kDouble)},
      {number_target("count"), at::randint(0, 9, {kMixedRows, 1}, at::kDouble)},
      {{"tags", TargetKind::kLabels, {3}, names}, at::randint(0, 2, {kMixedRows, 3}, at::kDouble)},
      {{"soft", TargetKind::kDistribution, {3}, names},
       at::rand({kMixedRows, 3}, at::kDouble).softmax(1)}};
}

std::vector<at::Tensor> outputs_for_rows(const Objective& objective) {
  std::vector<at::Tensor> outputs;
  for (const OutputSpec& output : objective.outputs()) {
    std::vector<std::int64_t> sizes = output.shape;
    sizes.insert(sizes.begin(), kMixedRows);
    outputs.push_back(at::randn(sizes, at::kDouble));
  }
  return outputs;
}

double mean_loss(const Objective& objective, const std::vector<at::Tensor>& outputs,
                 const Batch& batch) {
  const BatchLoss::Term term = objective.forward(outputs, batch).front();
  const double weight = term.weight.defined() ? term.weight.item<double>() : term.count;
  return term.sum.item<double>() / weight;
}

// A share of 0.3 and rows whose partners are those in front of them.
TEST(MixedRows, HaveTheMixtureOfTwoLossesForEachLossThatAddsUp) {
  const TaskRandom random(5);
  const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  std::map<std::string, int> tried;
  std::set<std::string> refused;
  const std::pair<const char*, nlohmann::json> losses[] = {
      {"cross_entropy", {{"class_weights", {1, 2, 5}}}},
      {"cross_entropy", {{"label_smoothing", 0.1}}},
      {"bce_with_logits", nlohmann::json::object()},
      {"kl_div", nlohmann::json::object()},
      {"mse", nlohmann::json::object()},
      {"l1", nlohmann::json::object()},
      {"smooth_l1", {{"beta", 0.3}}},
      {"quantile", {{"quantiles", {0.1, 0.5}}}},
      {"gaussian_nll", nlohmann::json::object()},
      {"student_t_nll", nlohmann::json::object()},
      {"negative_binomial_nll", nlohmann::json::object()},
      {"gaussian_mixture_nll", nlohmann::json::object()},
      {"correlation", nlohmann::json::object()},
      {"sharpe", nlohmann::json::object()}};
  for (const auto& [name, parameters] : losses) {
    const std::unique_ptr<Loss> loss = plugin.make<Loss>(name, parameters);
    for (const auto& [spec, values] : targets_of_each_kind()) {
      SCOPED_TRACE(name + (" of " + spec.name));
      const std::vector<TargetSpec> specs{spec};
      std::unique_ptr<Objective> objective;
      try {
        objective = std::make_unique<Objective>(std::vector<Objective::Term>{{loss.get()}}, specs);
      } catch (const Error&) {
        continue;  // of another kind, or weights of other classes
      }
      const std::vector<at::Tensor> outputs = outputs_for_rows(*objective);
      Batch own;
      own.targets = own.original_targets = {values};
      own.rows = at::arange(kMixedRows);
      Batch partners = own;
      partners.targets = {values.roll(1, 0)};
      Batch mixed = own;
      mixed.mixture.shares = at::full({kMixedRows}, 0.3, at::kDouble);
      mixed.mixture.partners = own.rows.roll(1, 0);
      mixed.look_up_partners(at::kDouble);
      if (!loss->is_additive()) {
        EXPECT_THROW(objective->forward(outputs, mixed), UsageError);
        refused.insert(name);
        continue;
      }
      const double expected = 0.3 * mean_loss(*objective, outputs, own) +
                              0.7 * mean_loss(*objective, outputs, partners);
      EXPECT_NEAR(mean_loss(*objective, outputs, mixed), expected, 1e-6 * std::abs(expected));
      ++tried[name];
    }
  }
  EXPECT_EQ(tried.size(), 11U);
  EXPECT_EQ(refused, (std::set<std::string>{"correlation", "sharpe"}));
}

}  // namespace
}  // namespace treadle::testing
