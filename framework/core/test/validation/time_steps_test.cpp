#include <treadle/core/validation/time_steps.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>
#include <treadle/core/data/matrix_rows.h>

#include "touching.h"

namespace treadle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SplitRequest at_times(std::vector<double> times) {
  SplitRequest request;
  request.rows = static_cast<std::int64_t>(times.size());
  request.timestamps = at::tensor(times, at::kDouble);
  return request;
}

TEST(TimeSteps, RowsOfOneTimeShareAStep) {
  const TimeSteps steps(at_times({5, 1, 5, 3, 1}), TimeSteps::Axis::kRows);

  EXPECT_EQ(steps.count(), 3);
  EXPECT_EQ(steps.first(0), 2);
  EXPECT_EQ(steps.first(3), 1);
  EXPECT_THAT(steps.beginning_in(0, 1), ElementsAre(1, 4));
  EXPECT_THAT(steps.beginning_in(1, 3), ElementsAre(3, 0, 2));
  EXPECT_THAT(steps.beginning_in(-5, 99), ElementsAre(1, 4, 3, 0, 2));
  EXPECT_THAT(steps.beginning_in(2, 1), IsEmpty());
}

TEST(TimeSteps, WithoutTimesEachRowIsAStep) {
  SplitRequest request;
  request.rows = 4;

  const TimeSteps steps(request, TimeSteps::Axis::kData);

  EXPECT_EQ(steps.count(), 4);
  EXPECT_THAT(steps.within(1, 3), ElementsAre(1, 2));
}

TEST(TimeSteps, LabelsReachTheLastStepBeforeTheirEnds) {
  SplitRequest request = at_times({0, 10, 20, 30});
  request.label_ends = at::tensor({5., 20., 45., 30.}, at::kDouble);

  const TimeSteps steps(request, TimeSteps::Axis::kRows);

  EXPECT_EQ(steps.last(0), 0);
  EXPECT_EQ(steps.last(1), 2);
  EXPECT_EQ(steps.last(2), 3);
  EXPECT_THAT(steps.within(0, 3), ElementsAre(0, 1));
}

/// Regular samples of one series of `rows` rows, or nothing where there is no room for one.
std::vector<SampleRun> random_windows(RandomBits& bits, std::int64_t rows) {
  const auto lookback = static_cast<std::int64_t>(1 + bits.below(4));
  const auto begin = lookback + static_cast<std::int64_t>(bits.below(3));
  const auto horizon = static_cast<std::int64_t>(1 + bits.below(3));
  const auto step = static_cast<std::int64_t>(1 + bits.below(4));
  return {
      {0, (rows - begin - horizon) / step + 1, {{0, lookback}, {begin, begin + horizon}}, step}};
}

// By the definition: a step is a distinct time, and a target begins in the last one not after it.
TEST(TimeSteps, InOrderOfTimeAreThoseOfTheirDefinition) {
  RandomBits bits(17);
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    const auto rows = static_cast<std::int64_t>(12 + bits.below(60));
    const bool has_times = bits.below(2) == 0;
    const bool has_ends = has_times && bits.below(2) == 0;
    const TimeSteps::Axis axis =
        bits.below(2) == 0 ? TimeSteps::Axis::kRows : TimeSteps::Axis::kData;
    const std::vector<SampleRun> runs = random_windows(bits, rows);
    std::vector<SourceRows> touched;
    for (std::int64_t i = 0; i < runs[0].count; ++i)
      touched.push_back(runs[0].rows.after(i * runs[0].step));
    std::vector<double> times;
    for (std::int64_t row = 0; row < rows; ++row) {
      const double time = times.empty() ? 0 : times.back() + 1;
      times.push_back(has_times ? time + static_cast<double>(bits.below(3)) : time);
    }
    MatrixRows::Matrices matrices = table(rows);
    if (has_times)
      matrices.timestamps = at::tensor(times, at::kDouble);
    const MatrixRows data(std::move(matrices));
    const Touching samples(touched, runs);
    SplitRequest request;
    request.rows = samples.rows();
    request.samples = &samples;
    request.data = &data;
    std::vector<double> firsts;
    std::vector<double> lasts;
    for (const SourceRows& one : touched) {
      firsts.push_back(times[static_cast<std::size_t>(one.targets.begin)]);
      const double end = times[static_cast<std::size_t>(one.targets.end - 1)];
      lasts.push_back(has_ends ? firsts.back() + static_cast<double>(bits.below(9)) : end);
    }
    if (has_times)
      request.timestamps = at::tensor(firsts, at::kDouble);
    if (has_ends)
      request.label_ends = at::tensor(lasts, at::kDouble);
    std::vector<double> distinct = times;
    std::erase_if(distinct, [&](double time) {
      return axis == TimeSteps::Axis::kRows && (time < firsts.front() || time > firsts.back());
    });
    const auto step_of = [&](double time) {
      std::int64_t step = 0;
      for (std::size_t i = 0; i < distinct.size(); ++i)
        step = distinct[i] <= time ? static_cast<std::int64_t>(i) : step;
      return step;
    };

    const TimeSteps steps(request, axis);

    EXPECT_TRUE(steps.are_in_order());
    ASSERT_EQ(steps.count(), static_cast<std::int64_t>(distinct.size()));
    const auto begin = static_cast<std::int64_t>(bits.below(distinct.size()));
    const auto end = begin + static_cast<std::int64_t>(bits.below(distinct.size()));
    std::vector<std::int64_t> beginning;
    std::vector<std::int64_t> within;
    for (std::int64_t row = 0; row < request.rows; ++row) {
      const std::int64_t first = step_of(firsts[static_cast<std::size_t>(row)]);
      const std::int64_t last = step_of(lasts[static_cast<std::size_t>(row)]);
      EXPECT_EQ(steps.first(row), first);
      EXPECT_EQ(steps.last(row), last);
      if (first >= begin && first < end)
        beginning.push_back(row);
      if (first >= begin && first < end && last < std::min(end, steps.count()))
        within.push_back(row);
    }
    EXPECT_EQ(steps.beginning_in(begin, end).numbers(), beginning);
    EXPECT_EQ(steps.within(begin, end).numbers(), within);
  }
}

}  // namespace
}  // namespace treadle
