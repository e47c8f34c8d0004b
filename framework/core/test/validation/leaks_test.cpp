#include <treadle/core/validation/leaks.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/core/data/matrix_rows.h>

#include "touching.h"

namespace treadle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Rows = std::vector<std::int64_t>;

/// Returns the plan it was given.
class Planned final : public CrossValidator {
 public:
  explicit Planned(ValidationPlan plan) : plan_(std::move(plan)) {}

 private:
  ValidationPlan do_plan(const SplitRequest&) const override { return plan_; }
  ValidationPlan plan_;
};

std::string refusal(const SplitRequest& request, ValidationPlan plan) {
  try {
    Planned(std::move(plan)).plan(request);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

/// Windows of 3 rows that predict the 2 after them.
std::vector<SourceRows> windows(std::int64_t count) {
  std::vector<SourceRows> touched;
  for (std::int64_t i = 0; i < count; ++i)
    touched.push_back({{i, i + 3}, {i + 3, i + 5}});
  return touched;
}

SplitRequest request_for(const SampleReader& samples) {
  SplitRequest request;
  request.rows = samples.rows();
  request.samples = &samples;
  return request;
}

SplitRequest labels(std::vector<double> begins, std::vector<double> ends) {
  SplitRequest request;
  request.rows = static_cast<std::int64_t>(begins.size());
  request.timestamps = at::tensor(begins, at::kDouble);
  request.label_ends = at::tensor(ends, at::kDouble);
  return request;
}

// By hand: sample 6 predicts rows 9 and 10; samples 4 to 10 touch one of them.
TEST(Leaks, ASampleThatTouchesAHeldOutTargetLeaksIt) {
  const Touching samples(windows(12));
  const SplitRequest request = request_for(samples);

  EXPECT_THAT(purged(request, Rows{0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11}, {6}),
              ElementsAre(0, 1, 2, 3, 4, 11));
  const Leaks leaks(request, {6});
  EXPECT_EQ(leaks.of(5)->source, 9);
  EXPECT_EQ(leaks.of(10)->held_out, 6);
  EXPECT_FALSE(leaks.of(4));
}

// Labels (0, 2], (2, 4], (3, 6], (6, 7], (8, 8]: the third overlaps the second; the others meet.
TEST(Leaks, LabelsThatOverlapInTimeLeakAndThoseThatMeetDoNot) {
  const SplitRequest request = labels({0, 2, 3, 6, 8}, {2, 4, 6, 7, 8});

  EXPECT_THAT(purged(request, Rows{0, 1, 3, 4}, {2}), ElementsAre(0, 3, 4));
  EXPECT_THAT(purged(request, Rows{0, 2, 3, 4}, {1}), ElementsAre(0, 3, 4));
  EXPECT_FALSE(Leaks(request, {2}).of(1)->source);
}

TEST(Leaks, LabelsOfOtherGroupsHaveNoTimeInCommon) {
  SplitRequest request = labels({0, 1, 2}, {9, 9, 9});
  request.groups = at::tensor({1, 2, 1}, at::kLong);

  EXPECT_THAT(purged(request, Rows{1, 2}, {0}), ElementsAre(1));
}

TEST(Leaks, ARefusedPlanNamesRowTimeFoldAndBothSamples) {
  const Touching samples(windows(12));
  const MatrixRows data(table(17, true));
  SplitRequest request = request_for(samples);
  request.data = &data;

  EXPECT_EQ(
      refusal(request, {{{"fold-3", {0, 1, 5}, {6}}}}),
      "in fold-3, row 9 of the data (2016-07-01 09:00) is in training sample 5 and in the "
      "target of validation sample 6: the model would be told the answer; split by time, "
      "{\"use\": \"time_series\"} or {\"use\": \"hold_out\", \"strategy\": \"chronological\"}");
  EXPECT_THAT(refusal(request, {{{"fold-1", {0, 1}, {5}, {6}}}}),
              HasSubstr("is in validation sample 5 and in the target of test sample 6"));
  EXPECT_THAT(refusal(request, {{{"fold-1", {0, 7}, {11}}}, Fold{"final", {0, 11}, {}, {6}}}),
              HasSubstr("is in training sample 7 and in the target of test sample 6"));
}

TEST(Leaks, ARefusedPlanNamesLabelsThatOverlap) {
  EXPECT_EQ(
      refusal(labels({0, 2, 3}, {2, 4, 6}), {{{"fold-1", {0, 1}, {2}}}}),
      "in fold-1, the label of training row 1 of the data is made of times that the label of "
      "validation row 2 of the data is made of as well: the model would be told a part of the "
      "answer; purge such rows, {\"use\": \"purged\"} or another split by time");
}

/// Whether a row of the list touches a target of the held-out ones: every pair, row by row.
bool leaks_by_pairs(const std::vector<SourceRows>& touched, const Rows& list,
                    const Rows& held_out) {
  std::set<std::int64_t> answers;
  for (const std::int64_t row : held_out) {
    const RowRange targets = touched[static_cast<std::size_t>(row)].targets;
    for (std::int64_t source = targets.begin; source < targets.end; ++source)
      answers.insert(source);
  }
  for (const std::int64_t row : list) {
    for (const RowRange& range : {touched[static_cast<std::size_t>(row)].inputs,
                                  touched[static_cast<std::size_t>(row)].targets}) {
      for (std::int64_t source = range.begin; source < range.end; ++source) {
        if (answers.count(source) > 0)
          return true;
      }
    }
  }
  return false;
}

bool labels_overlap_by_pairs(const SplitRequest& request, const Rows& list, const Rows& held_out) {
  const auto at = [](const at::Tensor& tensor, std::int64_t row) {
    return tensor[row].item<double>();
  };
  for (const std::int64_t a : list) {
    for (const std::int64_t b : held_out) {
      const double begin = std::max(at(request.timestamps, a), at(request.timestamps, b));
      const double end = std::min(at(request.label_ends, a), at(request.label_ends, b));
      const bool same_group =
          !request.groups.defined() || at(request.groups, a) == at(request.groups, b);
      if (same_group && begin < end)
        return true;
    }
  }
  return false;
}

/// Samples of random places and lengths, divided at random; then purged, so that nothing leaks.
struct RandomPlan {
  explicit RandomPlan(std::uint64_t seed) : bits(seed) {
    const auto count = static_cast<std::int64_t>(20 + bits.below(60));
    const bool has_labels = bits.below(2) == 0;
    std::vector<double> begins;
    std::vector<double> ends;
    Rows groups;
    Rows training;
    Rows validation;
    Rows test;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto begin = static_cast<std::int64_t>(bits.below(200));
      const auto lookback = static_cast<std::int64_t>(1 + bits.below(3));
      const auto gap = static_cast<std::int64_t>(bits.below(3));
      const auto horizon = static_cast<std::int64_t>(1 + bits.below(3));
      touched.push_back(
          {{begin, begin + lookback}, {begin + lookback + gap, begin + lookback + gap + horizon}});
      begins.push_back(static_cast<double>(bits.below(300)));
      ends.push_back(begins.back() + static_cast<double>(bits.below(6)));
      groups.push_back(static_cast<std::int64_t>(bits.below(2)));
      Rows* const parts[] = {&training, &training, &validation, &test};
      parts[bits.below(4)]->push_back(i);
    }
    samples = std::make_unique<Touching>(touched);
    request.rows = count;
    if (has_labels) {
      request.timestamps = at::tensor(begins, at::kDouble);
      request.label_ends = at::tensor(ends, at::kDouble);
      if (bits.below(2) == 0)
        request.groups = at::tensor(groups, at::kLong);
    } else {
      request.samples = samples.get();
    }
    fold = {"fold-1", training, validation, test};
  }

  bool leaks(const RowList& list, const RowList& held_out) const {
    return request.samples != nullptr
               ? leaks_by_pairs(touched, list.numbers(), held_out.numbers())
               : labels_overlap_by_pairs(request, list.numbers(), held_out.numbers());
  }
  bool leaks() const {
    return leaks(fold.training, fold.validation) || leaks(fold.training, fold.test) ||
           leaks(fold.validation, fold.test);
  }
  bool has_all_parts() const {
    return !fold.training.empty() && !fold.validation.empty() && !fold.test.empty();
  }

  RandomBits bits;
  std::vector<SourceRows> touched;
  std::unique_ptr<Touching> samples;
  SplitRequest request;
  Fold fold;
};

TEST(Leaks, OfAThousandCleanPlansNoneIsRefusedAndOfAThousandWithALeakEachIs) {
  int clean = 0;
  int leaking = 0;
  for (std::uint64_t seed = 1; clean < 1000 || leaking < 1000; ++seed) {
    RandomPlan plan(seed);
    if (!plan.has_all_parts())
      continue;
    if (plan.leaks() && leaking < 1000) {
      ++leaking;
      EXPECT_NE(refusal(plan.request, {{plan.fold}}), "") << "seed " << seed;
    }
    const Fold given = plan.fold;
    try {
      plan.fold = purged(plan.request, ValidationPlan{{plan.fold}}).folds.front();
    } catch (const DataError&) {
      continue;  // nothing was left of a part
    }
    if (clean == 1000)
      continue;
    ++clean;
    EXPECT_FALSE(plan.leaks()) << "seed " << seed;
    EXPECT_EQ(refusal(plan.request, {{plan.fold}}), "") << "seed " << seed;
    // Planted again: a row that was purged.
    Rows gone;
    std::set_difference(given.training.begin(), given.training.end(), plan.fold.training.begin(),
                        plan.fold.training.end(), std::back_inserter(gone));
    for (const std::int64_t row : gone) {
      Fold planted = plan.fold;
      RowList::Builder more;
      more.add(planted.training);
      more.add(row);
      planted.training = more.done();
      // It may have leaked a validation row that is gone itself.
      const bool is_leak = plan.leaks({row}, planted.validation) || plan.leaks({row}, planted.test);
      EXPECT_EQ(refusal(plan.request, {{planted}}) != "", is_leak) << "seed " << seed;
    }
  }
}

/// Samples of some series, each of so many rows and so far apart.
std::vector<SampleRun> random_runs(RandomBits& bits) {
  const auto drawn = [&](std::uint64_t from, std::uint64_t to) {
    return static_cast<std::int64_t>(from + bits.below(to - from));
  };
  const std::int64_t lookback = drawn(1, 6);
  const std::int64_t gap = drawn(0, 4);
  const std::int64_t horizon = drawn(0, 5);  // 0: no target
  const std::int64_t step = drawn(1, 8);
  std::vector<SampleRun> runs;
  std::int64_t sample = 0;
  std::int64_t row = 0;
  for (std::int64_t series = drawn(1, 5); series > 0; --series) {
    const std::int64_t count = drawn(1, 20);
    const RowRange inputs{row, row + lookback};
    runs.push_back({sample, count, {inputs, {inputs.end + gap, inputs.end + gap + horizon}}, step});
    sample += count;
    row += (count - 1) * step + lookback + gap + horizon + drawn(0, 3);
  }
  return runs;
}

/// Some ranges of the rows below `count`, or some rows at random.
Rows random_part(RandomBits& bits, std::int64_t count) {
  const std::uint64_t block = 1 + bits.below(2) * 9;
  Rows rows;
  bool is_in = false;
  for (std::int64_t row = 0; row < count; ++row) {
    if (static_cast<std::uint64_t>(row) % block == 0)
      is_in = bits.below(3) == 0;
    if (is_in)
      rows.push_back(row);
  }
  if (bits.below(3) == 0)
    bits.shuffle(rows);
  return rows;
}

TEST(Leaks, OfRunsAreThoseOfTheirSamplesOneByOne) {
  RandomBits bits(13);
  int leaking = 0;
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const std::vector<SampleRun> runs = random_runs(bits);
    std::vector<SourceRows> touched;
    for (const SampleRun& run : runs) {
      for (std::int64_t i = 0; i < run.count; ++i)
        touched.push_back(run.rows.after(i * run.step));
    }
    const auto count = static_cast<std::int64_t>(touched.size());
    const Touching samples(touched, runs);
    SplitRequest all;
    all.rows = count;
    all.samples = &samples;
    // Of a part of the samples as of all.
    Rows numbers = bits.below(2) == 0 ? random_part(bits, count) : Rows();
    const bool is_part = !numbers.empty();
    if (!is_part) {
      numbers.resize(static_cast<std::size_t>(count));
      std::iota(numbers.begin(), numbers.end(), 0);
    }
    const SplitRequest request = is_part ? all.part(numbers) : all;
    const Rows list = random_part(bits, request.rows);
    const Rows held_out = random_part(bits, request.rows);
    const auto leaks_by_itself = [&](std::int64_t row) {
      const auto own = [&](const Rows& rows) {
        Rows samples_of;
        for (const std::int64_t one : rows)
          samples_of.push_back(numbers[static_cast<std::size_t>(one)]);
        return samples_of;
      };
      return leaks_by_pairs(touched, own({row}), own(held_out));
    };
    Rows kept;
    std::copy_if(list.begin(), list.end(), std::back_inserter(kept),
                 [&](std::int64_t row) { return !leaks_by_itself(row); });
    std::set<std::int64_t> sources;
    for (const std::int64_t row : list) {
      const SourceRows rows = request.source_rows(row);
      for (const RowRange& range : {rows.inputs, rows.targets}) {
        for (std::int64_t source = range.begin; source < range.end; ++source)
          sources.insert(source);
      }
    }
    RowList of_samples = is_part ? RowList(numbers).at(list) : RowList(list);

    const Leaks leaks(request, held_out);
    const std::optional<Leaks::Leak> first = leaks.first_of(list);

    EXPECT_EQ(leaks.without(list).numbers(), kept);
    EXPECT_EQ(touched_rows(samples, of_samples).numbers(), Rows(sources.begin(), sources.end()));
    const auto expected = std::find_if(list.begin(), list.end(), leaks_by_itself);
    ASSERT_EQ(first.has_value(), expected != list.end());
    if (!first)
      continue;
    ++leaking;
    EXPECT_EQ(first->row, *expected);
    ASSERT_TRUE(first->source);
    const SourceRows reader = request.source_rows(first->row);
    const RowRange target = request.source_rows(first->held_out).targets;
    const auto has = [&](const RowRange& rows) {
      return *first->source >= rows.begin && *first->source < rows.end;
    };
    EXPECT_TRUE(has(reader.inputs) || has(reader.targets));
    EXPECT_TRUE(has(target));
    EXPECT_NE(std::find(held_out.begin(), held_out.end(), first->held_out), held_out.end());
  }
  EXPECT_GT(leaking, 400);
}

}  // namespace
}  // namespace treadle
