#include "schedules.h"

#include <vector>

#include <gmock/gmock.h>

#include <treadle/testing/plugin_under_test.h>
#include <treadle/testing/schedule_contract.h>

namespace treadle::testing {
namespace {

using Parameters = nlohmann::json;

const PluginUnderTest& plugin() {
  static const PluginUnderTest kPlugin(TREADLE_PLUGIN_FOLDER);
  return kPlugin;
}

std::unique_ptr<LearningRateSchedule> make(std::string_view name, Parameters parameters = {}) {
  return plugin().make<LearningRateSchedule>(name, std::move(parameters));
}

ScheduleCase case_of(std::string name, std::string component, Parameters parameters = {}) {
  return {.name = std::move(name),
          .make = [component, parameters] { return make(component, parameters); },
          .never_rises = true};
}

ScheduleCase warmed_up_case() {
  return {.name = "WarmedUpCosine",
          .make =
              [] {
                return std::make_unique<WarmedUpSchedule>(make("cosine"), Duration::parse("10st"));
              },
          .starts_at_base = false};
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, ScheduleContract,
    ::testing::Values(case_of("Constant", "constant"), case_of("Step", "step"),
                      case_of("StepOfSteps", "step", {{"step_size", "7st"}, {"gamma", 0.5}}),
                      case_of("Cosine", "cosine"),
                      case_of("CosineToARate", "cosine", {{"min_rate", 0.01}, {"length", "50%"}}),
                      case_of("Linear", "linear"),
                      case_of("LinearToARate", "linear", {{"end_rate", 0.1}, {"length", "3ep"}}),
                      warmed_up_case()),
    CaseName());

constexpr ScheduleSpan kSpan{.base_rate = 0.8, .total_steps = 100, .steps_per_epoch = 10};

std::vector<double> rates(const LearningRateSchedule& schedule, std::vector<std::int64_t> steps) {
  std::vector<double> all;
  for (const std::int64_t step : steps)
    all.push_back(schedule.rate_at(step, kSpan));
  return all;
}

TEST(Constant, StaysAtTheBaseRate) {
  EXPECT_EQ(rates(*make("constant"), {0, 50, 99, 500}), (std::vector<double>{0.8, 0.8, 0.8, 0.8}));
}

TEST(StepDecay, DecaysOncePerStretch) {
  const auto schedule = make("step", {{"step_size", "2ep"}, {"gamma", 0.5}});

  EXPECT_EQ(rates(*schedule, {0, 19, 20, 39, 40, 99}),
            (std::vector<double>{0.8, 0.8, 0.4, 0.4, 0.2, 0.05}));
}

TEST(StepDecay, TakesSharesAndSteps) {
  EXPECT_EQ(rates(*make("step", {{"step_size", "25%"}, {"gamma", 0.5}}), {24, 25, 75}),
            (std::vector<double>{0.8, 0.4, 0.1}));
  EXPECT_EQ(rates(*make("step", {{"step_size", "30st"}, {"gamma", 0.5}}), {29, 30, 60}),
            (std::vector<double>{0.8, 0.4, 0.2}));
}

TEST(StepDecay, KeepsTheLastRateWhenAStretchWouldBeginAfterTheEnd) {
  EXPECT_EQ(rates(*make("step", {{"step_size", "50st"}, {"gamma", 0.5}}), {99, 100, 150}),
            (std::vector<double>{0.4, 0.4, 0.4}));
}

TEST(StepDecay, DefaultsToATenthEveryTenEpochs) {
  const ScheduleSpan span{.base_rate = 1, .total_steps = 1000, .steps_per_epoch = 10};

  EXPECT_EQ(make("step")->rate_at(99, span), 1);
  EXPECT_EQ(make("step")->rate_at(100, span), 0.1);
}

TEST(Cosine, RunsFromBaseToMinimumExactly) {
  const auto schedule = make("cosine", {{"min_rate", 0.2}});

  EXPECT_EQ(schedule->rate_at(0, kSpan), 0.8);
  EXPECT_NEAR(schedule->rate_at(50, kSpan), 0.5, 1e-15);
  // A third of the way: (1 + cos(pi / 3)) / 2 = 3/4 of the difference are left.
  const ScheduleSpan thirds{.base_rate = 0.8, .total_steps = 3, .steps_per_epoch = 1};
  EXPECT_NEAR(schedule->rate_at(1, thirds), 0.2 + 0.75 * 0.6, 1e-15);
  EXPECT_GT(schedule->rate_at(99, kSpan), 0.2);
  EXPECT_EQ(schedule->rate_at(100, kSpan), 0.2);
  EXPECT_EQ(schedule->rate_at(1000, kSpan), 0.2);
}

TEST(Cosine, CanEndBeforeTheTraining) {
  const auto schedule = make("cosine", {{"length", "5ep"}});

  EXPECT_NEAR(schedule->rate_at(25, kSpan), 0.4, 1e-15);
  EXPECT_EQ(rates(*schedule, {50, 99}), (std::vector<double>{0, 0}));
}

TEST(Cosine, StartsAfterTheWarmUp) {
  const WarmedUpSchedule schedule(make("cosine"), Duration::parse("20%"));

  EXPECT_NEAR(schedule.rate_at(9, kSpan), 0.4, 1e-15);
  EXPECT_EQ(schedule.rate_at(19, kSpan), 0.8);
  EXPECT_EQ(schedule.rate_at(20, kSpan), 0.8);
  EXPECT_NEAR(schedule.rate_at(60, kSpan), 0.4, 1e-15);
  EXPECT_EQ(schedule.rate_at(100, kSpan), 0);
}

TEST(Linear, GoesAlongALine) {
  const auto schedule = make("linear", {{"end_rate", 0.4}});

  EXPECT_EQ(schedule->rate_at(0, kSpan), 0.8);
  EXPECT_NEAR(schedule->rate_at(25, kSpan), 0.7, 1e-15);
  EXPECT_NEAR(schedule->rate_at(99, kSpan), 0.404, 1e-15);
  EXPECT_EQ(rates(*schedule, {100, 101}), (std::vector<double>{0.4, 0.4}));
}

TEST(Linear, DefaultsToZero) {
  EXPECT_EQ(make("linear")->rate_at(100, kSpan), 0);
}

std::string message_of(std::string_view name, const Parameters& parameters) {
  try {
    make(name, parameters);
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Schedules, RefuseLengthsInWallTime) {
  EXPECT_EQ(message_of("step", {{"step_size", "2h"}}),
            "/step_size: expected a share of the training, epochs or steps (\"5%\", \"10ep\", "
            "\"500st\"), because wall "
            "time would make two runs differ; got \"2h\"");
  EXPECT_THAT(message_of("cosine", {{"length", "30min"}}), ::testing::HasSubstr("got \"30min\""));
  EXPECT_THAT(message_of("linear", {{"length", "5s"}}), ::testing::HasSubstr("got \"5s\""));
}

TEST(Schedules, RefuseEmptyLengths) {
  EXPECT_EQ(message_of("step", {{"step_size", "0ep"}}),
            "/step_size: must be longer than 0, got \"0ep\"");
  EXPECT_EQ(message_of("linear", {{"length", "0st"}}),
            "/length: must be longer than 0, got \"0st\"");
}

TEST(Schedules, RefuseParametersOutOfRange) {
  EXPECT_THROW(make("step", {{"gamma", 0}}), DocumentError);
  EXPECT_THROW(make("cosine", {{"min_rate", -0.1}}), DocumentError);
  EXPECT_THROW(make("linear", {{"end_rate", -0.1}}), DocumentError);
  EXPECT_THROW(make("constant", {{"gamma", 0.1}}), DocumentError);
}

}  // namespace
}  // namespace treadle::testing
