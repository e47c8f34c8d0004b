// Every loss there is, of rows that MixUp has mixed.
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
#include <treadle/host/run/runtime.h>
#include <treadle/tensor/task_random.h>

namespace treadle::testing {
namespace {

constexpr std::int64_t kRows = 7;

/// One target of each kind, with values.
std::vector<std::pair<TargetSpec, at::Tensor>> targets_of_each_kind() {
  const std::vector<std::string> names{"a", "b", "c"};
  return {{class_target("kind", names), at::randint(0, 3, {kRows}, at::kLong)},
          {class_target("side", {"left", "right"}), at::randint(0, 2, {kRows}, at::kLong)},
          {class_target("mask", names, {4, 5}), at::randint(0, 3, {kRows, 4, 5}, at::kLong)},
          {number_target("price", 2), at::rand({kRows, 2}, at::kDouble)},
          {number_target("count"), at::randint(0, 9, {kRows, 1}, at::kDouble)},
          {{"tags", TargetKind::kLabels, {3}, names}, at::randint(0, 2, {kRows, 3}, at::kDouble)},
          {{"soft", TargetKind::kDistribution, {3}, names},
           at::rand({kRows, 3}, at::kDouble).softmax(1)}};
}

std::vector<at::Tensor> outputs_for_rows(const Objective& objective) {
  std::vector<at::Tensor> outputs;
  for (const OutputSpec& output : objective.outputs()) {
    std::vector<std::int64_t> sizes = output.shape;
    sizes.insert(sizes.begin(), kRows);
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
TEST(MixedRows, TheLossIsTheMixtureOfTheTwoLossesForEachLossThatAddsUp) {
  const TaskRandom random(5);
  const Runtime runtime;
  std::map<std::string, int> tried;
  std::set<std::string> refused;
  for (const std::string& name : runtime.registry().names<Loss>()) {
    if (name == "faulty_loss")
      continue;
    nlohmann::json parameters = nlohmann::json::object();
    if (name == "ensemble")
      parameters = {{"loss", "mse"}};
    std::unique_ptr<Loss> loss;
    try {
      loss = runtime.registry().make<Loss>(name, Config(parameters));
    } catch (const Error&) {
      continue;  // needs parameters
    }
    for (const auto& [spec, values] : targets_of_each_kind()) {
      SCOPED_TRACE(name + " of " + spec.name);
      const std::vector<TargetSpec> specs{spec};
      std::unique_ptr<Objective> objective;
      try {
        objective = std::make_unique<Objective>(std::vector<Objective::Term>{{loss.get()}}, specs);
      } catch (const DataError&) {
        continue;  // of another kind
      }
      const std::vector<at::Tensor> outputs = outputs_for_rows(*objective);
      Batch own;
      own.targets = own.original_targets = {values};
      own.rows = at::arange(kRows);
      Batch partners = own;
      partners.targets = {values.roll(1, 0)};
      Batch mixed = own;
      mixed.mixture.shares = at::full({kRows}, 0.3, at::kDouble);
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
  for (const char* const name : {"cross_entropy", "bce_with_logits", "mse", "l1", "smooth_l1",
                                 "quantile", "kl_div", "gaussian_nll"})
    EXPECT_TRUE(tried.contains(name)) << name;
  EXPECT_TRUE(refused.contains("correlation"));
}

}  // namespace
}  // namespace treadle::testing
