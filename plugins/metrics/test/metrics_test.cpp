#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <treadle/testing/metric_contract.h>
#include <treadle/testing/plugin_under_test.h>

namespace treadle::testing {
namespace {

const PluginUnderTest& plugin() {
  static const PluginUnderTest kPlugin(TREADLE_PLUGIN_FOLDER);
  return kPlugin;
}

std::unique_ptr<MetricComputer> make(std::string_view name, const TargetSpec& target,
                                     nlohmann::json parameters = {}) {
  auto metric = plugin().make<MetricComputer>(name, std::move(parameters));
  metric->start(target);
  return metric;
}

MetricCase case_of(std::string name, std::string component, TargetSpec target,
                   nlohmann::json parameters = {}) {
  return {std::move(name),
          [component, parameters] { return plugin().make<MetricComputer>(component, parameters); },
          std::move(target)};
}

// Single precision moves differences across the edges of bins.
MetricCase residuals_case(std::string name, std::int64_t width) {
  MetricCase one = case_of(std::move(name), "residuals", MetricCase::numbers(width));
  one.single_precision_tolerance = 2;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Metrics, MetricContract,
    ::testing::Values(case_of("Accuracy", "accuracy", MetricCase::classes(3)),
                      case_of("MacroPrecision", "macro_precision", MetricCase::classes(3)),
                      case_of("MacroRecall", "macro_recall", MetricCase::classes(3)),
                      case_of("MacroF1", "macro_f1", MetricCase::classes(3)),
                      case_of("MicroPrecision", "micro_precision", MetricCase::classes(3)),
                      case_of("MicroRecall", "micro_recall", MetricCase::classes(3)),
                      case_of("MicroF1", "micro_f1", MetricCase::classes(2)),
                      case_of("RecallPerClass", "macro_recall", MetricCase::classes(3),
                              {{"per_class", true}}),
                      case_of("ConfusionMatrix", "confusion_matrix", MetricCase::classes(3)),
                      case_of("AucOfTwo", "auc", MetricCase::classes(2)),
                      case_of("AucOfThree", "auc", MetricCase::classes(3)),
                      case_of("LogLoss", "log_loss", MetricCase::classes(3)),
                      case_of("Mse", "mse", MetricCase::numbers(1)),
                      case_of("Rmse", "rmse", MetricCase::numbers(2)),
                      case_of("Mae", "mae", MetricCase::numbers(2)),
                      case_of("R2", "r2", MetricCase::numbers(1)),
                      case_of("R2OfTwo", "r2", MetricCase::numbers(2)),
                      residuals_case("Residuals", 1), residuals_case("ResidualsOfTwo", 2)),
    CaseName());

// --- the same numbers as scikit-learn ----------------------------------------------------------
// Computed by scikit-learn 1.2.1: /usr/bin/python3 plugins/metrics/test/reference.py

constexpr std::int64_t kReferenceRows = 60;

JudgedRows reference_rows(const at::Tensor& values, const at::Tensor& targets, bool weighted) {
  JudgedRows rows;
  rows.predictions.values = values;
  rows.batch.targets = rows.batch.original_targets = targets;
  rows.batch.rows = at::arange(kReferenceRows);
  if (weighted)
    rows.batch.weights = at::arange(kReferenceRows).remainder(4).add(1).to(at::kDouble).mul(0.25);
  return rows;
}

JudgedRows reference_classes(std::int64_t classes, bool weighted) {
  at::Tensor targets = at::zeros({kReferenceRows}, at::kLong);
  at::Tensor shares = at::zeros({kReferenceRows, classes}, at::kDouble);
  for (std::int64_t i = 0; i < kReferenceRows; ++i) {
    targets[i] = (i * 7 + i / 5) % classes;
    for (std::int64_t c = 0; c < classes; ++c)
      shares[i][c] = 1 + (5 * i + 7 * c) % 11 + (c == (i * 7 + i / 5) % classes ? 4 : 0);
  }
  return reference_rows(shares.div(shares.sum(1, true)), targets, weighted);
}

JudgedRows reference_numbers(std::int64_t width, bool weighted) {
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
  return reference_rows(predicted, actual, weighted);
}

struct Reference {
  std::string name;
  TargetSpec target;
  bool weighted;
  std::map<std::string, double> values;
};

class AgainstScikitLearn : public ::testing::TestWithParam<Reference> {};

TEST_P(AgainstScikitLearn, GivesTheSameValues) {
  const Reference& reference = GetParam();
  const bool classes = reference.target.kind == TargetKind::kClasses;
  const JudgedRows rows =
      classes ? reference_classes(reference.target.class_count(), reference.weighted)
              : reference_numbers(reference.target.width, reference.weighted);
  for (const auto& [name, expected] : reference.values) {
    const auto metric = make(name, reference.target);

    for (std::int64_t begin = 0; begin < kReferenceRows; begin += 17) {
      const JudgedRows batch = rows.part(begin, std::min(begin + 17, kReferenceRows));
      metric->update(batch.predictions, batch.batch);
    }

    const MetricResult result = metric->compute();
    ASSERT_EQ(result.values.size(), 1u);
    EXPECT_EQ(result.values[0].name, name);
    EXPECT_NEAR(result.values[0].value, expected, 1e-12) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Metrics, AgainstScikitLearn,
                         ::testing::Values(Reference{"TwoClasses",
                                                     MetricCase::classes(2),
                                                     false,
                                                     {{"accuracy", 0.5166666666666667},
                                                      {"macro_precision", 0.48534798534798534},
                                                      {"macro_recall", 0.48611111111111105},
                                                      {"macro_f1", 0.48444444444444434},
                                                      {"micro_precision", 0.5166666666666667},
                                                      {"micro_recall", 0.5166666666666667},
                                                      {"micro_f1", 0.5166666666666667},
                                                      {"auc", 0.7592592592592593},
                                                      {"log_loss", 0.5101677673506206}}},
                                           Reference{"TwoClassesWeighted",
                                                     MetricCase::classes(2),
                                                     true,
                                                     {{"accuracy", 0.5533333333333333},
                                                      {"macro_precision", 0.5262594825909357},
                                                      {"macro_recall", 0.525},
                                                      {"macro_f1", 0.5243954379821116},
                                                      {"micro_precision", 0.5533333333333333},
                                                      {"micro_recall", 0.5533333333333333},
                                                      {"micro_f1", 0.5533333333333333},
                                                      {"auc", 0.7944444444444445},
                                                      {"log_loss", 0.4882154462143552}}},
                                           Reference{"ThreeClasses",
                                                     MetricCase::classes(3),
                                                     false,
                                                     {{"accuracy", 0.45},
                                                      {"macro_precision", 0.42185592185592186},
                                                      {"macro_recall", 0.4305555555555555},
                                                      {"macro_f1", 0.42518518518518517},
                                                      {"micro_precision", 0.45},
                                                      {"micro_recall", 0.45},
                                                      {"micro_f1", 0.45},
                                                      {"auc", 0.8396990740740741},
                                                      {"log_loss", 0.8508902242336357}}},
                                           Reference{"ThreeClassesWeighted",
                                                     MetricCase::classes(3),
                                                     true,
                                                     {{"accuracy", 0.4533333333333333},
                                                      {"macro_precision", 0.4071871297055874},
                                                      {"macro_recall", 0.4166666666666667},
                                                      {"macro_f1", 0.41034017531948846},
                                                      {"micro_precision", 0.4533333333333333},
                                                      {"micro_recall", 0.4533333333333333},
                                                      {"micro_f1", 0.4533333333333333},
                                                      {"auc", 0.8464506172839507},
                                                      {"log_loss", 0.8348996329740135}}},
                                           Reference{"OneNumber",
                                                     MetricCase::numbers(1),
                                                     false,
                                                     {{"mse", 0.1259376104119932},
                                                      {"rmse", 0.3548768947282891},
                                                      {"mae", 0.32012110392960647},
                                                      {"r2", 0.9713142122103408}}},
                                           Reference{"TwoNumbers",
                                                     MetricCase::numbers(2),
                                                     false,
                                                     {{"mse", 0.124613691094903},
                                                      {"rmse", 0.35300166374062014},
                                                      {"mae", 0.3178252285301672},
                                                      {"r2", 0.9722008968189253}}},
                                           Reference{"OneNumberWeighted",
                                                     MetricCase::numbers(1),
                                                     true,
                                                     {{"mse", 0.12553694014609346},
                                                      {"rmse", 0.3543119249278712},
                                                      {"mae", 0.3210024264125127},
                                                      {"r2", 0.9721677808425172}}},
                                           Reference{"TwoNumbersWeighted",
                                                     MetricCase::numbers(2),
                                                     true,
                                                     {{"mse", 0.1243790718347524},
                                                      {"rmse", 0.3526703518479768},
                                                      {"mae", 0.3178454988110244},
                                                      {"r2", 0.9731136465123964}}}),
                         CaseName());

TEST(CountMetric, NamesTheValueOfEachClass) {
  const auto metric = make("macro_recall", MetricCase::classes(3), {{"per_class", true}});
  const JudgedRows rows = reference_classes(3, false);

  metric->update(rows.predictions, rows.batch);

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

JudgedRows rows_of(const at::Tensor& values, const at::Tensor& targets) {
  JudgedRows rows;
  rows.predictions.values = values;
  rows.batch.targets = rows.batch.original_targets = targets;
  rows.batch.rows = at::arange(targets.size(0));
  return rows;
}

double value_of(std::string_view name, const TargetSpec& target, const JudgedRows& rows) {
  const auto metric = make(name, target);
  metric->update(rows.predictions, rows.batch);
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
  const JudgedRows rows =
      rows_of(choosing({0, 1, 1, 1}, 4), at::tensor(std::vector<std::int64_t>{0, 0, 1, 3}));

  EXPECT_NEAR(value_of("macro_precision", MetricCase::classes(4), rows), 0.4444444444444444, 1e-15);
  EXPECT_NEAR(value_of("macro_recall", MetricCase::classes(4), rows), 0.5, 1e-15);
  EXPECT_NEAR(value_of("macro_f1", MetricCase::classes(4), rows), 0.38888888888888884, 1e-15);
}

TEST(CountMetric, TakesTheFirstOfEqualProbabilities) {
  const JudgedRows rows =
      rows_of(at::full({2, 2}, 0.5, at::kDouble), at::tensor(std::vector<std::int64_t>{0, 1}));

  EXPECT_EQ(value_of("accuracy", MetricCase::classes(2), rows), 0.5);
  EXPECT_EQ(value_of("macro_recall", MetricCase::classes(2), rows), 0.5);
}

TEST(ConfusionMatrix, HasRowsForActualAndColumnsForPredictedClasses) {
  const auto metric = make("confusion_matrix", MetricCase::classes(3));
  const JudgedRows rows = reference_classes(3, false);

  metric->update(rows.predictions, rows.batch);

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
  const JudgedRows rows = reference_classes(2, true);

  metric->update(rows.predictions, rows.batch);

  const at::Tensor expected =
      at::tensor(std::vector<double>{15, 7.5, 9.25, 5.75}).to(at::kDouble).view({2, 2});
  EXPECT_TRUE(at::equal(metric->compute().tables[0].values, expected));
}

TEST(Auc, IsNaNWithOneClassOnly) {
  const JudgedRows rows =
      rows_of(at::full({3, 2}, 0.5, at::kDouble), at::tensor(std::vector<std::int64_t>{1, 1, 1}));

  EXPECT_TRUE(std::isnan(value_of("auc", MetricCase::classes(2), rows)));
}

TEST(Auc, CountsTiesHalf) {
  const JudgedRows rows = rows_of(at::full({4, 2}, 0.5, at::kDouble),
                                  at::tensor(std::vector<std::int64_t>{0, 1, 1, 0}));

  EXPECT_EQ(value_of("auc", MetricCase::classes(2), rows), 0.5);
}

TEST(Auc, LeavesOutClassesWithoutRows) {
  // Class 2 has no rows; the other two are separated perfectly.
  const JudgedRows rows =
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
  EXPECT_TRUE(
      std::isnan(value_of("r2", one, rows_of(constant.slice(0, 0, 1), constant.slice(0, 0, 1)))));
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

TEST(Metrics, SayForWhichTargetsTheyHaveAMeaning) {
  const auto message_of = [](std::string_view name, const TargetSpec& target) -> std::string {
    try {
      make(name, target);
    } catch (const DataError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };

  for (const std::string name :
       {"accuracy", "macro_precision", "macro_recall", "macro_f1", "micro_precision",
        "micro_recall", "micro_f1", "confusion_matrix", "auc", "log_loss"}) {
    EXPECT_EQ(message_of(name, MetricCase::numbers(1)),
              "metric \"" + name +
                  "\" needs classes, but the target \"price\" is numbers; use rmse, mae or r2");
  }
  for (const std::string name : {"mse", "rmse", "mae", "r2", "residuals"}) {
    EXPECT_EQ(message_of(name, MetricCase::classes(3)),
              "metric \"" + name +
                  "\" needs numbers, but the target \"species\" is classes; use accuracy, macro_f1 "
                  "or log_loss");
  }
  EXPECT_EQ(message_of("accuracy", TargetSpec{}),
            "metric \"accuracy\" needs classes, but the data has no target; name the target column "
            "in the data slot");
  EXPECT_EQ(message_of("confusion_matrix", MetricCase::classes(1001)),
            "metric \"confusion_matrix\" takes at most 1000 classes, but the target \"species\" "
            "has 1001");
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
