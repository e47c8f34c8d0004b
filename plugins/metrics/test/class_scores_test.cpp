#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/testing/support/evaluated_rows.h>
#include <treadle/testing/support/targets.h>

#include "this_plugin.h"

namespace treadle::testing {
namespace {

/// "no" and "yes", or labels of these names.
TargetSpec answers(TargetKind kind = TargetKind::kClasses, std::int64_t more = 0) {
  TargetSpec target = treadle::class_target("answer", {"no", "yes"});
  for (std::int64_t i = 0; i < more; ++i)
    target.class_names.push_back("more-" + std::to_string(i));
  target.kind = kind;
  if (kind == TargetKind::kLabels)
    target.shape = {target.class_count()};
  return target;
}

EvaluatedRows answered(const std::vector<double>& second, const std::vector<std::int64_t>& actual) {
  const at::Tensor yes = at::tensor(second, at::kDouble).unsqueeze(1);
  return evaluated_rows(TargetKind::kClasses, at::cat({1 - yes, yes}, 1),
                        at::tensor(actual, at::kLong));
}

MetricValue first_value(std::string_view name, const EvaluatedRows& rows,
                        nlohmann::json parameters = {}, const TargetSpec& target = answers()) {
  const auto metric = plugin().make<MetricComputer>(name, std::move(parameters));
  metric->start(target);
  metric->reset();
  update(*metric, rows, target);
  return metric->compute().values.at(0);
}

template <typename Start>
std::string refusal_of(Start&& start) {
  try {
    start();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string refusal(std::string_view name, const TargetSpec& target, nlohmann::json parameters) {
  return refusal_of(
      [&] { plugin().make<MetricComputer>(name, std::move(parameters))->start(target); });
}

TEST(ClassScore, GivesTheReasonWhyItIsUndefined) {
  const EvaluatedRows never_yes = answered({0.1, 0.2, 0.3}, {0, 0, 0});
  EXPECT_EQ(first_value("precision", never_yes).value.why(),
            "no row is predicted to be of class \"yes\"");
  EXPECT_EQ(first_value("recall", never_yes).value.why(), "no row is of class \"yes\"");
  for (const char* const name : {"f1", "f_beta"}) {
    EXPECT_EQ(first_value(name, never_yes).value.why(),
              "no row is of, or predicted to be of, class \"yes\"");
  }
  EXPECT_EQ(first_value("average_precision", never_yes).value.why(), "no row is of class \"yes\"");
  EXPECT_EQ(first_value("specificity", never_yes).value, 1);
  EXPECT_EQ(first_value("specificity", answered({0.1, 0.8}, {1, 1})).value.why(),
            "all rows are of class \"yes\"");
  EXPECT_EQ(first_value("mcc", answered({0.1, 0.8}, {1, 1})).value.why(),
            "all rows are of class \"yes\"");
  EXPECT_EQ(first_value("cohen_kappa", answered({0.1, 0.2}, {0, 0})).value.why(),
            "all rows are of, and predicted to be of, class \"no\"");
}

TEST(ClassScore, IsAnAverageOfLabelsOnlyWhereSomeOccur) {
  const TargetSpec tags = answers(TargetKind::kLabels);
  const EvaluatedRows rows =
      evaluated_rows(TargetKind::kLabels, at::tensor({0.9, 0.9}, at::kDouble).view({1, 2}),
                     at::tensor({0, 0}, at::kDouble).view({1, 2}));

  EXPECT_EQ(first_value("precision", rows, {}, tags).value, 0);
  for (const char* const name : {"precision", "average_precision"}) {
    EXPECT_EQ(first_value(name, rows, {{"average", "weighted"}}, tags).value.why(),
              "no row has a label");
  }
}

TEST(ClassScore, IsNamedAfterTheClassThatADocumentNames) {
  const EvaluatedRows rows = answered({0.1, 0.8, 0.6}, {0, 1, 0});

  for (const char* const name :
       {"precision", "recall", "f1", "f_beta", "specificity", "average_precision"}) {
    EXPECT_EQ(first_value(name, rows).name, name);
    EXPECT_EQ(first_value(name, rows, {{"average", "macro"}}).name, name);
    EXPECT_EQ(first_value(name, rows, {{"class", "no"}}).name, std::string(name) + ".no");
  }
  EXPECT_EQ(first_value("recall", rows).value, 1);
  EXPECT_EQ(first_value("recall", rows, {{"class", "no"}}).value, 0.5);
}

TEST(ClassScore, RefusesAClassThatTheTargetLacks) {
  for (const char* const name : {"precision", "average_precision"}) {
    EXPECT_EQ(refusal(name, answers(), {{"class", "yess"}}),
              "/class: is \"yess\", but the target \"answer\" has \"no\", \"yes\"; did you mean "
              "\"yes\"?");
    EXPECT_EQ(refusal(name, answers(), {{"class", "yes"}, {"average", "macro"}}),
              "/average: cannot stand beside \"class\", which has one value; remove either");
  }
}

TEST(TopKAccuracy, RefusesAsManyAsThereAreClasses) {
  EXPECT_EQ(refusal("top_k_accuracy", answers(), {}),
            "/k: is 2, but the target \"answer\" has 2 classes, of which each would be among the "
            "first; it must be at least 1 and below the number of classes");
  EXPECT_EQ(refusal("top_k_accuracy", answers(), {{"k", 1}}), "nothing was thrown");
}

TEST(TopKAccuracy, TakesTheDecisionFirst) {
  // Of probabilities, classes 0 and 1 are the first two.
  EvaluatedRows rows = evaluated_rows(
      TargetKind::kClasses, at::tensor({0.5, 0.4, 0.1, 0.5, 0.4, 0.1}, at::kDouble).view({2, 3}),
      at::tensor({2, 1}, at::kLong));
  const TargetSpec three = answers(TargetKind::kClasses, 1);
  EXPECT_EQ(first_value("top_k_accuracy", rows, {}, three).value, 0.5);

  rows.prediction.decision = at::tensor({2, 2}, at::kLong);

  EXPECT_EQ(first_value("top_k_accuracy", rows, {{"k", 1}}, three).value, 0.5);
  rows.batch.original_targets = {at::tensor({2, 0}, at::kLong)};
  EXPECT_EQ(first_value("top_k_accuracy", rows, {}, three).value, 1);
}

TEST(Ranking, OfScoresThatAreNotANumberIsNone) {
  const EvaluatedRows rows = answered({0.1, NAN, 0.6}, {0, 1, 0});

  for (const char* const name : {"auc", "average_precision"}) {
    const Number value = first_value(name, rows).value;
    EXPECT_TRUE(std::isnan(value) && !value.is_undefined()) << name << " " << value.why();
  }
}

TEST(CohenKappa, CountsDistancesInTheOrderOfTheClasses) {
  const TargetSpec four = answers(TargetKind::kClasses, 2);
  const auto kappa = [&](std::int64_t predicted, const char* weights) {
    EvaluatedRows rows = evaluated_rows(TargetKind::kClasses, at::full({4, 4}, 0.25, at::kDouble),
                                        at::tensor({0, 1, 2, 3}, at::kLong));
    rows.prediction.decision =
        at::tensor({predicted, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}}, at::kLong);
    return first_value("cohen_kappa", rows, {{"weights", weights}}, four).value.value();
  };

  EXPECT_NEAR(kappa(1, "none"), kappa(3, "none"), 1e-12);
  EXPECT_GT(kappa(1, "linear"), kappa(3, "linear"));
  EXPECT_GT(kappa(3, "linear"), kappa(3, "quadratic"));
}

}  // namespace
}  // namespace treadle::testing
