#include "decisions.h"

#include <cmath>
#include <functional>

#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>

namespace treadle {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;

EpochSummary row(double loss, double accuracy = 0) {
  EpochSummary row;
  row.training_loss = loss;
  row.metrics = {{"accuracy", accuracy, Direction::kHigherIsBetter}};
  row.observed = {{"encoded", 2 * loss, Direction::kNone}};
  return row;
}

Decisions decisions(const Json& configuration) {
  // 4 steps an epoch, 40 in all.
  return {DecisionPlan::configured_by(Config(configuration)), 4, 40};
}

/// Stops when this holds; after how many of the rows, or 0.
int stops_after(const Json& when, const std::vector<EpochSummary>& rows) {
  Decisions its = decisions({{"stop", {{"when", when}}}});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!its.after(rows[i]).stop_reason.empty())
      return static_cast<int>(i) + 1;
  }
  return 0;
}

std::vector<EpochSummary> losses(const std::vector<double>& values) {
  std::vector<EpochSummary> rows;
  for (const double value : values)
    rows.push_back(row(value, value));
  return rows;
}

TEST(Condition, WaitsForAFullWindow) {
  const auto flat = losses({1, 1, 1, 1, 1});
  EXPECT_EQ(stops_after({{"trend", "loss"}, {"stalled", {3, 0.1}}}, flat), 3);
  EXPECT_EQ(stops_after({{"trend", "loss"}, {"converged", {4, 0.1}}}, flat), 4);
  EXPECT_EQ(stops_after({{"trend", "loss"}, {"not_improving", 2}}, flat), 2);
  EXPECT_EQ(stops_after({{"trend", "loss"}, {"improving", 2}}, flat), 0);
}

TEST(Condition, LooksAtTheNewestValues) {
  const auto settling = losses({9, 5, 1, 1.01, 1});
  EXPECT_EQ(stops_after({{"trend", "loss"}, {"stalled", {3, 0.1}}}, settling), 5);
  EXPECT_EQ(stops_after({{"trend", "loss"}, {"converged", {2, 0.01}}}, settling), 4);
  EXPECT_EQ(stops_after({{"trend", "encoded"}, {"stalled", {2, 0.019}}}, settling), 0);
  EXPECT_EQ(stops_after({{"trend", "encoded"}, {"stalled", {2, 0.021}}}, settling), 4);
}

TEST(Condition, KnowsWhichWayIsBetter) {
  const auto rising = losses({1, 2, 3});
  EXPECT_EQ(stops_after({{"trend", "loss"}, {"improving", 2}}, rising), 0);
  EXPECT_EQ(stops_after({{"trend", "accuracy"}, {"improving", 2}}, rising), 2) << "a metric says";
  EXPECT_EQ(stops_after({{"trend", "encoded"}, {"not_improving", 2}}, rising), 2)
      << "lower, where nothing says";
  EXPECT_EQ(stops_after({{"trend", "encoded"}, {"improving", 2}, {"better", "higher"}}, rising), 2);
  EXPECT_EQ(stops_after({{"trend", "accuracy"}, {"not_improving", 2}, {"better", "lower"}}, rising),
            2);
}

TEST(Condition, AsksAllOrAnyOfSeveralTrends) {
  std::vector<EpochSummary> rows;
  for (const double accuracy : {1.0, 1.0, 1.0})
    rows.push_back(row(static_cast<double>(rows.size()), accuracy));
  const Json both{{"trend", {"loss", "accuracy"}}, {"stalled", {2, 0.5}}};
  Json any = both;
  any["of"] = "any";

  EXPECT_EQ(stops_after(both, rows), 0);
  EXPECT_EQ(stops_after(any, rows), 2);
}

TEST(Condition, CanWait) {
  const auto flat = losses(std::vector<double>(10, 1.0));
  EXPECT_EQ(stops_after({{"after", "3ep"}}, flat), 3);
  EXPECT_EQ(stops_after({{"after", "13st"}}, flat), 4) << "epochs, rounded up";
  EXPECT_EQ(stops_after({{"after", "50%"}}, flat), 5);
  EXPECT_EQ(stops_after({{"trend", "loss"}, {"stalled", {2, 1}}, {"after", "6ep"}}, flat), 6);
}

TEST(Condition, DoesNotHoldForWhatIsNoNumber) {
  EXPECT_EQ(stops_after({{"trend", "loss"}, {"stalled", {2, 1e9}}}, losses({NAN, NAN, NAN, 1, 1})),
            5);
}

std::string mistake(const Json& when) {
  try {
    Condition::configured_by(Config(when));
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "";
}

TEST(Condition, SaysWhatIsWrongWithIt) {
  EXPECT_EQ(mistake({{"trend", "loss"}, {"stalled", {5, 1e-4}}, {"improving", 3}}),
            "/improving: a condition says one thing of its trends; write another for this one");
  EXPECT_EQ(mistake({{"trend", "loss"}, {"stalled", {2.5, 1e-4}}}),
            "/stalled: the first number counts epochs: expected a whole number");
  EXPECT_EQ(mistake({{"trend", "loss"}, {"stalled", {1, 1e-4}}}),
            "/stalled: one epoch has no trend: expected at least 2 epochs");
  EXPECT_EQ(mistake({{"trend", "loss"}, {"converged", {5, 0}}}),
            "/converged: the second number is what is still taken for still: it must be above 0");
  EXPECT_EQ(mistake({{"trend", "loss"}}),
            "a trend and what must be true of it belong together: {\"trend\": \"loss\", "
            "\"stalled\": [5, 1e-4]}");
  EXPECT_EQ(mistake({{"improving", 3}}), mistake({{"trend", "loss"}}));
  EXPECT_EQ(mistake(Json::object()), "expected a trend and what must be true of it, or \"after\"");
}

/// Drops the rate twice, then unfreezes, then stops, each when the loss stalls.
const Json kAll = {
    {"rate",
     {{{"when", {{"trend", "loss"}, {"stalled", {2, 0.1}}}}, {"factor", 0.1}, {"times", 2}}}},
    {"unfreeze",
     {{{"when", {{"trend", "encoded"}, {"stalled", {3, 0.1}}}}, {"parameters", {"a.*"}}},
      {{"when", {{"trend", "encoded"}, {"stalled", {3, 0.1}}}}, {"parameters", {"b", "c"}}}}},
    {"stop", {{"when", {{"trend", "loss"}, {"stalled", {4, 0.1}}}}}}};

TEST(Decisions, BeginTheWindowsAnewAfterEveryChange) {
  Decisions its = decisions(kAll);
  std::vector<std::string> texts;
  std::vector<double> factors;
  std::vector<std::size_t> unfrozen;
  std::string reason;
  for (int epoch = 1; epoch <= 20 && reason.empty(); ++epoch) {
    const Decisions::Made made = its.after(row(1));
    for (const std::string& text : made.texts)
      texts.push_back(std::to_string(epoch) + " " + text);
    if (made.unfrozen)
      unfrozen.push_back(*made.unfrozen);
    reason = made.stop_reason;
    factors.push_back(its.rate_factor());
  }

  EXPECT_THAT(texts, ElementsAre("2 learning rate times 0.1: loss stalled for 2 epochs",
                                 "4 learning rate times 0.1: loss stalled for 2 epochs",
                                 "7 unfrozen a.*: encoded stalled for 3 epochs",
                                 "10 unfrozen b c: encoded stalled for 3 epochs",
                                 "14 stopped: loss stalled for 4 epochs"));
  EXPECT_EQ(reason, "loss stalled for 4 epochs");
  EXPECT_THAT(unfrozen, ElementsAre(0, 1));
  EXPECT_EQ(factors[0], 1);
  EXPECT_EQ(factors[1], 0.1);
  EXPECT_EQ(factors.back(), 0.1 * 0.1);
}

TEST(Decisions, ContinueFromEveryEpochAsIfTheyHadNeverStopped) {
  const auto texts_of = [](int stopped_after) {
    auto its = std::make_unique<Decisions>(decisions(kAll));
    std::vector<std::vector<std::string>> texts;
    for (int epoch = 1; epoch <= 14; ++epoch) {
      texts.push_back(its->after(row(1 + 0.01 / epoch)).texts);
      if (epoch != stopped_after)
        continue;
      const StateDict state = its->state();
      const double factor = its->rate_factor();
      const auto unfrozen = its->unfrozen();
      its = std::make_unique<Decisions>(decisions(kAll));
      its->load_state(state);
      EXPECT_EQ(its->rate_factor(), factor);
      EXPECT_EQ(its->unfrozen(), unfrozen);
    }
    return texts;
  };
  const auto whole = texts_of(0);
  for (int epoch = 1; epoch <= 14; ++epoch)
    EXPECT_EQ(texts_of(epoch), whole) << epoch;
}

TEST(Decisions, ThatOnlyWaitForTheRateAreMadeOnce) {
  Decisions its = decisions({{"rate", {{{"when", {{"after", "2ep"}}}, {"factor", 0.5}}}}});
  std::vector<double> factors;
  for (int epoch = 1; epoch <= 4; ++epoch) {
    its.after(row(1));
    factors.push_back(its.rate_factor());
  }

  EXPECT_THAT(factors, ElementsAre(1, 0.5, 0.5, 0.5));
}

TEST(Decisions, SayWhichNumberIsGone) {
  Decisions its = decisions({{"stop", {{"when", {{"trend", "recall"}, {"improving", 2}}}}}});
  try {
    its.after(row(1));
    FAIL();
  } catch (const TrainingError& error) {
    EXPECT_STREQ(error.what(),
                 "\"recall\" was known at first and no longer is; a model or metric must give the "
                 "same names for any rows, watch another or mend its plugin");
  }
}

TEST(Decisions, OfARefitAreThoseOfWhatItWillKnow) {
  const Json of_accuracy{{"trend", "accuracy"}, {"improving", 2}};
  const Json of_loss{{"trend", "loss"}, {"improving", 2}};
  const DecisionPlan plan = DecisionPlan::configured_by(Config(
      {{"rate", {{{"when", of_accuracy}, {"factor", 0.1}}, {{"when", of_loss}, {"factor", 0.2}}}},
       {"unfreeze",
        {{{"when", of_accuracy}, {"parameters", {"a"}}},
         {{"when", of_loss}, {"parameters", {"b"}}}}},
       {"stop", {{"when", of_loss}}}}));
  std::vector<std::string> left_out;

  const DecisionPlan refit = plan.for_refit({"loss"}, left_out);

  EXPECT_THAT(left_out, ElementsAre("changing the rate when accuracy improving for 2 epochs",
                                    "unfreezing a when accuracy improving for 2 epochs"));
  EXPECT_FALSE(refit.stop) << "it trains as long as it is told to";
  ASSERT_EQ(refit.rates.size(), 1U);
  EXPECT_EQ(refit.rates[0].factor, 0.2);
  Decisions its(refit, 4, 40);
  its.after(row(2));
  EXPECT_EQ(its.after(row(1)).unfrozen, 1U) << "its place among those that were written";
}

TEST(Decisions, RefuseTheStateOfAnotherTraining) {
  const StateDict state = decisions(kAll).state();
  Json fewer = kAll;
  fewer.erase("rate");
  Decisions its = decisions(fewer);

  EXPECT_THROW(its.load_state(state), StorageError);
}

}  // namespace
}  // namespace treadle
