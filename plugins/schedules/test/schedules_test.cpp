#include "schedules.h"

#include <vector>

#include <gmock/gmock.h>

#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/training/schedule_contract.h>

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

ScheduleCase rising_case(std::string name, std::string component, Parameters parameters = {}) {
  ScheduleCase a_case = case_of(std::move(name), std::move(component), std::move(parameters));
  a_case.never_rises = false;
  return a_case;
}

ScheduleCase from_below_case(std::string name, std::string component, Parameters parameters = {}) {
  ScheduleCase a_case = rising_case(std::move(name), std::move(component), std::move(parameters));
  a_case.starts_at_base = false;
  return a_case;
}

/// Three schedules, two of which rise to the base rate again.
const Parameters kChain = Parameters::parse(R"({
    "schedules": [{"use": "linear", "end_rate": 0.2}, {"use": "cosine", "min_rate": 0.2},
                  {"use": "exponential", "gamma": 0.5, "decay": "1st"}],
    "milestones": ["3st", "7st"]})");

INSTANTIATE_TEST_SUITE_P(
    Schedules, ScheduleContract,
    ::testing::Values(case_of("Constant", "constant"), case_of("Step", "step"),
                      case_of("StepOfSteps", "step", {{"step_size", "7st"}, {"gamma", 0.5}}),
                      case_of("Cosine", "cosine"),
                      case_of("CosineToARate", "cosine", {{"min_rate", 0.01}, {"length", "50%"}}),
                      case_of("Linear", "linear"),
                      case_of("LinearToARate", "linear", {{"end_rate", 0.1}, {"length", "3ep"}}),
                      case_of("Polynomial", "polynomial", {{"power", 2.5}}),
                      case_of("SlowPolynomial", "polynomial",
                              {{"power", 0.5}, {"end_rate", 0.1}, {"length", "50st"}}),
                      case_of("Exponential", "exponential"),
                      case_of("MultiStep", "multi_step", {{"milestones", {"25%", "50st", "9ep"}}}),
                      rising_case("CosineRestarts", "cosine_restarts", {{"period", "7st"}}),
                      rising_case("LongerRestarts", "cosine_restarts",
                                  {{"period", "2ep"}, {"period_factor", 3}, {"min_rate", 0.1}}),
                      from_below_case("OneCycle", "one_cycle"),
                      from_below_case("OneCycleInThreePhases", "one_cycle",
                                      {{"three_phase", true}, {"length", "50%"}}),
                      from_below_case("SteepOneCycle", "one_cycle",
                                      {{"pct_start", 1}, {"anneal_strategy", "linear"}}),
                      from_below_case("InverseSquareRoot", "inverse_square_root",
                                      {{"rise", "10%"}}),
                      rising_case("Sequential", "sequential", kChain), warmed_up_case()),
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

/// The rates of the first steps of a training of `total` are those.
void expect_rates(const LearningRateSchedule& schedule, std::int64_t total,
                  const std::vector<double>& expected) {
  const ScheduleSpan span{.base_rate = 0.8, .total_steps = total, .steps_per_epoch = 4};
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(schedule.rate_at(static_cast<std::int64_t>(step), span), expected[step], 1e-15)
        << "step " << step;
  }
}

// The rates below are PyTorch's, step by step: python3 plugins/schedules/test/reference.py

TEST(Polynomial, IsPyTorchsPolynomialLr) {
  const std::vector<double> rates{0.8,   0.648, 0.512, 0.392, 0.288, 0.2,
                                  0.128, 0.072, 0.032, 0.008, 0};
  expect_rates(*make("polynomial", {{"power", 2}}), 10, rates);
  expect_rates(*make("polynomial", {{"power", 2}, {"length", "10st"}}), 40, rates);
}

TEST(Polynomial, LeadsToItsEndRate) {
  const auto schedule = make("polynomial", {{"power", 2}, {"end_rate", 0.4}});

  EXPECT_NEAR(schedule->rate_at(50, kSpan), 0.4 + 0.4 / 4, 1e-15);
  EXPECT_EQ(rates(*schedule, {0, 100, 1000}), (std::vector<double>{0.8, 0.4, 0.4}));
}

TEST(Polynomial, OfPowerOneIsALine) {
  for (const std::int64_t step : {0, 1, 50, 99, 100})
    EXPECT_EQ(make("polynomial")->rate_at(step, kSpan), make("linear")->rate_at(step, kSpan));
}

TEST(Exponential, IsPyTorchsExponentialLr) {
  expect_rates(*make("exponential", {{"gamma", 0.5}, {"decay", "1st"}}), 40,
               {0.8, 0.4, 0.2, 0.1, 0.05, 0.025});
}

TEST(Exponential, FallsWithinADecayTimeAsWell) {
  const auto schedule = make("exponential", {{"gamma", 0.25}, {"decay", "2ep"}});

  EXPECT_NEAR(schedule->rate_at(10, kSpan), 0.4, 1e-15);
  EXPECT_NEAR(schedule->rate_at(20, kSpan), 0.2, 1e-15);
  EXPECT_NEAR(schedule->rate_at(30, kSpan), 0.1, 1e-15);
}

TEST(MultiStep, IsPyTorchsMultiStepLr) {
  expect_rates(*make("multi_step", {{"milestones", {"3st", "5st", "9st"}}, {"gamma", 0.5}}), 12,
               {0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1});
}

TEST(MultiStep, TakesMilestonesInAnyUnit) {
  const auto schedule =
      make("multi_step", {{"milestones", {"30%", "5ep", "90st"}}, {"gamma", 0.5}});

  EXPECT_EQ(rates(*schedule, {29, 30, 49, 50, 89, 90}),
            (std::vector<double>{0.8, 0.4, 0.4, 0.2, 0.2, 0.1}));
}

TEST(CosineRestarts, IsPyTorchsCosineAnnealingWarmRestarts) {
  expect_rates(*make("cosine_restarts", {{"period", "1ep"}, {"min_rate", 0.2}}), 12,
               {0.8, 0.7121320343559643, 0.5, 0.2878679656440358, 0.8, 0.7121320343559643, 0.5,
                0.2878679656440358, 0.8, 0.7121320343559643, 0.5, 0.2878679656440358});
  expect_rates(*make("cosine_restarts", {{"period", "2st"}, {"period_factor", 2}}), 12,
               {0.8, 0.4, 0.8, 0.682842712474619, 0.4, 0.117157287525381, 0.8, 0.7695518130045147,
                0.682842712474619, 0.553073372946036, 0.4, 0.2469266270539641});
}

TEST(OneCycle, IsPyTorchsOneCycleLr) {
  expect_rates(*make("one_cycle"), 12,
               {0.03200000000000003, 0.2798317233756664, 0.703428127297703, 0.7955323483607295,
                0.7464103758731294, 0.6493965231598104, 0.5179031981560827, 0.37010968213358,
                0.2264487985669594, 0.1067820241510645, 0.02765358994031618, 3.2e-06});
  expect_rates(*make("one_cycle", {{"pct_start", 0.25},
                                   {"anneal_strategy", "linear"},
                                   {"div_factor", 10},
                                   {"final_div_factor", 100},
                                   {"length", "12st"}}),
               40,
               {0.08, 0.44, 0.8, 0.7112, 0.6224, 0.5336, 0.4448, 0.356, 0.2672, 0.1784, 0.0896,
                0.0008, 0.0008});
  expect_rates(*make("one_cycle", {{"pct_start", 0.4}, {"three_phase", true}}), 12,
               {0.03200000000000003, 0.1559238764957154, 0.4477104686613754, 0.7190299556082151,
                0.7947627405066455, 0.6260280927190123, 0.3217335729379336, 0.07828207953670846,
                0.03091966371490265, 0.02037976998036922, 0.006360410033350111, 3.2e-06});
}

TEST(InverseSquareRoot, IsVaswanisWithItsPeakAtTheBaseRate) {
  expect_rates(*make("inverse_square_root", {{"rise", "4st"}}), 12,
               {0.2, 0.4, 0.6, 0.8, 0.7155417527999328, 0.6531972647421809, 0.6047431568147636,
                0.5656854249492381, 0.5333333333333333, 0.5059644256269408, 0.4824181513244218,
                0.4618802153517006});
}

TEST(Sequential, IsPyTorchsSequentialLr) {
  expect_rates(
      *make("sequential", kChain), 12,
      {0.8, 0.6, 0.4, 0.8, 0.7121320343559643, 0.5, 0.2878679656440358, 0.8, 0.4, 0.2, 0.1, 0.05});
}

TEST(Sequential, GivesTheLastScheduleTheRestOfTheTraining) {
  const auto schedule =
      make("sequential", Parameters::parse(R"({"schedules": ["constant", "linear"],
                                               "milestones": ["60%"]})"));

  EXPECT_EQ(rates(*schedule, {59, 60, 100, 1000}), (std::vector<double>{0.8, 0.8, 0, 0}));
  EXPECT_NEAR(schedule->rate_at(80, kSpan), 0.4, 1e-15);
}

TEST(Sequential, LeavesOutAScheduleThatWouldEndBeforeItBegins) {
  const auto schedule = make(
      "sequential", Parameters::parse(R"({"schedules": ["constant", {"use": "linear"}, "cosine"],
                                          "milestones": ["5ep", "20st"]})"));

  EXPECT_EQ(rates(*schedule, {49, 50, 100}), (std::vector<double>{0.8, 0.8, 0}));
  EXPECT_NEAR(schedule->rate_at(75, kSpan), 0.4, 1e-15);
}

TEST(Sequential, NeedsNoEndIfItsLastScheduleNeedsNone) {
  const auto schedule =
      make("sequential", Parameters::parse(R"({"schedules": ["linear", "constant"],
                                               "milestones": ["10st"]})"));
  const ScheduleSpan endless{.base_rate = 0.8, .total_steps = {}, .steps_per_epoch = {}};

  EXPECT_NEAR(schedule->rate_at(5, endless), 0.4, 1e-15);
  EXPECT_EQ(schedule->rate_at(1000000, endless), 0.8);
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
  for (const auto& [name, key] :
       std::vector<std::pair<std::string, std::string>>{{"polynomial", "length"},
                                                        {"exponential", "decay"},
                                                        {"cosine_restarts", "period"},
                                                        {"one_cycle", "length"},
                                                        {"inverse_square_root", "rise"}}) {
    EXPECT_EQ(message_of(name, {{key, "0%"}}), "/" + key + ": must be longer than 0, got \"0%\"");
  }
}

TEST(Schedules, RefuseMilestonesOutOfOrder) {
  EXPECT_EQ(message_of("multi_step", {{"milestones", {"5ep", "30st", "20st"}}}),
            "/milestones: each must be later than the one before it, got \"20st\" after \"30st\"");
  EXPECT_EQ(message_of("sequential", {{"schedules", {"constant", "linear", "cosine"}},
                                      {"milestones", {"50%", "50%"}}}),
            "/milestones: each must be later than the one before it, got \"50%\" after \"50%\"");
}

TEST(Sequential, RefusesAnotherNumberOfMilestones) {
  EXPECT_EQ(message_of("sequential",
                       {{"schedules", {"constant", "linear", "cosine"}}, {"milestones", {"50%"}}}),
            "/milestones: expected one for each schedule but the first, 2 for 3 schedules, got 1");
}

TEST(OneCycle, RefusesThreePhasesThatDoNotFit) {
  EXPECT_EQ(message_of("one_cycle", {{"pct_start", 0.6}, {"three_phase", true}}),
            "/pct_start: of three phases the second is as long as the first: must be at most 0.5, "
            "got 0.6");
}

TEST(Schedules, RefuseParametersOutOfRange) {
  EXPECT_THROW(make("step", {{"gamma", 0}}), DocumentError);
  EXPECT_THROW(make("cosine", {{"min_rate", -0.1}}), DocumentError);
  EXPECT_THROW(make("linear", {{"end_rate", -0.1}}), DocumentError);
  EXPECT_THROW(make("constant", {{"gamma", 0.1}}), DocumentError);
  EXPECT_THROW(make("polynomial", {{"power", 0}}), DocumentError);
  EXPECT_THROW(make("exponential", {{"gamma", 0}}), DocumentError);
  EXPECT_THROW(make("multi_step", {{"milestones", Parameters::array()}}), DocumentError);
  EXPECT_THROW(make("cosine_restarts", {{"period_factor", 0}}), DocumentError);
  EXPECT_THROW(make("one_cycle", {{"pct_start", 1.1}}), DocumentError);
  EXPECT_THROW(make("one_cycle", {{"div_factor", 0}}), DocumentError);
}

}  // namespace
}  // namespace treadle::testing
