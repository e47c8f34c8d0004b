#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/data/batch.h>
#include <treadle/tensor/task_random.h>
#include <treadle/testing/model/metric_contract.h>
#include <treadle/testing/support/evaluated_rows.h>
#include <treadle/testing/support/targets.h>

#include "this_plugin.h"

namespace treadle::testing {
namespace {

std::unique_ptr<MetricComputer> make(std::string_view name, const TargetSpec& target,
                                     nlohmann::json parameters = {}) {
  auto metric = plugin().make<MetricComputer>(name, std::move(parameters));
  metric->start(target);
  return metric;
}

using Case = MetricCase;

// --- the same numbers as scikit-learn ----------------------------------------------------------
// Computed by scikit-learn 1.2.1: /usr/bin/python3 plugins/metrics/test/reference.py

constexpr std::int64_t kReferenceRows = 60;

/// How the 60 positions are laid out and weighed.
enum class Layout {
  kRows,          ///< a row each
  kWeightedRows,  ///< a row each, with weights
  kPositions,     ///< 12 rows of 5, with the same weights: those of rows and positions multiply
  kPadded         ///< 12 rows of 5, every fourth is padding
};

EvaluatedRows reference_rows(TargetKind kind, at::Tensor values, at::Tensor targets,
                             Layout layout) {
  const at::Tensor fourth = at::arange(kReferenceRows).remainder(4).to(at::kDouble);
  const at::Tensor weights = fourth.add(1).mul(0.25);
  if (layout == Layout::kRows || layout == Layout::kWeightedRows) {
    EvaluatedRows rows = evaluated_rows(kind, values, targets);
    if (layout == Layout::kWeightedRows)
      rows.batch.weights = weights;
    return rows;
  }
  EvaluatedRows rows =
      evaluated_rows(kind, values.unflatten(0, {12, 5}), targets.unflatten(0, {12, 5}));
  if (layout == Layout::kPositions) {
    const at::Tensor of_rows = at::arange(12).remainder(3).add(1).to(at::kDouble);
    rows.batch.weights = of_rows;
    rows.batch.position_weights = {weights.view({12, 5}).div(of_rows.unsqueeze(1))};
  } else {
    rows.batch.position_weights = {fourth.mul(0.25).view({12, 5})};
  }
  return rows;
}

at::Tensor reference_shares(std::int64_t classes) {
  at::Tensor shares = at::zeros({kReferenceRows, classes}, at::kDouble);
  for (std::int64_t i = 0; i < kReferenceRows; ++i) {
    for (std::int64_t c = 0; c < classes; ++c)
      shares[i][c] = 1 + (5 * i + 7 * c) % 11 + (c == (i * 7 + i / 5) % classes ? 4 : 0);
  }
  return shares.div(shares.sum(1, true));
}

EvaluatedRows reference_classes(std::int64_t classes, Layout layout) {
  at::Tensor targets = at::zeros({kReferenceRows}, at::kLong);
  for (std::int64_t i = 0; i < kReferenceRows; ++i)
    targets[i] = (i * 7 + i / 5) % classes;
  return reference_rows(TargetKind::kClasses, reference_shares(classes), targets, layout);
}

EvaluatedRows reference_labels(Layout layout) {
  at::Tensor actual = at::zeros({kReferenceRows, 4}, at::kDouble);
  at::Tensor predicted = at::zeros({kReferenceRows, 4}, at::kDouble);
  for (std::int64_t i = 0; i < kReferenceRows; ++i) {
    for (std::int64_t c = 0; c < 4; ++c) {
      const int here = (7 * i + 3 * c + i / 5) % 3 == 0 ? 1 : 0;
      actual[i][c] = here;
      predicted[i][c] = (static_cast<double>((5 * i + 7 * c) % 11) + 4 * here + 0.25) / 15;
    }
  }
  return reference_rows(TargetKind::kLabels, predicted, actual, layout);
}

EvaluatedRows reference_numbers(std::int64_t width, Layout layout) {
  at::Tensor actual = at::zeros({kReferenceRows, width}, at::kDouble);
  at::Tensor predicted = at::zeros({kReferenceRows, width}, at::kDouble);
  for (std::int64_t i = 0; i < kReferenceRows; ++i) {
    for (std::int64_t k = 0; k < width; ++k) {
      const double n = static_cast<double>(i);
      const double here = 1000 + 3 * std::sin(0.7 * n + static_cast<double>(k));
      actual[i][k] = here;
      predicted[i][k] = here + 0.5 * std::cos(1.9 * n - static_cast<double>(k));
    }
  }
  EvaluatedRows rows = reference_rows(TargetKind::kNumbers, predicted, actual, layout);
  const at::Tensor& values = rows.prediction.values;
  rows.prediction.extras = {{"q0.1", values.sub(0.3)}, {"q0.9", values.add(0.4)}};
  return rows;
}

EvaluatedRows reference_of(const TargetSpec& target, Layout layout) {
  switch (target.kind) {
    case TargetKind::kClasses:
      return reference_classes(target.class_count(), layout);
    case TargetKind::kLabels:
      return reference_labels(layout);
    case TargetKind::kDistribution:
      return reference_rows(target.kind, reference_shares(3), reference_shares(3).flip(0), layout);
    case TargetKind::kNumbers:
      break;
  }
  return reference_numbers(target.width(), layout);
}

struct Reference {
  std::string name;
  TargetSpec target;  // of a row
  /// By metric, or "metric/value": unweighted, weighted, padded.
  std::map<std::string, std::array<double, 3>> values;
};

class AgainstScikitLearn : public ::testing::TestWithParam<Reference> {};

TEST_P(AgainstScikitLearn, GivesTheSameValues) {
  const Reference& reference = GetParam();
  constexpr std::pair<Layout, std::size_t> kLayouts[] = {{Layout::kRows, 0},
                                                         {Layout::kWeightedRows, 1},
                                                         {Layout::kPositions, 1},
                                                         {Layout::kPadded, 2}};
  for (const auto& [layout, column] : kLayouts) {
    const EvaluatedRows rows = reference_of(reference.target, layout);
    TargetSpec target = reference.target;
    if (layout == Layout::kPositions || layout == Layout::kPadded)
      target.shape.insert(target.shape.begin(), kVaries);
    for (const auto& [name, expected] : reference.values) {
      const std::string metric_name = name.substr(0, name.find('/'));
      const std::string value_name = name.substr(name.find('/') + 1);
      const auto metric = make(metric_name, target);

      for (std::int64_t begin = 0; begin < rows.batch.size(); begin += 17)
        update(*metric, rows.part(begin, std::min(begin + 17, rows.batch.size())), target);

      const std::vector<MetricValue> values = metric->compute().values;
      const auto value = std::find_if(values.begin(), values.end(), [&](const MetricValue& one) {
        return one.name == value_name;
      });
      ASSERT_NE(value, values.end()) << name;
      EXPECT_NEAR(value->value, expected[column], 1e-12)
          << name << ", layout " << static_cast<int>(layout);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Metrics, AgainstScikitLearn,
    ::testing::Values(
        Reference{
            "TwoClasses",
            Case::classes(2),
            {{"accuracy", {0.5166666666666667, 0.5533333333333333, 0.5777777777777777}},
             {"macro_precision", {0.48534798534798534, 0.5262594825909357, 0.5533405172413793}},
             {"macro_recall", {0.48611111111111105, 0.525, 0.5509259259259259}},
             {"macro_f1", {0.48444444444444434, 0.5243954379821116, 0.5509453781512605}},
             {"mean_iou", {0.32926195426195426, 0.3639982502187227, 0.3881761006289308}},
             {"auc", {0.7592592592592593, 0.7944444444444445, 0.816358024691358}},
             {"log_loss", {0.5101677673506206, 0.4882154462143552, 0.4735805654568448}},
             {"perplexity", {1.6655705998745312, 1.6294058614836706, 1.6057333457308258}}}},
        Reference{
            "ThreeClasses",
            Case::classes(3),
            {{"accuracy", {0.45, 0.4533333333333333, 0.45555555555555555}},
             {"macro_precision", {0.42185592185592186, 0.4071871297055874, 0.39321705426356585}},
             {"macro_recall", {0.4305555555555555, 0.4166666666666667, 0.40740740740740744}},
             {"macro_f1", {0.42518518518518517, 0.41034017531948846, 0.39766240213001197}},
             {"mean_iou", {0.27842127842127845, 0.27273925210357847, 0.2682839173405211}},
             {"auc", {0.8396990740740741, 0.8464506172839507, 0.85099451303155}},
             {"log_loss", {0.8508902242336357, 0.8348996329740135, 0.8242392388009321}},
             {"perplexity", {2.341730589611003, 2.3045827325639636, 2.2801454591426427}}}},
        Reference{
            "Labels",
            Case::labels(4),
            {{"accuracy", {0.05, 0.05333333333333334, 0.05555555555555555}},
             {"hamming_loss", {0.32083333333333336, 0.315, 0.3111111111111111}},
             {"macro_precision", {0.5947115384615385, 0.6017377674798964, 0.6073496593845431}},
             {"macro_recall", {0.625, 0.6333333333333333, 0.6388888888888888}},
             {"macro_f1", {0.6093112244897959, 0.6163602492632844, 0.6210628099785329}}}},
        Reference{"Distributions",
                  Case::distribution(3),
                  {{"log_loss", {1.280276608785997, 1.2919941611668853, 1.2998058627541442}},
                   {"kl_div", {0.3134100882135708, 0.3181170048817016, 0.3212549493271221}}}},
        Reference{"OneNumber",
                  Case::numbers(1),
                  {{"mse", {0.1259376104119932, 0.12553694014609346, 0.1252698266354937}},
                   {"rmse", {0.3548768947282891, 0.3543119249278712, 0.35393477737500406}},
                   {"mae", {0.32012110392960647, 0.3210024264125127, 0.3215899747344502}},
                   {"r2", {0.9713142122103408, 0.9721677808425172, 0.972711128395077}}}},
        Reference{"TwoNumbers",
                  Case::numbers(2),
                  {{"mse", {0.124613691094903, 0.1243790718347524, 0.12422265899465207}},
                   {"rmse", {0.35300166374062014, 0.3526703518479768, 0.3524492191955424}},
                   {"mae", {0.3178252285301672, 0.3178454988110244, 0.31785901233159597}},
                   {"r2", {0.9722008968189253, 0.9731136465123964, 0.9736841009434137}},
                   {"pinball/pinball.q0.1",
                    {0.06827770289171894, 0.06785615491972073, 0.0675751229383886}},
                   {"pinball/pinball.q0.5",
                    {0.1589126142650836, 0.1589227494055122, 0.15892950616579798}},
                   {"pinball/pinball.q0.9",
                    {0.053632089594473784, 0.05295332177241819, 0.052500809891047814}},
                   {"pinball/coverage", {0.5, 0.5133333333333333, 0.5222222222222223}}}}),
    CaseName());

TEST(CountMetric, NamesTheValueOfEachClass) {
  const auto metric = make("macro_recall", MetricCase::classes(3), {{"per_class", true}});

  update(*metric, reference_classes(3, Layout::kRows), MetricCase::classes(3));

  // scikit-learn: recall_score(..., average=None)
  const std::vector<std::pair<std::string, double>> expected{{"macro_recall", 0.4305555555555555},
                                                             {"recall.class-0", 0.625},
                                                             {"recall.class-1", 1.0 / 3},
                                                             {"recall.class-2", 1.0 / 3}};
  const auto values = metric->compute().values;
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i].name, expected[i].first);
    EXPECT_NEAR(values[i].value, expected[i].second, 1e-15);
    EXPECT_EQ(values[i].direction, Direction::kHigherIsBetter);
  }
}

EvaluatedRows rows_of(const at::Tensor& values, const at::Tensor& targets) {
  return evaluated_rows(TargetKind::kNumbers, values, targets);
}

Number value_of(std::string_view name, const TargetSpec& target, EvaluatedRows rows) {
  rows.prediction.kind = target.kind;
  const auto metric = make(name, target);
  update(*metric, rows, target);
  return metric->compute().values.at(0).value;
}

// Probabilities that choose the given classes.
at::Tensor choosing(std::initializer_list<std::int64_t> classes, std::int64_t count) {
  at::Tensor values = at::zeros({static_cast<std::int64_t>(classes.size()), count}, at::kDouble);
  std::int64_t i = 0;
  for (const std::int64_t c : classes)
    values[i++][c] = 1;
  return values;
}

TEST(CountMetric, MacroLeavesOutClassesThatNeverOccur) {
  // Class 2 occurs nowhere, class 3 is never predicted. scikit-learn's values, as above.
  const EvaluatedRows rows =
      rows_of(choosing({0, 1, 1, 1}, 4), at::tensor(std::vector<std::int64_t>{0, 0, 1, 3}));

  EXPECT_NEAR(value_of("macro_precision", MetricCase::classes(4), rows), 0.4444444444444444, 1e-15);
  EXPECT_NEAR(value_of("macro_recall", MetricCase::classes(4), rows), 0.5, 1e-15);
  EXPECT_NEAR(value_of("macro_f1", MetricCase::classes(4), rows), 0.38888888888888884, 1e-15);
}

TEST(CountMetric, TakesTheFirstOfEqualProbabilities) {
  const EvaluatedRows rows =
      rows_of(at::full({2, 2}, 0.5, at::kDouble), at::tensor(std::vector<std::int64_t>{0, 1}));

  EXPECT_EQ(value_of("accuracy", MetricCase::classes(2), rows), 0.5);
  EXPECT_EQ(value_of("macro_recall", MetricCase::classes(2), rows), 0.5);
}

TEST(ConfusionMatrix, HasRowsForActualAndColumnsForPredictedClasses) {
  const auto metric = make("confusion_matrix", MetricCase::classes(3));

  update(*metric, reference_classes(3, Layout::kRows), MetricCase::classes(3));

  const MetricResult result = metric->compute();
  EXPECT_TRUE(result.values.empty());
  ASSERT_EQ(result.tables.size(), 1u);
  EXPECT_EQ(result.tables[0].name, "confusion_matrix");
  EXPECT_EQ(result.tables[0].row_labels, MetricCase::classes(3).class_names);
  EXPECT_EQ(result.tables[0].column_labels, MetricCase::classes(3).class_names);
  // scikit-learn: confusion_matrix(...)
  const at::Tensor expected =
      at::tensor(std::vector<double>{15, 9, 0, 7, 8, 9, 4, 4, 4}).to(at::kDouble).view({3, 3});
  EXPECT_TRUE(at::equal(result.tables[0].values, expected)) << result.tables[0].values;
}

TEST(ConfusionMatrix, CountsWeights) {
  const auto metric = make("confusion_matrix", MetricCase::classes(2));

  update(*metric, reference_classes(2, Layout::kWeightedRows), MetricCase::classes(2));

  const at::Tensor expected =
      at::tensor(std::vector<double>{15, 7.5, 9.25, 5.75}).to(at::kDouble).view({2, 2});
  EXPECT_TRUE(at::equal(metric->compute().tables[0].values, expected));
}

TEST(ConfusionMatrix, WhatStandsInPaddingNeedNotBeAClass) {
  const TargetSpec steps = MetricCase::classes(3, {kVaries});
  EvaluatedRows rows = reference_classes(3, Layout::kPadded);
  rows.batch.original_targets = {with_padding(
      rows.batch.targets[0], at::full({12, 5}, -1, at::kLong), rows.batch.position_weights[0])};
  const auto metric = make("confusion_matrix", steps);

  update(*metric, rows, steps);

  // scikit-learn: confusion_matrix(...), as above
  const at::Tensor expected =
      at::tensor(std::vector<double>{6.5, 2.5, 0, 3, 3, 3, 1.25, 2.5, 0.75}).to(at::kDouble);
  EXPECT_TRUE(at::equal(metric->compute().tables[0].values.view(-1), expected));
}

TEST(Auc, IsUndefinedWithOneClassOnly) {
  const EvaluatedRows rows =
      rows_of(at::full({3, 2}, 0.5, at::kDouble), at::tensor(std::vector<std::int64_t>{1, 1, 1}));

  for (const std::int64_t classes : {2, 3}) {
    const EvaluatedRows all_of_one =
        rows_of(at::full({3, classes}, 0.5, at::kDouble), rows.batch.targets[0]);
    const TargetSpec target = MetricCase::classes(classes);
    EXPECT_EQ(value_of("auc", target, all_of_one).why(),
              "all rows are of class \"" + target.class_names[1] + "\"");
  }
}

TEST(Auc, CountsTiesHalf) {
  const EvaluatedRows rows = rows_of(at::full({4, 2}, 0.5, at::kDouble),
                                     at::tensor(std::vector<std::int64_t>{0, 1, 1, 0}));

  EXPECT_EQ(value_of("auc", MetricCase::classes(2), rows), 0.5);
}

/// The mean over the classes of the share of pairs, one of the class and one of another, that the
/// odds of the class put in order.
double share_of_pairs_in_order(const at::Tensor& logits, const at::Tensor& classes) {
  const std::int64_t rows = logits.size(0);
  const std::int64_t count = logits.size(1) == 1 ? 2 : logits.size(1);
  const at::Tensor exact = logits.to(at::kDouble).contiguous();
  const auto odds = [&](std::int64_t row, std::int64_t of) -> long double {
    const double* const z = exact.data_ptr<double>() + row * exact.size(1);
    if (exact.size(1) == 1)
      return of == 1 ? z[0] : -z[0];
    long double others = 0;
    for (std::int64_t k = 0; k < count; ++k)
      others += k == of ? 0 : std::exp(static_cast<long double>(z[k]) - z[of]);
    return -std::log(others);
  };
  long double sum = 0;
  for (std::int64_t of = 0; of < count; ++of) {
    double in_order = 0;
    double pairs = 0;
    for (std::int64_t a = 0; a < rows; ++a) {
      for (std::int64_t b = 0; b < rows; ++b) {
        if (classes[a].item<std::int64_t>() != of || classes[b].item<std::int64_t>() == of)
          continue;
        in_order += odds(a, of) > odds(b, of) ? 1 : odds(a, of) == odds(b, of) ? 0.5 : 0;
        ++pairs;
      }
    }
    sum += in_order / pairs;
  }
  return static_cast<double>(sum / count);
}

TEST(Auc, RanksLogitsThatProbabilitiesCannotTellApart) {
  const TaskRandom random(8);
  for (const std::int64_t width : {1, 2, 4}) {
    for (const double scale : {1.0, 30.0, 500.0}) {
      const std::int64_t classes = std::max<std::int64_t>(width, 2);
      const at::Tensor targets = at::arange(40).remainder(classes);
      // Sure of one class, so that probabilities are 0 and 1.
      at::Tensor logits = at::randn({40, width}).mul(scale);
      logits.select(1, 0).add_(2 * scale);
      EvaluatedRows rows =
          rows_of(width == 1 ? at::cat({at::sigmoid(-logits), at::sigmoid(logits)}, 1)
                             : at::softmax(logits, 1),
                  targets);
      rows.prediction.logits = logits;

      EXPECT_NEAR(value_of("auc", MetricCase::classes(classes), rows),
                  share_of_pairs_in_order(logits, targets), 1e-12)
          << width << " logits of about " << scale;
    }
  }
}

TEST(Auc, LeavesOutClassesWithoutRows) {
  // Class 2 has no rows; the other two are separated perfectly.
  const EvaluatedRows rows =
      rows_of(choosing({0, 1, 0}, 3), at::tensor(std::vector<std::int64_t>{0, 1, 0}));

  EXPECT_EQ(value_of("auc", MetricCase::classes(3), rows), 1);
}

TEST(LogLoss, KeepsAnEpsilonFromCertainty) {
  // scikit-learn: log_loss([0, 1], [[0, 1], [0.25, 0.75]])
  const at::Tensor sure =
      at::tensor(std::vector<double>{0, 1, 0.25, 0.75}).to(at::kDouble).view({2, 2});
  const at::Tensor targets = at::tensor(std::vector<std::int64_t>{0, 1});

  EXPECT_NEAR(value_of("log_loss", MetricCase::classes(2), rows_of(sure, targets)),
              18.165667730784467, 1e-12);
  const double single =
      -0.5 * (std::log(double{std::numeric_limits<float>::epsilon()}) + std::log(0.75));
  EXPECT_NEAR(value_of("log_loss", MetricCase::classes(2), rows_of(sure.to(at::kFloat), targets)),
              single, 1e-12);
}

TEST(R2, HandlesConstantTargetsAsScikitLearnDoes) {
  const at::Tensor constant = at::full({3, 1}, 5.0, at::kDouble);
  const TargetSpec one = MetricCase::numbers(1);

  EXPECT_EQ(value_of("r2", one, rows_of(constant, constant)), 1);
  EXPECT_EQ(value_of("r2", one, rows_of(constant.add(1), constant)), 0);
  EXPECT_EQ(value_of("r2", one, rows_of(constant.slice(0, 0, 1), constant.slice(0, 0, 1))).why(),
            "there is one row, and it takes two");
}

TEST(R2, KeepsItsDigitsFarFromZero) {
  const TaskRandom random(1);
  const at::Tensor targets = at::randn({100, 1}, at::kDouble);
  const at::Tensor predictions = targets.add(at::randn({100, 1}, at::kDouble), 0.1);
  const TargetSpec one = MetricCase::numbers(1);

  const double here = value_of("r2", one, rows_of(predictions, targets));
  const double far = value_of("r2", one, rows_of(predictions.add(1e6), targets.add(1e6)));

  EXPECT_NEAR(far, here, 1e-9);
}

template <typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Metrics, SayForWhichTargetsTheyHaveAMeaning) {
  const auto refusal = [](std::string_view name, const TargetSpec& target) {
    return message_of([&] { make(name, target); });
  };

  for (const std::string name : {"accuracy", "macro_precision", "macro_recall", "macro_f1"}) {
    EXPECT_EQ(refusal(name, MetricCase::numbers(1)),
              "metric \"" + name +
                  "\" needs classes or labels, but the target \"price\" is numbers; use rmse, mae "
                  "or r2, or set \"task\": \"classification\" in the data if its numbers stand for "
                  "classes");
  }
  for (const std::string name :
       {"confusion_matrix", "auc", "perplexity", "mean_iou", "bits_per_byte"}) {
    EXPECT_EQ(refusal(name, MetricCase::labels(3)),
              "metric \"" + name +
                  "\" needs classes, but the target \"tags\" is labels; use macro_f1, "
                  "hamming_loss or accuracy");
  }
  for (const std::string name : {"mse", "rmse", "mae", "r2", "residuals", "pinball"}) {
    EXPECT_EQ(refusal(name, MetricCase::classes(3)),
              "metric \"" + name +
                  "\" needs numbers, but the target \"species\" is classes; use accuracy, macro_f1 "
                  "or log_loss");
  }
  EXPECT_EQ(
      refusal("mse", MetricCase::distribution(3)),
      "metric \"mse\" needs numbers, but the target \"mixture\" is distribution; use log_loss "
      "or kl_div");
  EXPECT_EQ(refusal("confusion_matrix", MetricCase::classes(1001)),
            "metric \"confusion_matrix\" takes at most 1000 classes, but the target \"species\" "
            "has 1001");
}

// By hand: "ab" has two bytes, <0x0A> one, the end of a text none. The right tokens have the
// probabilities 1/2, 1/4 and 1/8 with the weights 1, 2 and 1: 1 + 2 * 2 + 3 bits over 2 + 2 * 1
// bytes.
TEST(BitsPerByte, CountsTheBytesOfTokensByTheirNames) {
  const TargetSpec target = treadle::class_target("next", {"ab", "<0x0A>", "<end_of_text>"}, {3});
  Batch batch;
  batch.rows = at::zeros({1}, at::kLong);
  batch.targets = {at::tensor({0, 1, 2}, at::kLong).unsqueeze(0)};
  batch.position_weights = {at::tensor({1.0, 2.0, 1.0}, at::kDouble).unsqueeze(0)};
  batch.original_targets = batch.targets;
  Prediction prediction;
  prediction.values = at::tensor({0.5, 0.25, 0.25, 0.5, 0.25, 0.25, 0.5, 0.375, 0.125}, at::kDouble)
                          .view({1, 3, 3});
  const auto metric = make("bits_per_byte", target);

  metric->update(prediction, TargetBatch::original(batch, 0, target));

  EXPECT_NEAR(metric->compute().values[0].value, 8.0 / 4, 1e-12);
}

TEST(Metrics, TheirSchemasNameTheTargetsTheyTake) {
  const std::vector<TargetSpec> targets{MetricCase::classes(2), MetricCase::numbers(2),
                                        MetricCase::labels(2), MetricCase::distribution(2)};
  for (const auto& offer : plugin().offers()) {
    const nlohmann::json& said = offer.schema.at("x-treadle-target");
    for (const TargetSpec& target : targets) {
      // Its default is that of more classes than two.
      const nlohmann::json parameters =
          offer.name == "top_k_accuracy" ? nlohmann::json{{"k", 1}} : nlohmann::json::object();
      const bool takes =
          message_of([&] { make(offer.name, target, parameters); }) == "nothing was thrown";
      const std::string kind(name_of(target.kind));
      const bool says = said == kind || (said.is_array() &&
                                         std::find(said.begin(), said.end(), kind) != said.end());
      EXPECT_EQ(takes, says) << offer.name << " " << kind;
    }
  }
}

TEST(CountMetric, MacroCountsLabelsThatNeverOccur) {
  // The second label is neither actual nor predicted, the third is never predicted. scikit-learn's
  // values, as above.
  const TargetSpec three = MetricCase::labels(3);
  const EvaluatedRows rows =
      rows_of(at::tensor({0.9, 0.1, 0.5, 0.2, 0.3, 0.4}, at::kDouble).view({2, 3}),
              at::tensor({1, 0, 1, 1, 0, 0}, at::kDouble).view({2, 3}));

  EXPECT_NEAR(value_of("macro_precision", three, rows), 0.3333333333333333, 1e-15);
  EXPECT_NEAR(value_of("macro_recall", three, rows), 0.16666666666666666, 1e-15);
  EXPECT_NEAR(value_of("macro_f1", three, rows), 0.2222222222222222, 1e-15);
}

TEST(KlDiv, OfSureTargetsIsTheLogLoss) {
  const TargetSpec two = MetricCase::distribution(2);
  const EvaluatedRows rows = rows_of(at::tensor({0.25, 0.75}, at::kDouble).view({1, 2}),
                                     at::tensor({0.0, 1.0}, at::kDouble).view({1, 2}));

  EXPECT_NEAR(value_of("kl_div", two, rows), -std::log(0.75), 1e-15);
  EXPECT_NEAR(value_of("log_loss", two, rows), -std::log(0.75), 1e-15);
}

TEST(Pinball, GivesTheMeanOverQuantilesFirst) {
  const TargetSpec one = MetricCase::numbers(1);
  const auto metric = make("pinball", one);

  update(*metric, reference_numbers(1, Layout::kRows), one);

  const auto values = metric->compute().values;
  ASSERT_EQ(values.size(), 5u);
  EXPECT_EQ(values[0].name, "pinball");
  EXPECT_NEAR(values[0].value, (values[1].value + values[2].value + values[3].value) / 3, 1e-15);
  EXPECT_EQ(values[0].direction, Direction::kLowerIsBetter);
  EXPECT_EQ(values[4].name, "coverage");
  EXPECT_EQ(values[4].direction, Direction::kNone);
}

TEST(Pinball, NamesTheQuantileThatIsMissing) {
  const TargetSpec one = MetricCase::numbers(1);
  EvaluatedRows rows = rows_of(at::zeros({2, 1}, at::kDouble), at::zeros({2, 1}, at::kDouble));

  EXPECT_EQ(message_of([&] { value_of("pinball", one, rows); }),
            "metric \"pinball\" needs the quantile q0.1, but the loss predicts no quantiles; "
            "state it in the \"quantiles\" of the loss, which is \"quantile\" or that of a "
            "distribution");
  rows.prediction.extras = {{"q0.25", rows.prediction.values}, {"q0.75", rows.prediction.values}};
  EXPECT_EQ(message_of([&] { value_of("pinball", one, rows); }),
            "metric \"pinball\" needs the quantile q0.1, but the loss predicts q0.25, q0.75; "
            "state it in the \"quantiles\" of the loss, which is \"quantile\" or that of a "
            "distribution");
}

TEST(Metrics, RefuseTheStateOfOtherData) {
  const auto of_three = make("macro_f1", MetricCase::classes(3));
  const auto of_two = make("macro_f1", MetricCase::classes(2));
  EXPECT_THROW(of_two->load_state(of_three->state()), StorageError);

  const auto one_wide = make("mse", MetricCase::numbers(1));
  const auto two_wide = make("mse", MetricCase::numbers(2));
  EXPECT_THROW(one_wide->load_state(two_wide->state()), StorageError);
}

}  // namespace
}  // namespace treadle::testing
