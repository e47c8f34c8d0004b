#include <treadle/core/timeline.h>

#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace treadle {
namespace {

using std::chrono::milliseconds;

void work(Timeline& timeline, Phase phase, milliseconds duration) {
  const Timeline::Span span(&timeline, phase);
  std::this_thread::sleep_for(duration);
}

TEST(Timeline, AddsUpWhatAllThreadsSpendOnAPhase) {
  Timeline timeline;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] { work(timeline, Phase::kForward, milliseconds(20)); });
  for (std::thread& thread : threads)
    thread.join();
  work(timeline, Phase::kUpdate, milliseconds(10));

  EXPECT_GE(timeline.seconds(Phase::kForward), 0.06);
  EXPECT_GE(timeline.seconds(Phase::kUpdate), 0.01);
  EXPECT_EQ(timeline.seconds(Phase::kBackward), 0);
  EXPECT_GE(timeline.seconds_passed(), 0.03);
  EXPECT_TRUE(timeline.events().empty()) << "nobody has asked for them";
}

TEST(Timeline, KeepsItsEventsByThreadWhenAskedTo) {
  Timeline timeline(true);
  work(timeline, Phase::kData, milliseconds(2));
  work(timeline, Phase::kForward, milliseconds(3));
  std::thread([&] { work(timeline, Phase::kData, milliseconds(1)); }).join();

  const std::vector<Timeline::Event> events = timeline.events();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].phase, Phase::kData);
  EXPECT_EQ(events[1].phase, Phase::kForward);
  EXPECT_EQ(events[0].lane, events[1].lane);
  EXPECT_NE(events[2].lane, events[0].lane);
  EXPECT_GE(events[0].duration, 2'000'000);
  EXPECT_GE(events[1].start, events[0].start + events[0].duration);
  EXPECT_EQ(timeline.events_left_out(), 0U);
}

TEST(Timeline, OfNobodyCostsNothing) {
  const Timeline::Span span(nullptr, Phase::kForward);  // it does not crash
}

TEST(Timeline, CountsRows) {
  Timeline timeline;
  timeline.count_rows(32);
  timeline.count_rows(7);
  EXPECT_EQ(timeline.rows(), 39);
}

TEST(Timeline, HasANameForEachPhase) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kPhases; ++i)
    names.insert(name_of(static_cast<Phase>(i)));
  EXPECT_EQ(names.size(), kPhases);
  EXPECT_EQ(name_of(Phase::kLoading), "loading");
  EXPECT_EQ(name_of(Phase::kSaving), "saving");
}

}  // namespace
}  // namespace treadle
