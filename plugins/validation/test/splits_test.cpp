#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/core/validation/leaks.h>
#include <treadle/testing/data/validation_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>

#include "split_reference.h"

namespace treadle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;
using Rows = std::vector<std::int64_t>;

std::unique_ptr<CrossValidator> splitter(const char* component, const Json& parameters) {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<CrossValidator>(component, parameters);
}

ValidationCase case_of(std::string name, const char* component, const Json& parameters = {}) {
  return {std::move(name), [=] { return splitter(component, parameters); }};
}

/// A split in order of time: its first rows are never judged.
ValidationCase past(ValidationCase one) {
  one.orders_by_time = true;
  one.covers_every_row = false;
  one.is_random = false;
  return one;
}

ValidationCase fixed(ValidationCase one) {
  one.is_random = false;
  return one;
}

ValidationCase tested(ValidationCase one) {
  one.has_test_rows = true;
  return one;
}

ValidationCase grouped(ValidationCase one) {
  one.keeps_groups = true;
  return one;
}

ValidationCase stratifying(ValidationCase one) {
  one.stratifies = true;
  return one;
}

ValidationCase of_classes(ValidationCase one) {
  one.takes_numbers = false;
  return one;
}

/// Rows may be judged several times, or never.
ValidationCase again(ValidationCase one) {
  one.judges_once = false;
  one.covers_every_row = false;
  return one;
}

INSTANTIATE_TEST_SUITE_P(
    Splits, ValidationContract,
    ::testing::Values(
        past(case_of("TimeSeries", "time_series")),
        past(case_of("TimeSeriesRolling", "time_series",
                     {{"folds", 3}, {"test_size", 10}, {"gap", 2}, {"max_train_size", 20}})),
        past(case_of("TimeSeriesThatChooses", "time_series",
                     {{"folds", 2}, {"validation_size", "20%"}, {"refit", false}})),
        past(tested(case_of("TimeSeriesTest", "time_series", {{"test_fraction", 0.2}}))),
        past(case_of("WalkForward", "walk_forward")),
        past(case_of("WalkForwardWarm", "walk_forward",
                     {{"warm_start", true}, {"retrain_every", 2}, {"test_size", 7}})),
        past(tested(case_of("WalkForwardTest", "walk_forward",
                            {{"validation_size", 5}, {"test_fraction", 0.2}}))),
        fixed(case_of("Purged", "purged", {{"gap", 1}, {"embargo", "5%"}})),
        fixed(tested(case_of("PurgedTest", "purged", {{"test_fraction", 0.2}}))),
        grouped(case_of("GroupKFold", "group_k_fold")),
        grouped(fixed(case_of("GroupKFoldInOrder", "group_k_fold", {{"shuffle", false}}))),
        grouped(tested(case_of("GroupKFoldTest", "group_k_fold", {{"test_fraction", 0.3}}))),
        grouped(of_classes(case_of("StratifiedGroupKFold", "stratified_group_k_fold"))),
        grouped(fixed(case_of("LeaveOneGroupOut", "leave_one_group_out"))),
        fixed(case_of("LeaveOneOut", "leave_one_out", {{"refit", false}})),
        // Of both seeds, the first row is not set aside.
        fixed(tested(case_of("LeaveOneOutTest", "leave_one_out", {{"test_fraction", 0.5}}))),
        again(stratifying(case_of("MonteCarlo", "monte_carlo"))),
        again(case_of("MonteCarloPart", "monte_carlo",
                      {{"stratify", false}, {"train_size", 20}, {"validation_size", 30}})),
        again(grouped(case_of("MonteCarloGroups", "monte_carlo", {{"keep_groups", true}}))),
        again(tested(case_of("MonteCarloTest", "monte_carlo", {{"test_fraction", 0.2}}))),
        again(stratifying(case_of("Repeated", "repeated", {{"repeats", 2}}))),
        again(tested(case_of("RepeatedTest", "repeated",
                             {{"splitter", {{"use", "k_fold"}, {"folds", 2}}},
                              {"repeats", 3},
                              {"test_fraction", 0.1}}))),
        case_of("Nested", "nested"),
        past(case_of("NestedInTime", "nested",
                     {{"outer", {{"use", "time_series"}, {"folds", 2}}},
                      {"inner", {{"use", "time_series"}, {"folds", 2}}}})),
        past(case_of("Consecutive", "consecutive")),
        past(tested(case_of("ConsecutiveTest", "consecutive",
                            {{"train_size", 40}, {"validation_size", 20}, {"test_size", 10}}))),
        fixed(again(case_of("SeededMonteCarlo", "monte_carlo", {{"seed", 3}})))),
    CaseName());

SplitRequest rows_to_split(std::int64_t rows) {
  SplitRequest request;
  request.rows = rows;
  request.targets = {number_target("price")};
  request.target_values = {at::arange(rows, at::kFloat).view({rows, 1})};
  request.random = RandomStreams(17);
  return request;
}

template <typename Action>
std::string refused(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// As reference.py computes it.
std::uint64_t digest(const ValidationPlan& plan) {
  std::uint64_t total = 0;
  for (std::size_t f = 0; f < plan.folds.size(); ++f) {
    const RowList* parts[] = {&plan.folds[f].training, &plan.folds[f].validation};
    for (std::size_t p = 0; p < 2; ++p) {
      for (std::size_t i = 0; i < parts[p]->size(); ++i)
        total += (static_cast<std::uint64_t>((*parts[p])[i]) + 1) * (i + 1) * (f + 1) * (p + 1);
    }
  }
  return total;
}

TEST(TimeSeries, EqualsScikitLearns) {
  for (const validation::TimeSeriesReference& one : validation::kTimeSeries) {
    Json parameters = {{"folds", one.folds}, {"gap", one.gap}};
    if (one.test_size > 0)
      parameters["test_size"] = one.test_size;
    if (one.max_train_size > 0)
      parameters["max_train_size"] = one.max_train_size;

    const auto plan = splitter("time_series", parameters)->plan(rows_to_split(one.rows));

    EXPECT_EQ(digest(plan), one.digest) << one.rows << " rows, " << parameters;
    EXPECT_EQ(plan.folds.size(), static_cast<std::size_t>(one.folds));
  }
}

TEST(GroupSplits, EqualScikitLearns) {
  for (const validation::GroupReference& one : validation::kGroups) {
    SplitRequest request = rows_to_split(static_cast<std::int64_t>(one.groups.size()));
    request.groups = at::tensor(one.groups, at::kLong);
    request.targets = {class_target("kind", {"a", "b", "c"})};
    request.target_values = {at::tensor(one.classes, at::kLong)};
    const Json parameters = {{"folds", one.folds}, {"shuffle", false}};

    EXPECT_EQ(digest(splitter("group_k_fold", parameters)->plan(request)), one.group_k_fold);
    EXPECT_EQ(digest(splitter("stratified_group_k_fold", parameters)->plan(request)),
              one.stratified_group_k_fold);
    EXPECT_EQ(digest(splitter("leave_one_group_out", {})->plan(request)), one.leave_one_group_out);
  }
}

TEST(LeaveOneOut, EqualsScikitLearns) {
  EXPECT_EQ(digest(splitter("leave_one_out", {})->plan(rows_to_split(17))),
            validation::kLeaveOneOut);
}

/// A file with these lines, one for each row.
class Lines {
 public:
  template <typename Values>
  explicit Lines(const Values& values) {
    std::ofstream file(path());
    for (const auto& value : values)
      file << value << "\n";
  }
  std::string path() const { return (folder_.path() / "parts.txt").string(); }

 private:
  ScratchFolder folder_;
};

TEST(Predefined, EqualsScikitLearns) {
  for (const validation::FoldsReference& one : validation::kPredefined) {
    const Lines file(one.folds);
    const auto rows = static_cast<std::int64_t>(one.folds.size());

    const auto plan =
        splitter("predefined", {{"parts", {{"path", file.path()}}}})->plan(rows_to_split(rows));

    EXPECT_EQ(digest(plan), one.digest);
    EXPECT_EQ(plan.refit->training.size(), one.folds.size());
  }
}

TEST(Predefined, TakesWordsForThePartsOfOneTraining) {
  const Lines file(std::vector<std::string>{"train", "val", "test", "", "training", "validation"});

  const auto plan =
      splitter("predefined", {{"parts", {{"path", file.path()}}}})->plan(rows_to_split(6));

  ASSERT_EQ(plan.folds.size(), 1U);
  EXPECT_THAT(plan.folds[0].training, ElementsAre(0, 4));
  EXPECT_THAT(plan.folds[0].validation, ElementsAre(1, 5));
  EXPECT_THAT(plan.folds[0].test, ElementsAre(2));
  EXPECT_FALSE(plan.refit);
}

TEST(Predefined, NamesTheLineThatItCannotUse) {
  const Lines word(std::vector<std::string>{"train", "validate", "test"});
  const Lines number(std::vector<std::string>{"0", "1", "train"});
  const auto with = [](const std::string& path, std::int64_t rows) {
    return refused([&] {
      splitter("predefined", {{"parts", {{"path", path}}}})->plan(rows_to_split(rows));
    });
  };

  EXPECT_EQ(with(word.path(), 3),
            word.path() +
                ":2: expected train, validation, test or nothing (or, in all rows, the "
                "number of a fold), got \"validate\"");
  EXPECT_EQ(with(number.path(), 3),
            number.path() + ":3: expected the number of a fold, from 0, or -1, got \"train\"");
  EXPECT_EQ(with(word.path(), 4), word.path() +
                                      ": has 3 lines; expected one for each of the 4 rows of the "
                                      "data, and no header");
  EXPECT_THAT(refused([&] {
                splitter("predefined", {{"parts", "fold"}})->plan(rows_to_split(3));
              }),
              HasSubstr("this data has no columns of text"));
}

/// Windows over a series of `rows`, as the plugin sequences makes them.
class WindowsOfSeries final : public SampleReader {
 public:
  WindowsOfSeries(std::int64_t rows, std::int64_t lookback, std::int64_t horizon)
      : data_(table(rows)),
        samples_(table(rows - lookback - horizon + 1)),
        lookback_(lookback),
        horizon_(horizon) {}

  SplitRequest request() const {
    SplitRequest request = rows_to_split(samples_.rows());
    request.samples = this;
    request.data = &data_;
    return request;
  }

 private:
  static MatrixRows::Matrices table(std::int64_t rows) {
    MatrixRows::Matrices matrices;
    matrices.spec.inputs = {{"features", {1}, {{"x", {}, false}}}};
    matrices.spec.targets = {number_target("price")};
    matrices.inputs = {at::arange(rows, at::kFloat).unsqueeze(1)};
    matrices.targets = matrices.inputs;
    return matrices;
  }
  SourceRows do_source_rows(std::int64_t sample) const override {
    return {{sample, sample + lookback_}, {sample + lookback_, sample + lookback_ + horizon_}};
  }
  const DataSpec& do_spec() const override { return samples_.spec(); }
  std::int64_t do_rows() const override { return samples_.rows(); }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    samples_.gather(rows, out);
  }
  at::Tensor do_targets(std::size_t target) const override { return samples_.targets(target); }

  const MatrixRows data_;
  const MatrixRows samples_;
  const std::int64_t lookback_;
  const std::int64_t horizon_;
};

// 12, 4 and 4 months of 30 days: 8640, 2880 and 2880 hours. The windows are those that reference
// implementations count without "drop_last": 8640 - 336 - H + 1, 2880 - H + 1 and 2880 - H + 1.
TEST(Consecutive, HasTheWindowsOfTheProtocolOfTheEttData) {
  const Json protocol = {{"train_size", 8640}, {"validation_size", 2880}, {"test_size", 2880}};
  const std::pair<std::int64_t, std::size_t> horizons[] = {
      {96, 2785}, {192, 2689}, {336, 2545}, {720, 2161}};
  for (const auto& [horizon, windows] : horizons) {
    const WindowsOfSeries samples(17420, 336, horizon);

    const Fold fold = splitter("consecutive", protocol)->plan(samples.request()).folds.front();

    EXPECT_EQ(fold.training.size(), static_cast<std::size_t>(8640 - 336 - horizon + 1));
    EXPECT_EQ(fold.validation.size(), windows);
    EXPECT_EQ(fold.test.size(), windows);
    EXPECT_EQ(fold.test.front(), 8640 + 2880 - 336);
  }
}

// By hand: 20 rows, windows of 3 that predict 2: 16 samples, whose targets begin in rows 3 to 18.
TEST(Consecutive, ASampleIsInThePartThatHasAllOfItsTarget) {
  const WindowsOfSeries samples(20, 3, 2);

  const Fold fold = splitter("consecutive", {{"train_size", 8}, {"validation_size", 4}})
                        ->plan(samples.request())
                        .folds.front();

  EXPECT_THAT(fold.training, ElementsAre(0, 1, 2, 3));  // targets 3-4 to 6-7
  EXPECT_THAT(fold.validation, ElementsAre(5, 6, 7));   // targets 8-9 to 10-11
  EXPECT_THAT(fold.test, IsEmpty());
}

TEST(Consecutive, SaysWhyItCannotSplit) {
  const auto with = [](const Json& parameters) {
    return refused([&] { splitter("consecutive", parameters)->plan(rows_to_split(20)); });
  };

  EXPECT_EQ(with({{"train_size", 18}, {"validation_size", "25%"}}),
            "\"train_size\": 18, \"validation_size\": 25% need more than the 20 time steps of the "
            "data; take less of them");
  const WindowsOfSeries samples(20, 3, 6);
  EXPECT_EQ(refused([&] {
              splitter("consecutive", {{"validation_size", 5}})->plan(samples.request());
            }),
            "the validation part, steps 15 to 19 of the data, has no sample: none has its whole "
            "target there; take more steps");
}

// By hand: 100 rows; start 50, blocks of 10, a model for two of them.
TEST(WalkForward, TrainsAnewEveryFewBlocks) {
  const auto plan =
      splitter("walk_forward", {{"retrain_every", 2}, {"gap", 3}})->plan(rows_to_split(100));

  ASSERT_EQ(plan.folds.size(), 3U);
  EXPECT_EQ(plan.folds[1].training.size(), 67U);
  EXPECT_EQ(plan.folds[1].validation.front(), 70);
  EXPECT_EQ(plan.folds[1].validation.size(), 20U);
  EXPECT_EQ(plan.folds[2].validation.size(), 10U);
  EXPECT_FALSE(plan.folds[1].starts_from);
  EXPECT_EQ(plan.refit->training.size(), 100U);
}

TEST(WalkForward, BeginsWithTheWeightsOfTheFoldBefore) {
  const auto plan =
      splitter("walk_forward", {{"warm_start", true}, {"test_size", 0.2}, {"max_train_size", 30}})
          ->plan(rows_to_split(100));

  EXPECT_FALSE(plan.folds[0].starts_from);
  EXPECT_EQ(plan.folds[1].starts_from, 0U);
  EXPECT_EQ(plan.refit->starts_from, plan.folds.size() - 1);
  EXPECT_EQ(plan.folds[2].training.size(), 30U);
  EXPECT_EQ(plan.refit->training.front(), 70);
}

// By hand: 80 steps before the block of fold 1, of which 10 % validate: 72 to 79.
TEST(WalkForward, TheLastOfThePastMayValidateAndTheBlockTests) {
  const auto plan = splitter("walk_forward", {{"start", 80}, {"validation_size", "10%"}})
                        ->plan(rows_to_split(100));

  EXPECT_EQ(plan.folds[0].training.size(), 72U);
  EXPECT_THAT(plan.folds[0].validation, ElementsAre(72, 73, 74, 75, 76, 77, 78, 79));
  EXPECT_EQ(plan.folds[0].test.front(), 80);
  EXPECT_EQ(plan.folds[0].test.size(), 10U);
}

TEST(TimeSplits, KeepRowsOfOneTimeTogether) {
  SplitRequest request = rows_to_split(60);
  request.timestamps = at::arange(60, at::kDouble).remainder(20);  // three series of 20 times
  request.groups = at::arange(60).div(20, "floor").to(at::kLong);

  for (const Fold& fold : splitter("time_series", {{"folds", 3}})->plan(request).folds) {
    EXPECT_EQ(fold.training.size() % 3, 0U);
    EXPECT_EQ(fold.validation.size(), 15U);
  }
}

TEST(TimeSplits, SayWhatTheyNeed) {
  const auto with = [](const char* component, const Json& parameters) {
    return refused([&] { splitter(component, parameters)->plan(rows_to_split(20)); });
  };

  EXPECT_EQ(with("time_series", {{"folds", 5}, {"test_size", 4}}),
            "\"folds\": 5 of 4 time steps and 1 time step before the first need 21, and there are "
            "20 time steps; take fewer folds, or a smaller \"test_size\" or \"gap\"");
  EXPECT_EQ(with("walk_forward", {{"start", 20}}),
            "\"start\": 20 leaves 20 time steps before the first rows that are judged, expected at "
            "least 1 and fewer than the 20 time steps of the data");
  EXPECT_EQ(with("purged", {{"folds", 21}}),
            "\"folds\": 21 requires at least as many time steps, got 20");
}

// By hand: 12 rows in 3 blocks; labels reach two rows on. Fold 2 validates on 4 to 7, whose labels
// end at 9: of the rows before, 2 and 3 overlap; after it, rows up to 8 overlap and the embargo of
// one step after the labels' end takes 9 and 10.
TEST(Purged, LeavesOutOverlappingLabelsAndAnEmbargo) {
  SplitRequest request = rows_to_split(12);
  request.timestamps = at::arange(12, at::kDouble);
  request.label_ends = request.timestamps + 2;

  const auto purged = splitter("purged", {{"folds", 3}})->plan(request);
  const auto embargoed = splitter("purged", {{"folds", 3}, {"embargo", 1}})->plan(request);

  EXPECT_THAT(purged.folds[1].validation, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(purged.folds[1].training, ElementsAre(0, 1, 2, 9, 10, 11));
  EXPECT_THAT(embargoed.folds[1].training, ElementsAre(0, 1, 2, 11));
}

// Each fold against a plain enumeration of the rows that may train.
TEST(Purged, EqualsAnEnumerationOverRandomLabels) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomBits bits(seed);
    const auto rows = static_cast<std::int64_t>(20 + bits.below(100));
    const auto folds = static_cast<std::int64_t>(2 + bits.below(5));
    const auto gap = static_cast<std::int64_t>(bits.below(3));
    const auto embargo = static_cast<std::int64_t>(1 + bits.below(4));
    std::vector<double> ends;
    for (std::int64_t row = 0; row < rows; ++row)
      ends.push_back(static_cast<double>(row + static_cast<std::int64_t>(bits.below(4))));
    SplitRequest request = rows_to_split(rows);
    request.timestamps = at::arange(rows, at::kDouble);
    request.label_ends = at::tensor(ends, at::kDouble);

    const auto plan =
        splitter("purged", {{"folds", folds}, {"gap", gap}, {"embargo", embargo}})->plan(request);

    Rows validated;
    for (const Fold& fold : plan.folds) {
      Rows expected;
      const std::int64_t first = fold.validation.front();
      const std::int64_t last = fold.validation.back();
      std::int64_t labels_end = last;
      for (std::int64_t row = first; row <= last; ++row) {
        const auto end = static_cast<std::int64_t>(ends[static_cast<std::size_t>(row)]);
        labels_end = std::max(labels_end, std::min(end, rows - 1));
      }
      for (std::int64_t row = 0; row < rows; ++row) {
        bool may_train = row < first - gap || (row > last + gap && row > labels_end + embargo);
        for (std::int64_t held = first; held <= last && may_train; ++held) {
          const double begin = static_cast<double>(std::max(row, held));
          may_train = begin >= std::min(ends[static_cast<std::size_t>(row)],
                                        ends[static_cast<std::size_t>(held)]);
        }
        if (may_train)
          expected.push_back(row);
      }
      EXPECT_EQ(fold.training, expected) << "seed " << seed << ", " << fold.name;
      validated.insert(validated.end(), fold.validation.begin(), fold.validation.end());
    }
    EXPECT_EQ(validated.size(), static_cast<std::size_t>(rows));
  }
}

TEST(GroupKFold, SaysWhatItNeeds) {
  SplitRequest request = rows_to_split(12);
  EXPECT_EQ(refused([&] { splitter("group_k_fold", {})->plan(request); }),
            "validation keeps groups together, but the data has no groups; \"group\" of csv and "
            "\"groups\" of npy name them");
  request.groups = at::arange(12).remainder(3);
  EXPECT_EQ(refused([&] {
              splitter("group_k_fold", {{"folds", 4}})->plan(request);
            }),
            "\"folds\": 4 requires at least as many groups, got 3 groups");
  EXPECT_THAT(refused([&] {
                splitter("stratified_group_k_fold", {{"folds", 2}})->plan(request);
              }),
              HasSubstr("needs a target with one class per row"));
  request.groups = at::arange(12).mul(0);
  EXPECT_THAT(refused([&] { splitter("leave_one_group_out", {})->plan(request); }),
              HasSubstr("expected two groups or more"));
}

TEST(LeaveOneGroupOut, FoldsHaveTheNumbersOfTheirGroups) {
  SplitRequest request = rows_to_split(6);
  request.groups = at::tensor({7, 7, 3, 3, 7, 9}, at::kLong);

  const auto plan = splitter("leave_one_group_out", {})->plan(request);

  ASSERT_EQ(plan.folds.size(), 3U);
  EXPECT_EQ(plan.folds[0].name, "group-7");
  EXPECT_THAT(plan.folds[0].validation, ElementsAre(0, 1, 4));
  EXPECT_EQ(plan.folds[2].name, "group-9");
}

TEST(MonteCarlo, HoldsOutOtherRowsEachTime) {
  const auto plan =
      splitter("monte_carlo", {{"splits", 20}, {"validation_size", 10}})->plan(rows_to_split(100));

  std::set<Rows> different;
  for (const Fold& fold : plan.folds) {
    EXPECT_EQ(fold.validation.size(), 10U);
    EXPECT_EQ(fold.training.size(), 90U);
    different.insert(fold.validation.numbers());
  }
  EXPECT_EQ(different.size(), 20U);
}

TEST(MonteCarlo, RefusesMoreRowsThanThereAre) {
  EXPECT_EQ(refused([] {
              splitter("monte_carlo", {{"train_size", 95}, {"validation_size", "10%"}})
                  ->plan(rows_to_split(100));
            }),
            "\"train_size\": 95 and \"validation_size\": 10% are more than the 100 rows");
}

TEST(Repeated, FoldsAreOthersInEachRepetition) {
  const auto plan = splitter("repeated", {{"repeats", 3}})->plan(rows_to_split(50));

  ASSERT_EQ(plan.folds.size(), 15U);
  EXPECT_EQ(plan.folds[0].name, "repeat-1-fold-1");
  EXPECT_EQ(plan.folds[14].name, "repeat-3-fold-5");
  EXPECT_NE(plan.folds[0].validation, plan.folds[5].validation);
  EXPECT_TRUE(plan.refit);
}

TEST(Repeated, SetsTestRowsAsideOnceOnly) {
  const Json twice = {{"splitter", {{"use", "k_fold"}, {"test_fraction", 0.2}}}};
  EXPECT_THAT(refused([&] { splitter("repeated", twice)->plan(rows_to_split(50)); }),
              HasSubstr("state \"test_fraction\" beside \"repeats\""));
}

TEST(Nested, InnerFoldsDivideTheTrainingRowsOfTheOuter) {
  const Json parameters = {{"outer", {{"use", "k_fold"}, {"folds", 4}}},
                           {"inner", {{"use", "k_fold"}, {"folds", 3}}}};

  const auto plan = splitter("nested", parameters)->plan(rows_to_split(48));

  ASSERT_EQ(plan.folds.size(), 4U);
  for (const Fold& fold : plan.folds) {
    EXPECT_EQ(fold.test.size(), 12U);
    EXPECT_THAT(fold.validation, IsEmpty());
    Rows inner;
    for (const Fold& one : fold.inner) {
      EXPECT_EQ(one.training.size(), 24U);
      inner.insert(inner.end(), one.validation.begin(), one.validation.end());
    }
    std::sort(inner.begin(), inner.end());
    EXPECT_EQ(inner, fold.training);
  }
  EXPECT_NE(plan.folds[0].inner[0].validation, plan.folds[1].inner[0].validation);
}

// What every split of windows must keep: the host accepts it, so nothing leaks, or it says why.
TEST(Splits, OfWindowsLeakNothingWhereTheyAreInTime) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    RandomBits bits(seed);
    const WindowsOfSeries samples(static_cast<std::int64_t>(180 + bits.below(100)),
                                  static_cast<std::int64_t>(1 + bits.below(10)),
                                  static_cast<std::int64_t>(1 + bits.below(6)));
    const std::pair<const char*, Json> splits[] = {
        {"time_series", {{"folds", 3}, {"gap", bits.below(3)}}},
        {"time_series", {{"folds", 2}, {"validation_size", 8}, {"test_fraction", 0.2}}},
        {"walk_forward", {{"test_size", 12}, {"validation_size", 9}}},
        {"purged", {{"folds", 4}, {"embargo", "2%"}}},
        {"consecutive", {{"validation_size", 15}, {"test_size", 12}}},
        {"hold_out", {{"strategy", "chronological"}, {"test_fraction", 0.2}}},
        {"nested",
         {{"outer", {{"use", "time_series"}, {"folds", 2}}},
          {"inner", {{"use", "purged"}, {"folds", 2}}}}}};
    for (const auto& [name, parameters] : splits)
      EXPECT_EQ(refused([&] { splitter(name, parameters)->plan(samples.request()); }), "no error")
          << name << " " << parameters << ", seed " << seed;
    EXPECT_THAT(refused([&] { splitter("k_fold", {})->plan(samples.request()); }),
                HasSubstr("the model would be told the answer"));
  }
}

}  // namespace
}  // namespace treadle::testing
