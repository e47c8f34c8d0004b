#include <treadle/host/compare/significance.h>

#include <array>
#include <cmath>

#include <gmock/gmock.h>

// Expected values: SciPy 1.10.1 and NumPy 1.24.2, by the command above each test.
namespace treadle::compare {
namespace {

using testing::DoubleEq;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pair;

constexpr double kRoundingOfTests = 1e-9;

const std::vector<double> kDifferences{0.021, -0.004, 0.013, 0.030, 0.008};

// x.mean(), x.std(ddof=1), scipy.stats.t.interval(0.95, 2, x.mean(), scipy.stats.sem(x)) of
// x = numpy.array([0.5, 0.75, 0.625])
TEST(Significance, ASpreadHasTheIntervalOfStudentsT) {
  const Spread spread = spread_of(std::array{0.5, 0.75, 0.625});

  EXPECT_EQ(spread.n, 3);
  EXPECT_DOUBLE_EQ(spread.mean, 0.625);
  EXPECT_NEAR(spread.deviation.value(), 0.125, kRoundingOfTests);
  EXPECT_THAT(spread.interval.value(), Pair(DoubleNear(0.3144827860195309, kRoundingOfTests),
                                            DoubleNear(0.935517213980469, kRoundingOfTests)));
}

TEST(Significance, OneMeasurementHasNoSpreadAndNoneHasNoMean) {
  const Spread one = spread_of(std::array{0.5});
  EXPECT_EQ(one.mean, 0.5);
  EXPECT_FALSE(one.deviation || one.interval);

  EXPECT_TRUE(std::isnan(spread_of({}).mean));
}

// scipy.stats.ttest_1samp(d, 0); scipy.stats.t.interval(0.95, 4, d.mean(), scipy.stats.sem(d))
TEST(Significance, PairedTIsThatOfScipy) {
  const DifferenceTest test = paired_t(kDifferences).value();

  EXPECT_NEAR(test.difference, 0.0136, kRoundingOfTests);
  EXPECT_NEAR(test.t, 2.358184529549351, kRoundingOfTests);
  EXPECT_EQ(test.degrees_of_freedom, 4);
  EXPECT_NEAR(test.p, 0.07781689364653108, kRoundingOfTests);
  EXPECT_THAT(test.interval, Pair(DoubleNear(-0.0024121707854244667, kRoundingOfTests),
                                  DoubleNear(0.02961217078542447, kRoundingOfTests)));
}

// se = d.std(ddof=1) * numpy.sqrt(1/5 + 0.25); t = d.mean() / se; 2 * scipy.stats.t.sf(t, 4);
// scipy.stats.t.interval(0.95, 4, d.mean(), se)
TEST(Significance, TheCorrectedTestCountsThatTrainingRowsOverlap) {
  const DifferenceTest test = corrected_resampled_t(kDifferences, 0.25).value();

  EXPECT_NEAR(test.t, 1.5721230196995675, kRoundingOfTests);
  EXPECT_NEAR(test.p, 0.19102348876564168, kRoundingOfTests);
  EXPECT_THAT(test.interval, Pair(DoubleNear(-0.0104182561781367, kRoundingOfTests),
                                  DoubleNear(0.0376182561781367, kRoundingOfTests)));
  EXPECT_NEAR(corrected_resampled_t(kDifferences, 0)->p, paired_t(kDifferences)->p,
              kRoundingOfTests);
}

// scipy.stats.ttest_ind(a, b, equal_var=False); the degrees of freedom by Welch's formula
TEST(Significance, WelchsTestIsThatOfScipy) {
  const DifferenceTest test =
      welch_t(std::array{0.90, 0.93, 0.91, 0.95}, std::array{0.88, 0.80, 0.86, 0.91, 0.84}).value();

  EXPECT_NEAR(test.t, 2.984970383181465, kRoundingOfTests);
  EXPECT_NEAR(test.degrees_of_freedom, 6.297230199186098, kRoundingOfTests);
  EXPECT_NEAR(test.p, 0.023093497693208762, kRoundingOfTests);
  EXPECT_THAT(test.interval, Pair(DoubleNear(0.012225603010100408, kRoundingOfTests),
                                  DoubleNear(0.11677439698989982, kRoundingOfTests)));
}

TEST(Significance, EqualDifferencesAreNotCalledCertain) {
  EXPECT_FALSE(paired_t(std::array{0.1, 0.1}));
  EXPECT_FALSE(paired_t(std::array{0.1, 0.3 - 0.2})) << "they differ by rounding";
  EXPECT_FALSE(welch_t(std::array{0.9, 0.9}, std::array{0.8, 0.8}));
  EXPECT_FALSE(paired_t(std::array{0.1})) << "one difference has no spread";

  EXPECT_EQ(paired_t(std::array{0.0, 0.0})->p, 1);
  EXPECT_EQ(welch_t(std::array{0.9, 0.9}, std::array{0.9, 0.9})->p, 1);
}

// scipy.stats.wilcoxon(d, mode="exact") of the depression scores in Hollander and Wolfe
TEST(Significance, TheSignedRankTestIsExactForFewDifferences) {
  const std::array before{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const std::array after{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  std::vector<double> differences;
  for (std::size_t i = 0; i < before.size(); ++i)
    differences.push_back(before[i] - after[i]);

  const SignedRankTest test = wilcoxon_signed_rank(differences).value();

  EXPECT_EQ(test.n, 9);
  EXPECT_EQ(test.statistic, 5);
  EXPECT_NEAR(test.p, 0.0390625, kRoundingOfTests);
}

// r = scipy.stats.rankdata(abs(x)); the share of all 2**8 signs with a sum of r <= 8, twice
TEST(Significance, TheSignedRankTestIsExactWithTiesAndLeavesZerosOut) {
  const SignedRankTest test =
      wilcoxon_signed_rank(std::array<double, 10>{1, 1, 0, -1, 2, 2, -3, 4, 0, 5}).value();

  EXPECT_EQ(test.n, 8);
  EXPECT_EQ(test.statistic, 8);
  EXPECT_NEAR(test.p, 0.171875, kRoundingOfTests);
  EXPECT_FALSE(wilcoxon_signed_rank(std::array{0.0, 0.0}));
}

// k = numpy.arange(60); x = numpy.where(k % 3 == 0, -1.0, 1.0) * ((k * 7) % 11 + 1);
// scipy.stats.wilcoxon(x, mode="approx", correction=False)
TEST(Significance, TheSignedRankTestOfManyDifferencesIsCorrectedForTies) {
  std::vector<double> differences;
  for (int k = 0; k < 60; ++k)
    differences.push_back((k % 3 == 0 ? -1.0 : 1.0) * (k * 7 % 11 + 1));

  const SignedRankTest test = wilcoxon_signed_rank(differences).value();

  EXPECT_EQ(test.statistic, 646);
  EXPECT_NEAR(test.p, 0.047450949453063024, kRoundingOfTests);
}

// scipy.stats.binomtest(min(b, c), b + c, 0.5).pvalue
TEST(Significance, McNemarsTestIsTheBinomialOne) {
  EXPECT_NEAR(mcnemar_exact(3, 12), 0.03515625, kRoundingOfTests);
  EXPECT_NEAR(mcnemar_exact(12, 3), 0.03515625, kRoundingOfTests);
  EXPECT_NEAR(mcnemar_exact(40, 61), 0.04604406692934279, kRoundingOfTests);
  EXPECT_NEAR(mcnemar_exact(0, 6), 0.03125, kRoundingOfTests);
  EXPECT_EQ(mcnemar_exact(7, 7), 1);
  EXPECT_EQ(mcnemar_exact(0, 1), 1);
  EXPECT_EQ(mcnemar_exact(0, 0), 1);
}

// x = numpy.sin(numpy.arange(200) * 0.37) + 0.02; numpy.percentile of 200 000 means of
// numpy.random.default_rng(1).choice(x, 200): [-0.06399, 0.13137]
TEST(Significance, TheBootstrapFindsTheIntervalOfTheMean) {
  std::vector<double> differences;
  for (int i = 0; i < 200; ++i)
    differences.push_back(std::sin(i * 0.37) + 0.02);
  constexpr double kOf2000Draws = 0.006;  // 2.5 deviations of such a quantile

  const Interval interval = bootstrap_interval(differences, 1).value();

  EXPECT_NEAR(interval.first, -0.06399, kOf2000Draws);
  EXPECT_NEAR(interval.second, 0.13137, kOf2000Draws);
  EXPECT_EQ(interval, bootstrap_interval(differences, 1));
  EXPECT_FALSE(bootstrap_interval(std::array{0.1}, 1));
}

// x = numpy.sin(numpy.arange(10000) * 0.37) + 0.02;
// scipy.stats.norm.interval(0.95, x.mean(), scipy.stats.sem(x))
TEST(Significance, TheIntervalOfManyDifferencesIsTheNormalOne) {
  std::vector<double> differences;
  for (int i = 0; i < 10'000; ++i)
    differences.push_back(std::sin(i * 0.37) + 0.02);

  EXPECT_THAT(bootstrap_interval(differences, 1).value(),
              Pair(DoubleNear(0.006255759604142961, kRoundingOfTests),
                   DoubleNear(0.033976300088438396, kRoundingOfTests)));
}

// By hand: 4 * 0.005, 3 * 0.01, 2 * 0.03, and 0.04 is raised to the one before it.
TEST(Significance, HolmsCorrectionStepsDown) {
  EXPECT_THAT(holm(std::array{0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleEq(0.03), DoubleEq(0.06), DoubleEq(0.06), DoubleEq(0.02)));
  EXPECT_THAT(holm(std::array{0.7, 0.6}), ElementsAre(1, 1));
  EXPECT_TRUE(holm({}).empty());
}

}  // namespace
}  // namespace treadle::compare
