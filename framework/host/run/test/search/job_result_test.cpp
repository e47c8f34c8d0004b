#include "search/study/job_result.h"

#include <cmath>

#include <gmock/gmock.h>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const ExpectedResult kExpected{
    .place = "job 3 of the study iris", .trial = 2, .values = 2, .constraints = 1};

JobResult complete() {
  return {.trial = 2,
          .state = TrialState::kComplete,
          .epoch = 4,
          .values = {0.5, -1},
          .constraints = {-0.25},
          .intermediate = {{1, 0.75}, {4, NAN}},
          .seconds = 2.5};
}

std::string refusal_of(const nlohmann::json& stored) {
  try {
    read_job_result(stored, kExpected);
  } catch (const StorageError& error) {
    return error.what();
  }
  return "none";
}

std::string refusal_with(const char* key, const nlohmann::json& value) {
  nlohmann::json stored = to_json(complete());
  stored[key] = value;
  return refusal_of(stored);
}

TEST(JobResults, AreReadAsTheyWereWritten) {
  // NaN is null in JSON.
  const JobResult read =
      read_job_result(nlohmann::json::parse(to_json(complete()).dump()), kExpected);

  EXPECT_EQ(to_json(read).dump(), to_json(complete()).dump());
  EXPECT_TRUE(std::isnan(read.intermediate.back().value));
}

TEST(JobResults, ThatNoWorkerWritesAreRefused) {
  EXPECT_THAT(refusal_of(7),
              StartsWith("job 3 of the study iris has a result that no worker writes"));
  EXPECT_THAT(refusal_with("state", "\x1b[2J"), HasSubstr("has the state \"\\u001b[2J\""));
  EXPECT_THAT(refusal_with("state", "running"), HasSubstr("does not know"));
  EXPECT_THAT(refusal_with("trial", 1), HasSubstr("of trial 1, not of trial 2"));
  EXPECT_THAT(refusal_with("values", {1}), HasSubstr("1 values and 1 constraints"));
  EXPECT_THAT(refusal_with("state", "pruned"), HasSubstr("2 values and 1 constraints"));
  EXPECT_THAT(refusal_with("values", {1, nullptr}), HasSubstr("in values is null"));
  EXPECT_THAT(refusal_with("constraints", nlohmann::json::array()), HasSubstr("0 constraints"));
  EXPECT_THAT(refusal_with("epoch", -1), HasSubstr("epoch is -1"));
  EXPECT_THAT(refusal_with("epoch", INT64_MAX), HasSubstr("epoch is 9223372036854775807"));
  EXPECT_THAT(refusal_with("epoch", 1.5), HasSubstr("epoch is 1.5"));
  EXPECT_THAT(refusal_with("seconds", -1), HasSubstr("-1 s"));
  EXPECT_THAT(refusal_with("error", 1), HasSubstr("missing, or of another kind"));
  EXPECT_THAT(refusal_with("intermediate", {{2, 0.5}, {2, 0.5}}), HasSubstr("epoch 2 comes after"));
}

TEST(JobResults, OfAPausedTrialHaveAValue) {
  JobResult result{.trial = 2, .state = TrialState::kPaused, .intermediate = {{1, 0.5}}};
  EXPECT_EQ(refusal_of(to_json(result)), "none");

  result.intermediate.clear();
  EXPECT_THAT(refusal_of(to_json(result)), HasSubstr("is paused and has no value"));
}

}  // namespace
}  // namespace treadle::internal
