#include <treadle/core/history/timeline.h>

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

TEST(Timeline, KeepsWhatADeviceDidWhereItKeepsEvents) {
  for (const bool keeps : {false, true}) {
    Timeline timeline(keeps);
    timeline.device_use().count_sent(2, 640);
    timeline.device_use().count_waits(3);

    timeline.add_device_span(Timeline::Clock::now(), 0.5);
    timeline.sample_device(4096);

    ASSERT_EQ(timeline.device_spans().size(), keeps ? 1U : 0U);
    ASSERT_EQ(timeline.device_samples().size(), keeps ? 1U : 0U);
    if (!keeps)
      continue;
    EXPECT_EQ(timeline.device_spans()[0].duration, 500'000'000);
    EXPECT_GE(timeline.device_spans()[0].start, 0);
    EXPECT_EQ(timeline.device_samples()[0].memory_in_use, 4096);
    EXPECT_EQ(timeline.device_samples()[0].bytes_to_device, 640);
    EXPECT_EQ(timeline.device_samples()[0].waits, 3);
  }
}

TEST(DeviceUse, AddsUpAndKeepsTheLargestMemory) {
  DeviceUse use;
  EXPECT_EQ(use.totals().idle_fraction(), 0) << "nothing was measured";

  use.count_sent(2, 100);
  use.count_fetched(3, 30);
  use.count_waits(4);
  use.note_memory(700, 600);
  use.note_memory(500, 900);
  use.add_epoch(3, 1);
  use.add_epoch(3, 1);

  const DeviceUse::Totals totals = use.totals();
  EXPECT_EQ(totals.copies_to_device, 2);
  EXPECT_EQ(totals.bytes_to_device, 100);
  EXPECT_EQ(totals.copies_to_host, 3);
  EXPECT_EQ(totals.bytes_to_host, 30);
  EXPECT_EQ(totals.waits, 7) << "the host waits for each copy to it";
  EXPECT_EQ(totals.memory_peak, 700);
  EXPECT_EQ(totals.memory_reserved, 900);
  EXPECT_DOUBLE_EQ(totals.busy_seconds, 6);
  EXPECT_DOUBLE_EQ(totals.idle_fraction(), 0.25);
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
