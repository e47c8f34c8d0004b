#include <treadle/host/describe/suspicions.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/random.h>

#include "prediction_by_one.h"
#include "ranks.h"
#include "reference.h"

namespace treadle::describe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kSeeds = 20;
constexpr std::int64_t kRows = 400;

at::Tensor normal(RandomBits& bits, std::int64_t rows) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < rows; ++i)
    values.push_back(bits.normal());
  return at::tensor(values, at::kDouble);
}

at::Tensor below(RandomBits& bits, std::int64_t rows, std::uint64_t bound) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < rows; ++i)
    values.push_back(static_cast<std::int64_t>(bits.below(bound)));
  return at::tensor(values, at::kLong);
}

at::Tensor with_holes(const at::Tensor& values, const at::Tensor& is_missing) {
  return values.masked_fill(is_missing, std::nan(""));
}

DescribedColumn number_column(std::string name, at::Tensor values) {
  return {.name = std::move(name), .values = std::move(values)};
}

DescribedColumn category_column(std::string name, at::Tensor codes) {
  DescribedColumn column{
      .name = std::move(name), .kind = ColumnKind::kCategory, .values = std::move(codes)};
  for (std::int64_t i = 0; i <= column.values.max().item<std::int64_t>(); ++i)
    column.names.push_back("level " + std::to_string(100000 + i));
  return column;
}

/// Columns of all kinds, of which none has to do with a target; and a split in two halves.
struct Noise {
  explicit Noise(std::uint64_t seed, std::int64_t rows = kRows) : bits(seed) {
    columns = {number_column("normal", normal(bits, rows)),
               number_column("skewed", normal(bits, rows).mul(3).exp()),
               number_column("count", below(bits, rows, 6).to(at::kDouble)),
               number_column("holes", with_holes(normal(bits, rows), below(bits, rows, 3).eq(0))),
               number_column("id", permuted(rows).to(at::kDouble) * 7 + 100),
               category_column("town", below(bits, rows, 60)),
               category_column("ticket", permuted(rows)),
               category_column("flag", below(bits, rows, 2))};
    parts = {at::arange(rows / 2, at::kLong), at::arange(rows / 2, rows, at::kLong)};
    rare = below(bits, rows, 12).eq(0).to(at::kLong);
    three = below(bits, rows, 3);
    number = normal(bits, rows);
  }

  at::Tensor permuted(std::int64_t rows) {
    return at::tensor(random_permutation(rows, RandomBits(bits.next())), at::kLong);
  }
  std::vector<Suspicion> suspicions(const DescribedColumn& target) const {
    return find_suspicions(columns, std::vector{target}, parts);
  }
  /// The noise and one column more.
  std::vector<Suspicion> with(DescribedColumn column, const DescribedColumn& target) const {
    std::vector<DescribedColumn> all = columns;
    all.push_back(std::move(column));
    return find_suspicions(all, std::vector{target}, parts);
  }

  RandomBits bits;
  std::vector<DescribedColumn> columns;
  RowParts parts;
  at::Tensor rare;   // two classes, a twelfth of the rows in one of them
  at::Tensor three;  // three classes
  at::Tensor number;
};

std::string texts_of(const std::vector<Suspicion>& suspicions) {
  std::string texts;
  for (const Suspicion& suspicion : suspicions)
    texts += suspicion.text + "\n";
  return texts;
}

/// Exactly that column, for that reason.
void expect_only(const std::vector<Suspicion>& found, SuspicionKind kind,
                 const std::string& column) {
  ASSERT_EQ(found.size(), 1U) << texts_of(found);
  EXPECT_EQ(found[0].kind, kind) << found[0].text;
  EXPECT_EQ(found[0].column, column);
  EXPECT_THAT(found[0].text, HasSubstr("check"));
}

TEST(Suspicions, AreNoneInNoise) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Noise noise(seed);
    EXPECT_EQ(texts_of(noise.suspicions(category_column("y", noise.rare))), "") << seed;
    EXPECT_EQ(texts_of(noise.suspicions(category_column("y", noise.three))), "") << seed;
    EXPECT_EQ(texts_of(noise.suspicions(number_column("y", noise.number))), "") << seed;
  }
}

TEST(Suspicions, AreNoneInFewRowsOfNoise) {
  for (std::uint64_t seed = 0; seed < 5 * kSeeds; ++seed) {
    const Noise noise(1000 + seed, 60);
    EXPECT_EQ(texts_of(noise.suspicions(category_column("y", noise.three.eq(0).to(at::kLong)))), "")
        << seed;
    EXPECT_EQ(texts_of(noise.suspicions(category_column("y", noise.three))), "") << seed;
    EXPECT_EQ(texts_of(noise.suspicions(number_column("y", noise.number))), "") << seed;
  }
}

// Of 1000 keys with 20 rows of 110 in a class, about five have an AUC of 0.7 by chance.
TEST(Suspicions, AreNoneInManyKeysOfFewRows) {
  for (std::uint64_t seed = 0; seed < 10 * kSeeds; ++seed) {
    RandomBits bits(seed);
    const auto permuted = [&] {
      return at::tensor(random_permutation(110, RandomBits(bits.next())), at::kLong);
    };
    std::vector<DescribedColumn> keys;
    for (int i = 0; i < 5; ++i)
      keys.push_back(number_column(std::to_string(i), permuted().to(at::kDouble)));
    const DescribedColumn target = category_column("y", permuted().lt(20).to(at::kLong));
    EXPECT_EQ(texts_of(find_suspicions(keys, std::vector{target}, {})), "") << seed;
  }
}

TEST(Suspicions, NameAColumnThatSeparatesTwoClasses) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Noise noise(seed);
    const at::Tensor leak = noise.rare.to(at::kDouble) * -6 + normal(noise.bits, kRows);
    expect_only(noise.with(number_column("leak", leak), category_column("y", noise.rare)),
                SuspicionKind::kColumn, "leak");
  }
}

TEST(Suspicions, NameAColumnThatDeterminesOneOfSeveralClasses) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Noise noise(seed);
    // Not in the order of the classes: 0 -> 5, 1 -> 0, 2 -> 2.
    const at::Tensor center = at::tensor({5.0, 0.0, 2.0}, at::kDouble);
    const at::Tensor leak = center.index_select(0, noise.three) + normal(noise.bits, kRows) * 0.1;
    expect_only(noise.with(number_column("leak", leak), category_column("y", noise.three)),
                SuspicionKind::kColumn, "leak");
  }
}

TEST(Suspicions, NameAColumnThatGoesWithATargetOfNumbers) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Noise noise(seed);
    const DescribedColumn target = number_column("y", noise.number);
    const at::Tensor noisy = noise.number + normal(noise.bits, kRows) * 0.05;
    expect_only(noise.with(number_column("leak", noisy.exp()), target), SuspicionKind::kColumn,
                "leak");
    // The target is a function of it, but goes neither up nor down with it.
    const at::Tensor root = noise.number.abs();
    const auto found = noise.with(number_column("leak", noise.number), number_column("y", root));
    expect_only(found, SuspicionKind::kColumn, "leak");
    ASSERT_FALSE(HasFatalFailure()) << seed;
    EXPECT_EQ(found[0].measure, "R2 of ranks");
  }
}

TEST(Suspicions, NameCategoriesThatDetermineTheTarget) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Noise noise(seed);
    // Twelve codes, four of each class.
    const at::Tensor leak = noise.three + 3 * below(noise.bits, kRows, 4);
    expect_only(noise.with(category_column("leak", leak), category_column("y", noise.three)),
                SuspicionKind::kColumn, "leak");
    const at::Tensor number = leak.remainder(7).to(at::kDouble) + noise.number * 0.01;
    expect_only(noise.with(category_column("leak", leak), number_column("y", number)),
                SuspicionKind::kColumn, "leak");
  }
}

TEST(Suspicions, NameAColumnThatIsFilledInAfterTheOutcome) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Noise noise(seed);
    const at::Tensor is_filled = noise.rare.eq(1).logical_or(below(noise.bits, kRows, 50).eq(0));
    const at::Tensor date = with_holes(normal(noise.bits, kRows), is_filled.logical_not());
    expect_only(noise.with(number_column("ended", date), category_column("y", noise.rare)),
                SuspicionKind::kMissing, "ended");
    const at::Tensor high = with_holes(normal(noise.bits, kRows), noise.number.gt(0.3));
    expect_only(noise.with(number_column("ended", high), number_column("y", noise.number)),
                SuspicionKind::kMissing, "ended");
  }
}

TEST(Suspicions, NameAKeyThatWasGivenByTheOutcome) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Noise noise(seed);
    // Numbers in steps of 7, sorted by the outcome but for a part of the rows.
    const at::Tensor place =
        at::argsort(at::argsort(noise.rare.to(at::kDouble) + normal(noise.bits, kRows) * 0.3));
    const DescribedColumn target = category_column("y", noise.rare);
    expect_only(noise.with(number_column("ticket_no", place.to(at::kDouble) * 7), target),
                SuspicionKind::kKey, "ticket_no");
    expect_only(noise.with(category_column("ticket_no", place), target), SuspicionKind::kKey,
                "ticket_no");
    const at::Tensor by_number = at::argsort(at::argsort(noise.number + normal(noise.bits, kRows)));
    expect_only(noise.with(number_column("ticket_no", by_number.to(at::kDouble)),
                           number_column("y", noise.number)),
                SuspicionKind::kKey, "ticket_no");
  }
}

TEST(Suspicions, NameTheOrderOfRowsWhereTheSplitGoesByIt) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Noise noise(seed);
    const at::Tensor trend = noise.number + at::arange(kRows, at::kDouble) / 150;
    const DescribedColumn target = number_column("y", trend);
    expect_only(noise.suspicions(target), SuspicionKind::kRowOrder, "");
    // A shuffled split has rows of all places in both parts.
    const at::Tensor rows = at::arange(kRows, at::kLong);
    noise.parts = {rows.masked_select(rows.remainder(3).ne(0)),
                   rows.masked_select(rows.remainder(3).eq(0))};
    EXPECT_EQ(texts_of(noise.suspicions(target)), "");
  }
}

TEST(Suspicions, AreNoneInATrendOfRowsInTheOrderOfTime) {
  Noise noise(2);
  const DescribedColumn target =
      number_column("y", noise.number + at::arange(kRows, at::kDouble) / 150);
  ASSERT_EQ(noise.suspicions(target).size(), 1U);
  DescribedColumn lag = number_column("y_lag", target.values * 2);
  lag.is_past_target = true;
  DescribedColumn day = number_column("day", at::arange(kRows, at::kDouble));
  day.kind = ColumnKind::kTime;

  for (const DescribedColumn& sign : {lag, day})
    EXPECT_EQ(texts_of(noise.with(sign, target)), "");
}

TEST(Suspicions, NameTimesInAShuffledSplit) {
  const Noise noise(1);
  DescribedColumn day = number_column("day", at::arange(kRows, at::kDouble) * 86400);
  day.kind = ColumnKind::kTime;
  const std::vector columns{noise.columns[0], day};
  const std::vector targets{number_column("y", noise.number)};
  const at::Tensor rows = at::arange(kRows, at::kLong);
  const RowParts shuffled{rows.masked_select(rows.remainder(4).ne(0)),
                          rows.masked_select(rows.remainder(4).eq(0))};

  const auto found = find_suspicions(columns, targets, shuffled);

  expect_only(found, SuspicionKind::kTime, "day");
  EXPECT_THAT(found[0].text,
              HasSubstr("100.0 % of the validation rows are earlier than a training row"));
  EXPECT_THAT(find_suspicions(columns, targets, noise.parts), IsEmpty());
  EXPECT_THAT(find_suspicions(columns, targets, {}), IsEmpty());
}

TEST(Suspicions, LeaveOutWhereOneColumnIsTheTask) {
  const Noise noise(3);
  const std::vector targets{number_column("y", noise.number)};
  DescribedColumn lag = number_column("y_lag_1", noise.number * 2);

  EXPECT_THAT(find_suspicions(std::vector{lag}, targets, {}), IsEmpty());
  EXPECT_EQ(find_suspicions(std::vector{lag, noise.columns[0]}, targets, {}).size(), 1U);
  lag.is_past_target = true;
  EXPECT_THAT(find_suspicions(std::vector{lag, noise.columns[0]}, targets, {}), IsEmpty());
}

TEST(Suspicions, AreNoneOfVeryManyClasses) {
  const at::Tensor classes = at::arange(4000, at::kLong).remainder(150);
  const std::vector columns{number_column("a", classes.to(at::kDouble)),
                            number_column("b", classes.to(at::kDouble))};
  const DescribedColumn few = category_column("y", classes.remainder(kMostClassesOfTarget));

  EXPECT_THAT(find_suspicions(columns, std::vector{category_column("y", classes)}, {}), IsEmpty());
  EXPECT_EQ(find_suspicions(columns, std::vector{few}, {}).size(), 2U);
}

TEST(Suspicions, AreNoneWhereClassesHaveFewRows) {
  const at::Tensor classes = at::arange(100, at::kLong).lt(kFewestRowsOfClass - 1).to(at::kLong);
  const std::vector columns{number_column("a", classes.to(at::kDouble)),
                            number_column("b", classes.to(at::kDouble))};

  EXPECT_THAT(find_suspicions(columns, std::vector{category_column("y", classes)}, {}), IsEmpty());
}

/// Rows of numbers and one of words, which is the target; or of numbers alone.
std::vector<Suspicion> suspicions_in_file(const std::filesystem::path& file, bool has_words) {
  std::ifstream stream(file);
  std::map<std::string, std::int64_t> classes;
  std::vector<std::vector<double>> columns;
  std::vector<std::int64_t> target;
  std::string line;
  std::getline(stream, line);
  while (std::getline(stream, line)) {
    std::stringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, ',');)
      row.push_back(field);
    const std::string label = row.back();
    target.push_back(has_words ? classes.emplace(label, classes.size()).first->second
                               : std::stoll(label));
    columns.resize(row.size() - 1);
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      columns[i].push_back(std::stod(row[i]));
  }
  std::vector<DescribedColumn> described;
  for (std::size_t i = 0; i < columns.size(); ++i)
    described.push_back(
        number_column("column " + std::to_string(i), at::tensor(columns[i], at::kDouble)));
  const at::Tensor codes = at::tensor(target, at::kLong);
  const at::Tensor rows = at::arange(codes.size(0), at::kLong);
  return find_suspicions(
      described, std::vector{category_column("y", codes)},
      {rows.masked_select(rows.remainder(5).ne(0)), rows.masked_select(rows.remainder(5).eq(0))});
}

TEST(Suspicions, AreNoneInIris) {
  const std::filesystem::path tree(std::getenv("TREADLE_SOURCE"));

  EXPECT_EQ(texts_of(suspicions_in_file(tree / "examples/data/iris.csv", true)), "");
}

TEST(Suspicions, AreNoneInPublicDataSets) {
  const char* const folder = std::getenv("TREADLE_DATA");
  if (folder == nullptr || !std::filesystem::exists(folder))
    GTEST_SKIP() << "needs the public data sets; set TREADLE_TEST_DATA_SETS to their folder";
  for (const char* const name : {"breast_cancer.csv", "wine_data.csv", "digits.csv"})
    EXPECT_EQ(texts_of(suspicions_in_file(std::filesystem::path(folder) / name, false)), "");
}

// J. Friedman, "Multivariate Adaptive Regression Splines", 1991.
TEST(Suspicions, AreNoneInFriedmansFunction) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    RandomBits bits(seed);
    std::vector<DescribedColumn> columns;
    for (int i = 0; i < 5; ++i) {
      std::vector<double> values;
      for (std::int64_t row = 0; row < kRows; ++row)
        values.push_back(bits.uniform());
      columns.push_back(number_column(std::to_string(i), at::tensor(values, at::kDouble)));
    }
    const auto x = [&](std::size_t i) { return columns[i].values; };
    const at::Tensor y =
        10 * (x(0) * x(1) * 3.14159).sin() + 20 * (x(2) - 0.5).square() + 10 * x(3) + 5 * x(4);
    EXPECT_THAT(find_suspicions(columns, std::vector{number_column("y", y)}, {}), IsEmpty());
  }
}

TEST(PredictionByOne, IsThatOfOtherRows) {
  const at::Tensor rows = at::arange(50, at::kLong);
  const at::Tensor own = at::one_hot(rows).to(at::kDouble);

  EXPECT_TRUE(internal::means_by_code(rows, own).isnan().all().item<bool>());
  EXPECT_EQ(internal::means_of_nearest(rows.to(at::kDouble), own).diagonal().sum().item<double>(),
            0);
}

TEST(AreaUnderCurve, EqualsThatOfScikitLearn) {
  const at::Tensor ranks = internal::average_ranks(numbers_of(reference().at("score")));

  EXPECT_NEAR(internal::area_under_curve(ranks, codes_of(reference().at("truth")).eq(1)),
              reference().at("auc").get<double>(), kReferenceTolerance);
}

TEST(AverageRanks, EqualScipys) {
  const at::Tensor ties = numbers_of(reference().at("complete")).select(1, 2).contiguous();

  EXPECT_TRUE(internal::average_ranks(ties).equal(numbers_of(reference().at("ranks"))));
}

TEST(BalancedAccuracy, EqualsThatOfScikitLearn) {
  const at::Tensor guesses = codes_of(reference().at("guesses"));

  EXPECT_NEAR(internal::balanced_accuracy(codes_of(reference().at("classes")),
                                          at::one_hot(guesses).to(at::kDouble), 1),
              reference().at("balanced_accuracy").get<double>(), kReferenceTolerance);
}

}  // namespace
}  // namespace treadle::describe
