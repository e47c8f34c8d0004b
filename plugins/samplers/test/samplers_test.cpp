// Quantiles of chi square by scipy.stats.chi2.ppf(0.999, degrees of freedom); every other number by
// the formula beside it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/core/data/sampler.h>
#include <treadle/testing/data/sampler_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>

#include "curriculum.h"

namespace treadle::samplers {
namespace {

using nlohmann::json;
using testing::CaseName;
using ::testing::HasSubstr;
using testing::plain_data;
using testing::row_numbers;
using testing::sampler_data;
using testing::SamplerCase;
using testing::SamplerContract;
using Rows = std::vector<std::int64_t>;

const testing::PluginUnderTest& plugin() {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

std::unique_ptr<Sampler> make(const std::string& name, const json& parameters = {}) {
  return plugin().make<Sampler>(name, parameters);
}

SamplerCase case_of(std::string name, const std::string& sampler, const json& parameters = {},
                    bool each_row_once = true) {
  return {.name = std::move(name),
          .make = [sampler, parameters] { return make(sampler, parameters); },
          .each_row_once = each_row_once};
}

SamplerCase in_order(SamplerCase one) {
  one.is_random = false;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Samplers, SamplerContract,
    ::testing::Values(
        case_of("Shuffled", "shuffled"), in_order(case_of("Sequential", "sequential")),
        case_of("WeightedByClass", "weighted", {}, false),
        case_of("WeightedByWeights", "weighted", {{"by", "weights"}}, false),
        case_of("WeightedMoreThanThereAre", "weighted", {{"samples", 200}}, false),
        case_of("WeightedWithout", "weighted", {{"replacement", false}}),
        case_of("WeightedSomeWithout", "weighted",
                {{"by", "weights"}, {"replacement", false}, {"samples", 40}}, false),
        case_of("ByLength", "by_length"), case_of("ByLengthOneBatch", "by_length", {{"pool", 1}}),
        case_of("ByLengthAll", "by_length", {{"pool", 1000000000}}),
        case_of("CurriculumByLength", "curriculum", {}, false),
        case_of("CurriculumByColumn", "curriculum", {{"by", "a"}, {"pacing", "linear"}}, false)),
    CaseName());

/// A pass over all rows.
Rows pass_of(const Sampler& sampler, const RowReader& reader, std::int64_t batch_size = 8,
             std::uint64_t seed = 1, std::int64_t pass = 0) {
  const Rows rows = row_numbers(0, reader.rows());
  const auto order = sampler.order({&reader, rows, batch_size, pass, seed});
  Rows got(static_cast<std::size_t>(order->size()));
  order->fill(0, got);
  return got;
}

Rows sorted(Rows rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::string complaint_of(const std::string& sampler, const json& parameters,
                         const RowReader& reader) {
  try {
    pass_of(*make(sampler, parameters), reader);
  } catch (const DataError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

std::string refusal_of(const std::string& sampler, const json& parameters) {
  try {
    make(sampler, parameters);
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// Pearson's statistic of counts beside what is expected of `draws`.
double chi_square(const std::vector<double>& counts, const std::vector<double>& shares,
                  double draws) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = shares[i] * draws;
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

MatrixRows with_weights(const std::vector<float>& weights) {
  MatrixRows::Matrices matrices = plain_data(static_cast<std::int64_t>(weights.size()));
  matrices.spec.has_weights = true;
  matrices.weights = at::tensor(weights);
  return MatrixRows(std::move(matrices));
}

/// Classes 0 … 2 of each row: 90 of the first, 9 of the second, one of the third.
MatrixRows unbalanced() {
  MatrixRows::Matrices matrices = plain_data(100);
  const at::Tensor number = at::arange(100, at::kLong);
  matrices.spec.targets.push_back(treadle::class_target("kind", {"common", "usual", "rare"}));
  matrices.targets.push_back(number.ge(90).to(at::kLong) + number.ge(99).to(at::kLong));
  return MatrixRows(std::move(matrices));
}

// --- shuffled, sequential

TEST(Samplers, SequentialTakesTheRowsAsTheyCome) {
  const Rows rows = {9, 2, 5};
  const MatrixRows reader(plain_data(10));
  Rows got(3);

  make("sequential")->order({&reader, rows, 2, 4, 77})->fill(0, got);

  EXPECT_EQ(got, rows);
}

TEST(Samplers, ShuffledIsThePermutationOfTheSeed) {
  const MatrixRows reader(plain_data(1000));
  const Permutation permutation(1000, 5);

  const Rows got = pass_of(*make("shuffled"), reader, 8, 5);

  for (std::int64_t i = 0; i < 1000; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], permutation[i]);
}

// --- weighted

// Nine degrees of freedom: 27.88.
TEST(Weighted, DrawsRowsInProportionToTheirWeights) {
  const std::vector<float> weights = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const MatrixRows reader = with_weights(weights);
  constexpr std::int64_t kDraws = 100'000;
  const auto sampler = make("weighted", {{"by", "weights"}, {"samples", kDraws}});

  std::vector<double> counts(weights.size(), 0.0);
  for (const std::int64_t row : pass_of(*sampler, reader))
    ++counts[static_cast<std::size_t>(row)];

  std::vector<double> shares;
  for (const float weight : weights)
    shares.push_back(weight / 55.0);
  EXPECT_LT(chi_square(counts, shares, kDraws), 27.88);
}

// Without replacement, the first two of five rows are {a, b} with probability
// w_a / W * w_b / (W - w_a). 20 pairs, 19 degrees of freedom: 43.82.
TEST(Weighted, WithoutReplacementIsDrawingOneAfterTheOther) {
  const std::vector<float> weights = {1, 2, 3, 4, 10};
  const MatrixRows reader = with_weights(weights);
  constexpr std::uint64_t kPasses = 40'000;
  const auto sampler =
      make("weighted", {{"by", "weights"}, {"replacement", false}, {"samples", 2}});

  std::map<std::pair<std::int64_t, std::int64_t>, double> pairs;
  for (std::uint64_t pass = 0; pass < kPasses; ++pass) {
    const Rows two = pass_of(*sampler, reader, 8, pass);
    ++pairs[{two[0], two[1]}];
  }

  std::vector<double> counts;
  std::vector<double> shares;
  for (std::size_t a = 0; a < 5; ++a) {
    for (std::size_t b = 0; b < 5; ++b) {
      const std::pair<std::int64_t, std::int64_t> pair{a, b};
      if (a == b) {
        EXPECT_EQ(pairs[pair], 0);
        continue;
      }
      counts.push_back(pairs[pair]);
      shares.push_back(weights[a] / 20.0 * weights[b] / (20.0 - weights[a]));
    }
  }
  EXPECT_LT(chi_square(counts, shares, kPasses), 43.82);
}

// Two degrees of freedom: 13.82.
TEST(Weighted, DrawsEachClassEquallyOften) {
  const MatrixRows reader = unbalanced();
  constexpr std::int64_t kDraws = 30'000;

  std::vector<double> counts(3, 0.0);
  for (const std::int64_t row : pass_of(*make("weighted", {{"samples", kDraws}}), reader))
    ++counts[row < 90 ? 0 : row < 99 ? 1 : 2];

  EXPECT_LT(chi_square(counts, {1 / 3.0, 1 / 3.0, 1 / 3.0}, kDraws), 13.82);
}

TEST(Weighted, ClassWeightsAreSharesOfTheDraws) {
  const MatrixRows reader = unbalanced();
  constexpr std::int64_t kDraws = 30'000;
  const json parameters{{"samples", kDraws}, {"class_weights", {{"rare", 2}, {"common", 0.5}}}};

  std::vector<double> counts(3, 0.0);
  for (const std::int64_t row : pass_of(*make("weighted", parameters), reader))
    ++counts[row < 90 ? 0 : row < 99 ? 1 : 2];

  EXPECT_LT(chi_square(counts, {0.5 / 3.5, 1 / 3.5, 2 / 3.5}, kDraws), 13.82);
}

TEST(Weighted, NeverDrawsRowsOfWeightNothing) {
  const MatrixRows reader = with_weights({0, 1, 0, 0, 3, 0});
  const auto with = make("weighted", {{"by", "weights"}, {"samples", 10'000}});
  const auto without =
      make("weighted", {{"by", "weights"}, {"samples", 2}, {"replacement", false}});

  const Rows drawn = pass_of(*with, reader);

  EXPECT_EQ(std::set<std::int64_t>(drawn.begin(), drawn.end()), (std::set<std::int64_t>{1, 4}));
  EXPECT_EQ(sorted(pass_of(*without, reader)), (Rows{1, 4}));
}

TEST(Weighted, WeightsMayAddUpToMoreThanADoubleHolds) {
  const MatrixRows reader = unbalanced();
  const nlohmann::json weights{{"rare", 1e308}, {"common", 1e308}};

  for (const std::int64_t row : pass_of(*make("weighted", {{"class_weights", weights}}), reader))
    EXPECT_TRUE(row >= 0 && row < reader.rows()) << row;
}

// Weights so small that u^(1/w) would be 0 for all of them.
TEST(Weighted, TinyWeightsStillHaveAnOrder) {
  const MatrixRows reader = with_weights({1e-30F, 1e-30F, 1e-25F});
  const auto sampler =
      make("weighted", {{"by", "weights"}, {"samples", 1}, {"replacement", false}});

  std::map<std::int64_t, int> first;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    ++first[pass_of(*sampler, reader, 8, seed)[0]];

  EXPECT_GE(first[2], 195);
}

TEST(Weighted, DrawsAsManyAsItIsTold) {
  EXPECT_EQ(make("weighted")->samples(12), 12);
  EXPECT_EQ(make("weighted", {{"samples", 5}})->samples(12), 5);
}

TEST(Weighted, SaysWhatItNeeds) {
  const MatrixRows plain(plain_data(4));
  const MatrixRows classes = unbalanced();

  EXPECT_EQ(complaint_of("weighted", {}, plain),
            "the sampler weighted goes by class, and no target has one class per row; give rows "
            "weights and set \"by\": \"weights\"");
  EXPECT_THAT(complaint_of("weighted", {{"target", "price"}}, classes),
              HasSubstr("target \"price\" has not one class per row; targets that have: \"kind\""));
  EXPECT_THAT(complaint_of("weighted", {{"target", "kid"}}, classes),
              HasSubstr("no target \"kid\"; it has price, kind"));
  EXPECT_THAT(complaint_of("weighted", {{"by", "weights"}}, plain),
              HasSubstr("the data has no weights"));
  EXPECT_EQ(complaint_of("weighted", {{"class_weights", {{"rar", 2}}}}, classes),
            "the sampler weighted has \"class_weights\" for \"rar\", which is no class; did you "
            "mean \"rare\"?; the classes are \"common\", \"usual\", \"rare\"");
  EXPECT_EQ(complaint_of("weighted", {{"by", "weights"}}, with_weights({1, -1})),
            "row 1: a weight must be 0 or a positive number, got -1.000000");
  EXPECT_THAT(complaint_of("weighted", {{"by", "weights"}}, with_weights({0, 0})),
              HasSubstr("all training rows have weight 0"));
  EXPECT_EQ(complaint_of("weighted", {{"by", "weights"}, {"replacement", false}},
                         with_weights({1, 0, 1})),
            "the sampler weighted is to draw 3 rows without replacement, and 2 of the 3 training "
            "rows have a weight above 0; set \"samples\" to at most 2, or \"replacement\": true");
}

TEST(Weighted, RefusesKeysWithoutEffect) {
  EXPECT_EQ(refusal_of("weighted", {{"by", "weights"}, {"target", "kind"}}),
            "/target: has no effect with \"by\": \"weights\"");
  EXPECT_EQ(refusal_of("weighted", {{"by", "weights"}, {"class_weights", {{"a", 1}}}}),
            "/class_weights: has no effect with \"by\": \"weights\"");
}

// --- by_length

/// Positions that are padding when consecutive rows make batches.
std::int64_t padding_of(const Rows& order, const MatrixRows& reader, std::size_t batch_size) {
  const at::Tensor lengths = reader.lengths(0);
  std::int64_t padding = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += batch_size) {
    std::int64_t longest = 0;
    std::int64_t all = 0;
    const std::size_t end = std::min(order.size(), begin + batch_size);
    for (std::size_t i = begin; i < end; ++i) {
      const std::int64_t length = lengths[order[i]].item<std::int64_t>();
      longest = std::max(longest, length);
      all += length;
    }
    padding += longest * static_cast<std::int64_t>(end - begin) - all;
  }
  return padding;
}

// Lengths 1 to 6, 40 rows of each, all sorted together: no batch of 8 has two lengths. The r-th
// smallest of n such lengths has the expected value e(r, n), the sum over k = 1 … 6 of the
// probability that fewer than r of n are below k. 30 shuffled batches pad 30 * 8 * (e(8, 8) - 3.5)
// = 534; 15 pools of two sorted batches 15 * 8 * (e(8, 16) + e(16, 16) - 7) = 272. Of 3000 random
// orders the deviations are 18 and 13.
TEST(ByLength, PadsLess) {
  const MatrixRows reader(sampler_data(240));

  const std::int64_t shuffled = padding_of(pass_of(*make("shuffled"), reader), reader, 8);
  const std::int64_t pools =
      padding_of(pass_of(*make("by_length", {{"pool", 2}}), reader), reader, 8);
  const std::int64_t all = padding_of(pass_of(*make("by_length"), reader), reader, 8);

  EXPECT_EQ(all, 0);
  EXPECT_NEAR(static_cast<double>(shuffled), 534, 80);
  EXPECT_NEAR(static_cast<double>(pools), 272, 60);
}

TEST(ByLength, TakesEachRowOnceAndTheShortBatchLast) {
  const MatrixRows reader(sampler_data(83));  // 10 batches of 8, and 3 rows
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Rows order = pass_of(*make("by_length", {{"pool", 3}}), reader, 8, seed);

    EXPECT_EQ(sorted(order), row_numbers(0, 83));
    const at::Tensor lengths = reader.lengths(0);
    for (std::size_t begin = 0; begin < 83; begin += 8) {
      for (std::size_t i = begin + 1; i < std::min<std::size_t>(83, begin + 8); ++i) {
        EXPECT_LE(lengths[order[i - 1]].item<std::int64_t>(),
                  lengths[order[i]].item<std::int64_t>())
            << "seed " << seed << ", position " << i;
      }
    }
  }
}

// With drop_last they are not trained in this pass.
TEST(ByLength, WhatFillsNoBatchIsNotAlwaysTheLongest) {
  const MatrixRows reader(sampler_data(83));
  std::set<Rows> left_over;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Rows order = pass_of(*make("by_length", {{"pool", 50}}), reader, 8, seed);
    left_over.insert(sorted({order.end() - 3, order.end()}));
  }
  EXPECT_GE(left_over.size(), 15U);
}

TEST(ByLength, BatchesAreNotSortedAmongThemselves) {
  const MatrixRows reader(sampler_data(240));
  const at::Tensor lengths = reader.lengths(0);

  const Rows order = pass_of(*make("by_length"), reader);

  Rows firsts;
  for (std::size_t begin = 0; begin < 240; begin += 8)
    firsts.push_back(lengths[order[begin]].item<std::int64_t>());
  EXPECT_FALSE(std::is_sorted(firsts.begin(), firsts.end()));
}

TEST(ByLength, SaysWhatItNeeds) {
  const MatrixRows plain(plain_data(4));
  const MatrixRows texts(sampler_data(4));

  EXPECT_EQ(complaint_of("by_length", {}, plain),
            "the sampler by_length: no input has rows of several lengths; the input is "
            "\"features\"; take the sampler \"shuffled\", or give the data lengths");
  EXPECT_THAT(complaint_of("by_length", {{"input", "features"}}, texts),
              HasSubstr("input \"features\" has rows of one length"));
  EXPECT_THAT(complaint_of("by_length", {{"input", "txt"}}, texts), HasSubstr("no input \"txt\""));
  EXPECT_EQ(sorted(pass_of(*make("by_length", {{"input", "text"}}), texts)), (Rows{0, 1, 2, 3}));
}

// --- curriculum

Curriculum curriculum(const json& parameters) {
  return Curriculum(Config(plugin().completed("curriculum", parameters)));
}

// By hand, from Platanios et al. 2019, equations 4 and 7: with c0 = 0.2 and T = 4, linear
// 0.2 + 0.8 * p / 4; root sqrt(0.04 + 0.96 * p / 4) = sqrt(0.04), sqrt(0.28), sqrt(0.52), …
TEST(Curriculum, CompetenceIsThatOfThePaper) {
  const Curriculum linear =
      curriculum({{"start_fraction", 0.2}, {"passes", 4}, {"pacing", "linear"}});
  const Curriculum root = curriculum({{"start_fraction", 0.2}, {"passes", 4}, {"pacing", "root"}});
  const std::vector<double> by_line = {0.2, 0.4, 0.6, 0.8, 1, 1};
  const std::vector<double> by_root = {0.2, 0.5291502622, 0.7211102551, 0.8717797887, 1, 1};

  for (std::size_t pass = 0; pass < by_line.size(); ++pass) {
    EXPECT_NEAR(linear.competence(static_cast<std::int64_t>(pass)), by_line[pass], 1e-9) << pass;
    EXPECT_NEAR(root.competence(static_cast<std::int64_t>(pass)), by_root[pass], 1e-9) << pass;
  }
}

/// 20 rows whose column "x" is 19 … 0: the last row is the easiest.
MatrixRows falling() {
  MatrixRows::Matrices matrices = plain_data(20);
  matrices.inputs[0] = matrices.inputs[0].neg().add(19);
  return MatrixRows(std::move(matrices));
}

TEST(Curriculum, GoesThroughTheEasiestRowsAgainAndAgain) {
  const MatrixRows reader = falling();
  const auto sampler = make("curriculum", {{"by", "x"}, {"start_fraction", 0.25}, {"passes", 3}});

  const Rows order = pass_of(*sampler, reader);

  ASSERT_EQ(order.size(), 20U);
  std::set<Rows> cycles;
  for (std::size_t begin = 0; begin < 20; begin += 5) {
    const Rows cycle(order.begin() + static_cast<std::ptrdiff_t>(begin),
                     order.begin() + static_cast<std::ptrdiff_t>(begin) + 5);
    EXPECT_EQ(sorted(cycle), (Rows{15, 16, 17, 18, 19}));
    cycles.insert(cycle);
  }
  EXPECT_GT(cycles.size(), 1U) << "each cycle has an order of its own";
}

TEST(Curriculum, AddsHarderRowsPassByPass) {
  const MatrixRows reader = falling();
  const auto sampler = make(
      "curriculum", {{"by", "x"}, {"start_fraction", 0.25}, {"passes", 3}, {"pacing", "linear"}});

  for (std::int64_t pass = 0; pass < 5; ++pass) {
    const Rows order = pass_of(*sampler, reader, 8, 9, pass);
    const std::set<std::int64_t> rows(order.begin(), order.end());
    const auto expected =
        static_cast<std::size_t>(std::min(20.0, std::ceil(20 * (0.25 + 0.25 * pass))));
    EXPECT_EQ(rows.size(), expected) << "pass " << pass;
    EXPECT_EQ(*rows.begin(), 20 - static_cast<std::int64_t>(expected)) << "pass " << pass;
  }
}

TEST(Curriculum, GoesByLength) {
  const MatrixRows reader(sampler_data(60));  // ten rows of each length from 1 to 6
  const auto sampler = make("curriculum", {{"start_fraction", "50%"}, {"passes", 2}});

  for (const std::int64_t row : pass_of(*sampler, reader))
    EXPECT_LE(reader.lengths(0)[row].item<std::int64_t>(), 3);
}

TEST(Curriculum, ARowWithoutAValueIsTheHardest) {
  MatrixRows::Matrices matrices = plain_data(4);
  matrices.inputs[0].select(0, 0).fill_(std::nan(""));
  const MatrixRows reader(std::move(matrices));
  const auto sampler = make("curriculum", {{"by", "x"}, {"start_fraction", 0.75}, {"passes", 5}});

  const Rows order = pass_of(*sampler, reader);

  EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()), (std::set<std::int64_t>{1, 2, 3}));
}

TEST(Curriculum, SaysWhatItNeeds) {
  const MatrixRows plain(plain_data(4));

  EXPECT_EQ(complaint_of("curriculum", {}, plain),
            "the sampler curriculum goes by length, and no input has rows of several lengths; the "
            "input is \"features\"; name a column with \"by\"");
  EXPECT_EQ(complaint_of("curriculum", {{"by", "y"}}, plain),
            "the sampler curriculum goes by \"y\", which is no column of numbers; the columns "
            "are \"x\"");
  const MatrixRows texts(sampler_data(4));
  EXPECT_EQ(
      complaint_of("curriculum", {{"by", "kind"}, {"input", "text"}}, texts),
      "the sampler curriculum goes by \"kind\", which is no column of numbers; there are none");
  EXPECT_THAT(complaint_of("curriculum", {{"by", "x"}, {"input", "feature"}}, plain),
              HasSubstr("no input \"feature\""));
}

}  // namespace
}  // namespace treadle::samplers
