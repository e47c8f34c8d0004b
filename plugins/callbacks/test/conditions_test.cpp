#include "condition.h"

#include <cmath>

#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/testing/training/recording_control.h>

#include "freeze.h"
#include "scale_learning_rate.h"
#include "stop.h"

namespace treadle::callbacks {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using treadle::testing::RecordingControl;

EpochSummary row(double loss, double accuracy = 0) {
  EpochSummary row;
  row.train_loss = row.val_loss.emplace(loss);
  row.metrics = {{"accuracy", accuracy, Direction::kHigherIsBetter}};
  row.logged = {{"encoded", 2 * loss, Direction::kNone}};
  return row;
}

/// 4 steps an epoch, 40 in all.
RecordingControl control() {
  RecordingControl control;
  control.names = {"train_loss", "val_loss", "accuracy", "encoded"};
  return control;
}

/// Stops when this holds; after how many of the rows, or 0.
std::int64_t stops_after(const Json& when, const std::vector<EpochSummary>& rows) {
  RecordingControl its = control();
  its.planned_epochs = 100;
  Stop stop(Config(Json{{"when", when}}));
  its.planned_epochs = 10;  // what "50%" is of
  stop.begin(its);
  its.planned_epochs = 100;
  for (const EpochSummary& one : rows) {
    its.after_epoch(stop, one);
    if (!its.stop_reason.empty())
      return its.epoch;
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
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"stalled", {3, 0.1}}}, flat), 3);
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"converged", {4, 0.1}}}, flat), 4);
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"not_improving", 2}}, flat), 2);
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"improving", 2}}, flat), 0);
}

TEST(Condition, LooksAtTheNewestValues) {
  const auto settling = losses({9, 5, 1, 1.01, 1});
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"stalled", {3, 0.1}}}, settling), 5);
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"converged", {2, 0.01}}}, settling), 4);
  EXPECT_EQ(stops_after({{"monitor", "encoded"}, {"stalled", {2, 0.019}}}, settling), 0);
  EXPECT_EQ(stops_after({{"monitor", "encoded"}, {"stalled", {2, 0.021}}}, settling), 4);
}

TEST(Condition, ComparesTheNewestValueWithABound) {
  const auto falling = losses({9, 5, 1, 1.01, 1});
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"below", 5.5}}, falling), 2);
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"below", 5}}, falling), 3) << "not equal";
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"above", 8.5}}, falling), 1);
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"above", 9}}, falling), 0);
}

TEST(Condition, KnowsWhichWayIsBetter) {
  const auto rising = losses({1, 2, 3});
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"improving", 2}}, rising), 0);
  EXPECT_EQ(stops_after({{"monitor", "accuracy"}, {"improving", 2}}, rising), 2) << "a metric says";
  EXPECT_EQ(stops_after({{"monitor", "encoded"}, {"not_improving", 2}}, rising), 2)
      << "lower, where nothing says";
  EXPECT_EQ(stops_after({{"monitor", "encoded"}, {"improving", 2}, {"mode", "max"}}, rising), 2);
  EXPECT_EQ(stops_after({{"monitor", "accuracy"}, {"not_improving", 2}, {"mode", "min"}}, rising),
            2);
}

TEST(Condition, AsksAllOrAnyOfSeveralNumbers) {
  std::vector<EpochSummary> rows;
  for (const double accuracy : {1.0, 1.0, 1.0})
    rows.push_back(row(static_cast<double>(rows.size()), accuracy));
  const Json both{{"monitor", {"train_loss", "accuracy"}}, {"stalled", {2, 0.5}}};
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
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"stalled", {2, 1}}, {"after", "6ep"}}, flat),
            6);
}

TEST(Condition, DoesNotHoldForWhatIsNoNumber) {
  EXPECT_EQ(stops_after({{"monitor", "train_loss"}, {"stalled", {2, 1e9}}},
                        losses({NAN, NAN, NAN, 1, 1})),
            5);
}

TEST(Condition, LeavesOutEpochsThatWereNotEvaluated) {
  auto rows = losses({1, 1, 1, 1, 1, 1});
  for (const std::size_t i : {0U, 2U, 4U}) {
    rows[i].val_loss.reset();
    rows[i].metrics.clear();
  }
  EXPECT_EQ(stops_after({{"monitor", "accuracy"}, {"stalled", {3, 0.1}}}, rows), 6);
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
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  using ::testing::StartsWith;
  const Json loss{{"monitor", "train_loss"}};
  const auto with = [&](Json more) {
    more.update(loss);
    return mistake(more);
  };
  EXPECT_THAT(with({{"stalled", {5, 1e-4}}, {"improving", 3}}),
              AllOf(StartsWith("/improving:"), HasSubstr("one criterion")));
  EXPECT_THAT(with({{"stalled", {2.5, 1e-4}}}),
              AllOf(StartsWith("/stalled:"), HasSubstr("whole number")));
  EXPECT_THAT(with({{"stalled", {1, 1e-4}}}),
              AllOf(StartsWith("/stalled:"), HasSubstr("at least 2 epochs")));
  EXPECT_THAT(with({{"converged", {5, 0}}}),
              AllOf(StartsWith("/converged:"), HasSubstr("above 0")));
  EXPECT_THAT(mistake(loss), HasSubstr("belong together"));
  EXPECT_EQ(mistake({{"improving", 3}}), mistake(loss));
  EXPECT_THAT(mistake(Json::object()), HasSubstr("\"after\""));
}

/// Drops the rate twice, then unfreezes, then stops, each when a number stalls: in the order of a
/// document.
struct Callbacks {
  Callbacks()
      : rate(Config(Json{{"when", {{"monitor", "train_loss"}, {"stalled", {2, 0.1}}}},
                         {"factor", 0.1},
                         {"times", 2}})),
        hidden(Config(Json{{"until", {{"monitor", "encoded"}, {"stalled", {3, 0.1}}}},
                           {"parameters", {"hidden.*"}}})),
        bias(Config(Json{{"until", {{"monitor", "encoded"}, {"stalled", {3, 0.1}}}},
                         {"parameters", {"output.bias"}}})),
        stop(Config(Json{{"when", {{"monitor", "train_loss"}, {"stalled", {4, 0.1}}}}})) {}

  std::vector<TrainingCallback*> all() { return {&rate, &hidden, &bias, &stop}; }
  void begin(RecordingControl& its) {
    for (TrainingCallback* callback : all())
      callback->begin(its);
  }
  void after_epoch(RecordingControl& its, EpochSummary one) {
    ++its.epoch;
    one.epoch = its.epoch;
    for (TrainingCallback* callback : all())
      callback->after_epoch(one, its);
  }

  ScaleLearningRate rate;
  Freeze hidden;
  Freeze bias;
  Stop stop;
};

TEST(Conditions, BeginTheirWindowsAnewAfterEveryChange) {
  RecordingControl its = control();
  its.planned_epochs = 30;
  Callbacks callbacks;
  callbacks.begin(its);

  while (its.stop_reason.empty() && its.epoch < 20)
    callbacks.after_epoch(its, row(1));

  EXPECT_THAT(its.changes, ElementsAre("2 learning rate times 0.1: train_loss stalled for 2 epochs",
                                       "4 learning rate times 0.1: train_loss stalled for 2 epochs",
                                       "7 unfrozen hidden.*: encoded stalled for 3 epochs",
                                       "10 unfrozen output.bias: encoded stalled for 3 epochs"));
  EXPECT_EQ(its.epoch, 14);
  EXPECT_EQ(its.stop_reason, "train_loss stalled for 4 epochs");
  EXPECT_EQ(its.factor, 0.1 * 0.1);
  for (const at::Tensor& parameter : its.tiny.parameters())
    EXPECT_TRUE(parameter.requires_grad());
}

TEST(Conditions, ContinueFromEveryEpochAsIfTheyHadNeverStopped) {
  const auto changes_with_a_stop_after = [](int stopped_after) {
    RecordingControl its = control();
    its.planned_epochs = 30;
    auto callbacks = std::make_unique<Callbacks>();
    callbacks->begin(its);
    for (int epoch = 1; epoch <= 14; ++epoch) {
      callbacks->after_epoch(its, row(1 + 0.01 / epoch));
      if (epoch != stopped_after)
        continue;
      auto resumed = std::make_unique<Callbacks>();
      resumed->begin(its);
      for (std::size_t i = 0; i < 4; ++i)
        resumed->all()[i]->load_state(callbacks->all()[i]->state());
      callbacks = std::move(resumed);
    }
    for (const at::Tensor& parameter : its.tiny.parameters())
      its.changes.push_back(parameter.requires_grad() ? "trained" : "frozen");
    return its.changes;
  };
  const auto whole = changes_with_a_stop_after(0);
  for (int epoch = 1; epoch <= 14; ++epoch)
    EXPECT_EQ(changes_with_a_stop_after(epoch), whole) << epoch;
}

TEST(ScaleLearningRate, HappensOnceWhereItOnlyWaits) {
  RecordingControl its = control();
  ScaleLearningRate scale(Config(Json{{"when", {{"after", "2ep"}}}, {"factor", 0.5}}));
  scale.begin(its);
  std::vector<double> factors;
  for (int epoch = 1; epoch <= 4; ++epoch) {
    its.after_epoch(scale, row(1));
    factors.push_back(its.factor);
  }

  EXPECT_THAT(factors, ElementsAre(1, 0.5, 0.5, 0.5));
}

TEST(Stop, SaysWhichNumberIsGone) {
  RecordingControl its = control();
  its.names.emplace_back("recall");
  Stop stop(Config(Json{{"when", {{"monitor", "recall"}, {"improving", 2}}}}));
  stop.begin(its);
  try {
    its.after_epoch(stop, row(1));
    FAIL();
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("\"recall\" was in the history at first"));
  }
}

TEST(Conditions, OfARefitAreThoseOfWhatItWillKnow) {
  RecordingControl its = control();
  its.refit = true;
  its.names = {"train_loss", "learning_rate"};
  const Json of_accuracy{{"monitor", "accuracy"}, {"improving", 2}};
  const Json of_loss{{"monitor", "train_loss"}, {"improving", 2}};
  ScaleLearningRate never(Config(Json{{"when", of_accuracy}, {"factor", 0.1}}));
  ScaleLearningRate twice(Config(Json{{"when", of_loss}, {"factor", 0.2}}));
  Stop stop(Config(Json{{"when", of_loss}}));
  never.begin(its);
  twice.begin(its);
  stop.begin(its);

  EXPECT_THAT(its.notes,
              ElementsAre("fold-1 has no validation rows; left out: changing the learning "
                          "rate when accuracy improving for 2 epochs",
                          "fold-1 trains as long as its folds did; left out: stopping "
                          "when train_loss improving for 2 epochs"));
  EpochSummary first;
  first.train_loss = 2;
  EpochSummary second;
  second.train_loss = 1;
  for (TrainingCallback* callback :
       {static_cast<TrainingCallback*>(&never), static_cast<TrainingCallback*>(&stop),
        static_cast<TrainingCallback*>(&twice)}) {
    its.epoch = 0;
    its.after_epoch(*callback, first);
    its.after_epoch(*callback, second);
  }
  EXPECT_EQ(its.stop_reason, "") << "it trains as long as it is told to";
  EXPECT_EQ(its.factor, 0.2);
}

TEST(Conditions, RefuseTheStateOfOthers) {
  RecordingControl its = control();
  Stop one(Config(Json{{"when", {{"monitor", "train_loss"}, {"improving", 2}}}}));
  Stop other(Config(Json{{"when", {{"monitor", "accuracy"}, {"improving", 2}}}}));
  one.begin(its);
  other.begin(its);

  EXPECT_THROW(other.load_state(one.state()), StorageError);
}

}  // namespace
}  // namespace treadle::callbacks
