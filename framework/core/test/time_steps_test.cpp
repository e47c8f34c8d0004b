#include <treadle/core/time_steps.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <treadle/base/error.h>

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

}  // namespace
}  // namespace treadle
