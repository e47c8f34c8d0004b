#include <treadle/base/random.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <treadle/base/error.h>

// Numbers without another source were made by a Python program that follows the header's formulas
// with whole numbers of any size (mod 2**64), written from the papers and not from the C++.
namespace treadle {
namespace {

TEST(RandomBits, GivesTheReferenceSequenceOfSplitMix64) {
  // The published test values for seed 1234567 (S. Vigna's splitmix64.c prints them, too).
  RandomBits bits(1234567);
  for (const std::uint64_t expected :
       {6457827717110365317U, 3203168211198807973U, 9817491932198370423U, 4593380528125082431U,
        16408922859458223821U}) {
    EXPECT_EQ(bits.next(), expected);
  }
}

TEST(RandomBits, DrawsBelowABound) {
  RandomBits small(7);
  for (const std::uint64_t expected : {3, 0, 9, 5, 4, 2, 4, 3, 1, 4}) {
    EXPECT_EQ(small.below(10), expected);
  }
  // A bound for which a quarter of all draws must be repeated.
  RandomBits large(7);
  for (const std::uint64_t expected :
       {5393317200669280865U, 12462076310111707009U, 8064874446226104152U, 6259559884125542755U}) {
    EXPECT_EQ(large.below(std::uint64_t{3} << 62), expected);
  }
  EXPECT_EQ(small.below(1), 0U);
  EXPECT_THROW(small.below(0), ContractViolation);
}

TEST(RandomBits, IsUniform) {
  RandomBits bits(11);
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i)
    ++counts[bits.below(7)];
  double chi_squared = 0;
  for (const int count : counts)
    chi_squared += (count - 10000.0) * (count - 10000.0) / 10000.0;
  // 99.9 % quantile for 6 degrees of freedom.
  EXPECT_LT(chi_squared, 22.46);

  RandomBits exact(3);
  EXPECT_EQ(exact.uniform(), 0.11345034205715454);
  EXPECT_EQ(exact.uniform(), 0.7002935135929024);
}

TEST(RandomBits, IsNormal) {
  RandomBits exact(3);
  EXPECT_NEAR(exact.normal(), -0.15078931135351334, 1e-15);
  EXPECT_NEAR(exact.normal(), 1.2359666661472444, 1e-15);

  RandomBits bits(5);
  double sum = 0;
  double squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double x = bits.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
  }
  // Four standard errors.
  EXPECT_NEAR(sum / kCount, 0, 4 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1, 4 * std::sqrt(2.0 / kCount));
}

TEST(RandomPermutation, FollowsFisherYates) {
  EXPECT_EQ(random_permutation(10, RandomBits(42)),
            (std::vector<std::int64_t>{8, 3, 6, 5, 4, 0, 9, 2, 1, 7}));
  EXPECT_TRUE(random_permutation(0, RandomBits(1)).empty());
  EXPECT_EQ(random_permutation(1, RandomBits(1)), std::vector<std::int64_t>{0});
}

TEST(Permutation, HasEveryElementOnceForAnySizeAndSeed) {
  for (const std::int64_t size : {1, 2, 3, 4, 5, 8, 9, 17, 64, 65, 1000, 1023, 1024, 1025, 50021}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const Permutation permutation(size, seed);
      std::vector<char> seen(static_cast<std::size_t>(size), 0);
      for (std::int64_t i = 0; i < size; ++i) {
        const std::int64_t element = permutation[i];
        ASSERT_TRUE(element >= 0 && element < size) << size << " " << seed;
        ASSERT_EQ(seen[static_cast<std::size_t>(element)]++, 0) << size << " " << seed;
      }
    }
  }
}

/// The chi-squared statistic of counts that are expected to be alike, over its degrees of freedom.
double unevenness(const std::vector<std::int64_t>& counts, double expected) {
  double sum = 0;
  for (const std::int64_t count : counts)
    sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected);
  return sum / expected / static_cast<double>(counts.size() - 1);
}

// Over its degrees of freedom d the statistic has mean 1 and standard deviation sqrt(2 / d); the
// bounds are four of these above.
TEST(Permutation, GivesAllOrdersOfAFewElementsAlike) {
  constexpr int kTries = 60000;
  std::map<std::vector<std::int64_t>, std::int64_t> orders;
  for (int i = 0; i < kTries; ++i) {
    const Permutation permutation(5, RandomStreams(static_cast<std::uint64_t>(i)).seed("order"));
    std::vector<std::int64_t> order;
    for (std::int64_t k = 0; k < 5; ++k)
      order.push_back(permutation[k]);
    ++orders[order];
  }
  ASSERT_EQ(orders.size(), 120U);
  std::vector<std::int64_t> counts;
  for (const auto& [order, count] : orders)
    counts.push_back(count);
  EXPECT_LT(unevenness(counts, kTries / 120.0), 1 + 4 * std::sqrt(2.0 / 119));
}

TEST(Permutation, PutsNeighboursAnywhere) {
  constexpr std::int64_t kSize = 2000;  // above the size of many rounds
  constexpr std::int64_t kBins = 20;
  constexpr int kTries = 40000;
  std::vector<std::int64_t> counts(kBins * kBins, 0);
  for (int i = 0; i < kTries; ++i) {
    const Permutation permutation(kSize, RandomStreams(static_cast<std::uint64_t>(i)).seed("pair"));
    const std::int64_t bin = permutation[700] * kBins / kSize;
    ++counts[static_cast<std::size_t>(bin * kBins + permutation[701] * kBins / kSize)];
  }
  EXPECT_LT(unevenness(counts, kTries / 400.0), 1 + 4 * std::sqrt(2.0 / 399));
}

TEST(RandomStreams, AreAddressedByPurposeAndPlace) {
  EXPECT_EQ(RandomStreams(0).seed("shuffle"), 13462571475310106048U);
  EXPECT_EQ(RandomStreams(7).seed("shuffle", {3}), 8383450544533429017U);
  EXPECT_EQ(RandomStreams(7).seed("init", {0, 1}), 13695085005915659743U);
  EXPECT_EQ(RandomStreams(7).part("fold", 2).root(), RandomStreams(7).seed("fold", {2}));
}

TEST(RandomStreams, DifferWhereTheAddressDiffers) {
  std::set<std::uint64_t> seeds;
  int asked = 0;
  for (const std::uint64_t root : {0, 1, 2, 3}) {
    for (const std::string_view purpose : {"", "a", "ab", "b", "shuffle"}) {
      const RandomStreams streams(root);
      for (std::uint64_t i = 0; i < 50; ++i) {
        seeds.insert(streams.seed(purpose, {i}));
        seeds.insert(streams.seed(purpose, {i, 0}));
        seeds.insert(streams.seed(purpose, {0, i, 1}));
        asked += 3;
      }
      seeds.insert(streams.seed(purpose));
      ++asked;
    }
  }
  EXPECT_EQ(seeds.size(), static_cast<std::size_t>(asked));
}

}  // namespace
}  // namespace treadle
