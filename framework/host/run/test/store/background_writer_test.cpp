#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "store/background_writer.h"

namespace treadle::internal {
namespace {

using ::testing::ElementsAre;

/// Work that says when it has begun and goes on when it may.
class Gate {
 public:
  std::function<void()> work() {
    return [this] {
      begun_.set_value();
      open_.get_future().wait();
    };
  }
  void wait_until_begun() { begun_.get_future().wait(); }
  void open() { open_.set_value(); }

 private:
  std::promise<void> begun_;
  std::promise<void> open_;
};

std::string failure_of(const BackgroundWriter::Lane& lane) {
  try {
    lane.expect_no_failure();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(BackgroundWriter, WorksOnAThreadOfItsOwn) {
  BackgroundWriter writer;
  BackgroundWriter::Lane lane(writer);
  std::thread::id worked_on;

  lane.submit([&] { worked_on = std::this_thread::get_id(); });
  lane.wait();

  EXPECT_NE(worked_on, std::thread::id());
  EXPECT_NE(worked_on, std::this_thread::get_id());
}

TEST(BackgroundWriter, NewerWorkTakesThePlaceOfWhatWaits) {
  BackgroundWriter writer;
  BackgroundWriter::Lane lane(writer);
  Gate gate;
  std::vector<int> done;
  lane.submit(gate.work());
  gate.wait_until_begun();

  for (int i = 1; i <= 5; ++i)
    lane.submit([&done, i] { done.push_back(i); });
  gate.open();
  lane.wait();

  EXPECT_THAT(done, ElementsAre(5));
}

TEST(BackgroundWriter, OnlyWorkThatHasNotBegunIsTakenBack) {
  BackgroundWriter writer;
  BackgroundWriter::Lane lane(writer);
  Gate gate;
  bool second_done = false;
  lane.submit(gate.work());
  gate.wait_until_begun();

  EXPECT_TRUE(lane.is_busy());
  EXPECT_FALSE(lane.withdraw());
  lane.submit([&] { second_done = true; });
  EXPECT_TRUE(lane.withdraw());
  EXPECT_FALSE(lane.withdraw());
  gate.open();
  lane.wait();

  EXPECT_FALSE(lane.is_busy());
  EXPECT_FALSE(second_done);
}

TEST(BackgroundWriter, LanesTakeTurns) {
  BackgroundWriter writer;
  BackgroundWriter::Lane one(writer);
  BackgroundWriter::Lane two(writer);
  BackgroundWriter::Lane three(writer);
  Gate gate;
  std::vector<int> order;
  one.submit(gate.work());
  gate.wait_until_begun();

  // The first lane is always there first; the others have waited longer.
  one.submit([&] { order.push_back(1); });
  three.submit([&] { order.push_back(3); });
  two.submit([&] { order.push_back(2); });
  gate.open();
  for (BackgroundWriter::Lane* lane : {&one, &two, &three})
    lane->wait();

  EXPECT_THAT(order, ElementsAre(2, 3, 1));
}

TEST(BackgroundWriter, AFailureComesOutEachTimeAndEndsItsLaneAlone) {
  BackgroundWriter writer;
  BackgroundWriter::Lane failing(writer);
  BackgroundWriter::Lane good(writer);
  Gate gate;
  bool done_after_failure = false;
  bool good_done = false;
  failing.submit([&] {
    gate.work()();
    throw StorageError("disk: No space left on device");
  });
  gate.wait_until_begun();
  EXPECT_EQ(failure_of(failing), "");

  failing.submit([&] { done_after_failure = true; });
  gate.open();
  failing.wait();
  failing.submit([&] { done_after_failure = true; });
  failing.wait();
  good.submit([&] { good_done = true; });
  good.wait();

  EXPECT_EQ(failure_of(failing), "disk: No space left on device");
  EXPECT_THROW(failing.expect_no_failure(), StorageError);
  EXPECT_FALSE(done_after_failure);
  EXPECT_EQ(failure_of(good), "");
  EXPECT_TRUE(good_done);
}

TEST(BackgroundWriter, SurvivesWorkThatThrowsAnything) {
  BackgroundWriter writer;
  BackgroundWriter::Lane lane(writer);

  lane.submit([] { throw 42; });
  lane.wait();

  EXPECT_THROW(lane.expect_no_failure(), int);
}

TEST(BackgroundWriter, ALaneThatGoesWaitsForItsWork) {
  BackgroundWriter writer;
  Gate gate;
  std::vector<int> done;
  {
    BackgroundWriter::Lane lane(writer);
    lane.submit([&] {
      gate.work()();
      done.push_back(1);
    });
    gate.wait_until_begun();
    lane.submit([&] { done.push_back(2); });
    gate.open();
  }
  EXPECT_THAT(done, ElementsAre(1, 2));
}

TEST(BackgroundWriter, WhatWorkHeldIsGoneBeforeItCountsAsDone) {
  BackgroundWriter writer;
  BackgroundWriter::Lane lane(writer);
  auto held = std::make_shared<int>(1);

  lane.submit([held] {});
  lane.wait();

  EXPECT_EQ(held.use_count(), 1);
}

TEST(BackgroundWriter, NoWorkOfManyOwnersIsLostOrDoneTwice) {
  constexpr int kOwners = 4;
  constexpr int kRounds = 500;
  BackgroundWriter writer;
  std::vector<std::thread> owners;
  for (int owner = 0; owner < kOwners; ++owner) {
    owners.emplace_back([&] {
      BackgroundWriter::Lane lane(writer);
      int newest_done = 0;  // written by the writer, read when the lane is idle
      for (int round = 1; round <= kRounds; ++round) {
        lane.submit([&newest_done, round] {
          EXPECT_LT(newest_done, round);
          newest_done = round;
        });
        if (round % 7 == 0) {
          lane.wait();
          EXPECT_EQ(newest_done, round);
        }
      }
      lane.wait();
      EXPECT_EQ(newest_done, kRounds);
    });
  }
  for (std::thread& owner : owners)
    owner.join();
}

TEST(BackgroundWriter, CanBeMadeAndEndedAtAnyTime) {
  for (int round = 0; round < 200; ++round) {
    BackgroundWriter writer;
    if (round % 2 == 0)
      continue;
    BackgroundWriter::Lane lane(writer);
    lane.submit([] {});
  }
}

}  // namespace
}  // namespace treadle::internal
