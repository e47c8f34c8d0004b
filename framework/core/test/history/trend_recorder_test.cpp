#include <treadle/core/history/trend_recorder.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <treadle/base/error.h>

namespace treadle {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// A recorder whose time passes when the test says so.
struct Timed {
  nanoseconds now{seconds(100)};
  TrendRecorder recorder{[this] { return now; }};
};

at::Tensor one_to_four() {
  return at::tensor({1.0F, -2.0F, 3.0F, -4.0F}).view({2, 2}).requires_grad_();
}

TEST(TrendRecorder, EndsAnEpochWithTheMeansOfItsBatches) {
  TrendRecorder recorder;
  recorder.collect("loss", at::full({}, 3.0F));
  recorder.record("loss", 1.0);
  recorder.collect("loss", at::full({1, 1}, 5));
  recorder.record("rate", std::vector<double>{0.25, 0.75});

  EXPECT_THAT(recorder.collected("loss"), ElementsAre(3, 1, 5));
  EXPECT_THAT(recorder.flush(), ElementsAre(Pair("loss", 3), Pair("rate", 0.5)));
  EXPECT_THAT(recorder.collected("loss"), IsEmpty());
  EXPECT_THAT(recorder.trend("loss").values(), ElementsAre(3));
  EXPECT_THAT(recorder.collected("unknown"), IsEmpty());
  EXPECT_TRUE(recorder.trend("unknown").empty());
}

TEST(TrendRecorder, FlushesWhatItIsAskedTo) {
  TrendRecorder recorder;
  std::vector<TrendRecorder::Means> heard;
  recorder.on_flush([&](const TrendRecorder::Means& means) { heard.push_back(means); });
  recorder.add_group("losses", {"a", "b"});
  recorder.record("a", 1);
  recorder.record("b", 2);
  recorder.record("c", 3);

  recorder.flush({"losses"});

  EXPECT_THAT(recorder.collected("c"), ElementsAre(3));
  EXPECT_TRUE(recorder.flush({"losses"}).empty()) << "nothing is left of them";
  EXPECT_EQ(recorder.flush_count(), 1);
  ASSERT_EQ(heard.size(), 1U) << "no call without a mean";
  EXPECT_THAT(heard[0], ElementsAre(Pair("a", 1), Pair("b", 2)));
}

TEST(TrendRecorder, MakesOneNumberOfAValueAsItIsTold) {
  TrendRecorder recorder;
  for (const Reduction reduction :
       {Reduction::kMean, Reduction::kSum, Reduction::kMax, Reduction::kMin, Reduction::kNorm})
    recorder.collect("value", one_to_four(), reduction);

  EXPECT_THAT(recorder.collected("value"),
              ElementsAre(-0.5, -2, 3, -4, ::testing::DoubleNear(5.477225575, 1e-6)));
  EXPECT_EQ(reduction_named("norm"), Reduction::kNorm);
  EXPECT_FALSE(reduction_named("median"));
}

TEST(TrendRecorder, AsksHowSeveralElementsBecomeOneNumber) {
  TrendRecorder recorder;
  try {
    recorder.collect("encoded", one_to_four());
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "\"encoded\" is [2, 2]; expected one number: say how its elements become one "
                 "(mean, sum, max, min, norm)");
  }
  EXPECT_THROW(recorder.collect("encoded", at::Tensor()), UsageError);
  EXPECT_THROW(recorder.collect("encoded", at::ones({0}), Reduction::kSum), UsageError);
  EXPECT_THAT(recorder.tags(), IsEmpty());
}

TEST(TrendRecorder, KeepsWhatAValueWasWhenItsMemoryIsUsedAgain) {
  TrendRecorder recorder;
  const at::Tensor value = at::full({}, 1.5, at::kDouble);
  recorder.collect("value", value);

  value.fill_(9);

  EXPECT_THAT(recorder.collected("value"), ElementsAre(1.5));
}

TEST(TrendRecorder, CountsTheTimeOfItsFlushes) {
  Timed timed;
  TrendRecorder& recorder = timed.recorder;
  EXPECT_EQ(recorder.elapsed(), nanoseconds(0));
  recorder.record("loss", 1);
  timed.now += seconds(3);
  EXPECT_EQ(recorder.eta(10), nanoseconds(0)) << "nothing is known before the first";
  recorder.flush();
  EXPECT_EQ(recorder.last_flush_duration(), nanoseconds(0)) << "there is no other yet";
  recorder.record("loss", 1);
  timed.now += seconds(5);
  recorder.flush();
  timed.now += seconds(2);

  EXPECT_EQ(recorder.flush_count(), 2);
  EXPECT_EQ(recorder.elapsed(), seconds(10));
  EXPECT_EQ(recorder.last_flush_duration(), seconds(5));
  EXPECT_EQ(recorder.eta(5), seconds(15));  // 10 / 2 * 3
  EXPECT_EQ(recorder.eta(1), seconds(0));
  recorder.flush();
  EXPECT_EQ(recorder.flush_count(), 2) << "nothing was flushed";
}

TEST(TrendRecorder, GivesTrendsByTagAndGroup) {
  TrendRecorder recorder;
  recorder.add_group("losses", {"a", "b"});
  recorder.set_direction("b", Direction::kHigherIsBetter);
  for (const double value : {1.0, 2.0, 4.0}) {
    recorder.record("a", value);
    recorder.record("b", -value);
    recorder.record("c", 0);
    recorder.flush();
  }

  EXPECT_EQ(recorder.trends({"losses"}).trends().size(), 2U);
  EXPECT_EQ(recorder.trends().trends().size(), 3U);
  EXPECT_EQ(recorder.trends({"c", "losses"}).trends()[2].values(),
            (std::vector<double>{-1, -2, -4}));
  EXPECT_FALSE(recorder.trends({"losses"}).any_improving());
  recorder.reset({"losses"});
  EXPECT_TRUE(recorder.trend("a").empty());
  EXPECT_EQ(recorder.trend("c").size(), 3U);
  recorder.reset();
  EXPECT_TRUE(recorder.trend("c").empty());
}

/// Two epochs of two tags, one of which began later, of ten.
Timed& two_epochs(Timed& timed) {
  timed.recorder.record("loss", 0.5);
  timed.now += milliseconds(42);
  timed.recorder.flush();
  timed.recorder.record("loss", 0.0001234);
  timed.recorder.record("a,b", 123.456);
  timed.now += seconds(125);
  timed.recorder.flush();
  return timed;
}

TEST(TrendRecorder, WritesALogForPeople) {
  Timed timed;
  const auto written = std::chrono::system_clock::from_time_t(1777889472);

  EXPECT_EQ(log_text(two_epochs(timed).recorder, 10, written),
            "# 2026-05-04T10:11:12Z\n"
            "epoch 1/10  a,b 123.46  loss 0.5000  42ms  left 378ms\n"
            "epoch 2/10  loss 1.23e-04  2m05s  left 8m20s\n");
}

TEST(TrendRecorder, WritesATable) {
  Timed timed;
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "treadle-trends.csv";
  write_csv(path, two_epochs(timed).recorder);

  std::ifstream file(path);
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(file), {}}),
            "epoch,\"a,b\",loss\n"
            "1,123.456,0.5\n"
            "2,,0.0001234\n");
  EXPECT_EQ(csv_text(timed.recorder, {"loss"}), "epoch,loss\n1,0.5\n2,0.0001234\n");
  timed.recorder.record("loss", 1.0 / 3);
  timed.recorder.flush();
  EXPECT_THAT(csv_text(timed.recorder), ::testing::EndsWith("3,,0.33333333\n"));
  std::filesystem::remove(path);
}

TEST(TrendRecorder, HasNothingToWriteWithoutATrend) {
  TrendRecorder recorder;
  recorder.record("loss", 1);
  for (const auto& write : {+[](const TrendRecorder& r) { return csv_text(r); },
                            +[](const TrendRecorder& r) { return log_text(r, 1, {}); }}) {
    try {
      write(recorder);
      FAIL();
    } catch (const UsageError& error) {
      EXPECT_STREQ(error.what(),
                   "there is no trend to write: nothing was flushed under these tags");
    }
  }
}

TEST(FormatDuration, IsShort) {
  EXPECT_EQ(format_duration(milliseconds(42)), "42ms");
  EXPECT_EQ(format_duration(nanoseconds(0)), "0ms");
  EXPECT_EQ(format_duration(milliseconds(1240)), "1.2s");
  EXPECT_EQ(format_duration(seconds(125)), "2m05s");
  EXPECT_EQ(format_duration(seconds(60)), "1m00s");
}

TEST(LoggedValues, AddsUpWhatShardsShowedInTheirOrder) {
  LoggedValues first;
  LoggedValues second;
  first.add("a", at::full({}, 1.0F));
  first.add("a", at::full({}, 2.0F));
  second.add("b", one_to_four(), Reduction::kMax);
  second.add("a", at::full({}, 6.0F));

  first.add(second);

  const std::vector<MetricValue> means = first.means();
  ASSERT_EQ(means.size(), 2U);
  EXPECT_EQ(means[0].name, "a");
  EXPECT_EQ(means[0].value, 3);
  EXPECT_EQ(means[1].value, 3);
  EXPECT_EQ(second.means()[1].value, 6) << "the other is as it was";
}

TEST(LoggedValues, CountEachRowOnce) {
  LoggedValues values;
  values.weigh_by(8);
  values.add("mean", at::tensor(3.0, at::kDouble));
  values.weigh_by(2);
  values.add("mean", at::tensor(8.0, at::kDouble));

  ASSERT_EQ(values.means().size(), 1U);
  EXPECT_EQ(values.means()[0].value, (8 * 3.0 + 2 * 8.0) / 10);
}

TEST(LoggedValues, ContinueFromWhereTheyWereSaved) {
  LoggedValues values;
  values.add("a", at::full({}, 0.1, at::kDouble));
  LoggedValues loaded;
  loaded.load_state(values.state());
  for (LoggedValues* each : {&values, &loaded}) {
    each->add("a", at::full({}, 0.2, at::kDouble));
    each->add("a", at::full({}, 0.3, at::kDouble));
  }

  EXPECT_EQ(loaded.means()[0].value, values.means()[0].value);
  loaded.load_state(StateDict());
  EXPECT_TRUE(loaded.empty());
}

}  // namespace
}  // namespace treadle
