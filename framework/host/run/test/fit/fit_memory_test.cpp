#include "fit/fit_memory.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace treadle::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kMebibyte = 1 << 20;

/// A process and a machine that are as large as a test says.
class FitMemories : public ::testing::Test {
 protected:
  /// A training begins, and its first steps take so much.
  void train(std::int64_t mebibytes) {
    const std::int64_t before = memory_.begin();
    resident_ += mebibytes * kMebibyte;
    memory_.settle(before);
  }

  std::int64_t resident_ = 700 * kMebibyte;
  std::int64_t above_ = 0;  // of what was given back
  std::optional<std::int64_t> available_;
  std::vector<std::string> notes_;
  FitMemory memory_{{.in_use = [this] { return resident_; },
                     .peak = [this] { return resident_ + above_; },
                     .available = [this] { return available_; }},
                    [this](const std::string& note) { notes_.push_back(note); }};
};

TEST_F(FitMemories, HaveRoomForWhatOneTookAndHalfAsMuch) {
  train(100);

  available_ = 150 * kMebibyte;
  EXPECT_TRUE(memory_.fits());
  available_ = 150 * kMebibyte - 1;
  EXPECT_FALSE(memory_.fits());
}

TEST_F(FitMemories, SayOnceThatATrainingTakesMoreThanItMay) {
  available_ = -5 * kMebibyte;
  train(100);
  train(100);

  EXPECT_THAT(notes_, ElementsAre("a training took 100 MiB of memory, 5 MiB more than it may; "
                                  "nothing stops it"));
}

// A device gives back what a step takes.
TEST_F(FitMemories, CountWhatWasTakenAndGivenBack) {
  above_ = 60 * kMebibyte;
  train(40);

  available_ = 149 * kMebibyte;
  EXPECT_FALSE(memory_.fits());
}

// What the first has given back to the allocator the next one takes from there.
TEST_F(FitMemories, AskForAsMuchAsTheGreediestTook) {
  train(100);
  train(0);

  available_ = 149 * kMebibyte;
  EXPECT_FALSE(memory_.fits());
}

TEST_F(FitMemories, HaveRoomWhereTheSystemDoesNotSay) {
  train(100);

  EXPECT_TRUE(memory_.fits());
}

TEST_F(FitMemories, ArePlentyWhereTheProcessFitsEightTimesIntoWhatIsLeft) {
  available_ = 8 * 800 * kMebibyte;
  EXPECT_FALSE(memory_.is_plenty()) << "nobody knows yet what one takes";

  train(100);

  EXPECT_TRUE(memory_.is_plenty());
  available_ = 8 * 800 * kMebibyte - 1;
  EXPECT_FALSE(memory_.is_plenty());
  available_ = std::nullopt;
  EXPECT_FALSE(memory_.is_plenty());
}

// Of a device, which has given back what a step took.
TEST_F(FitMemories, ArePlentyWhereTheGreediestFitsEightTimesIntoWhatIsLeft) {
  resident_ = 0;
  above_ = 100 * kMebibyte;
  train(0);

  available_ = 8 * 100 * kMebibyte - 1;
  EXPECT_FALSE(memory_.is_plenty());
  available_ = 8 * 100 * kMebibyte;
  EXPECT_TRUE(memory_.is_plenty());
}

TEST_F(FitMemories, CountForEachOfTwoAtOnceWhatBothTook) {
  const std::int64_t before_first = memory_.begin();
  resident_ += 60 * kMebibyte;
  const std::int64_t before_second = memory_.begin();
  resident_ += 40 * kMebibyte;
  memory_.settle(before_second);
  memory_.settle(before_first);

  available_ = 149 * kMebibyte;
  EXPECT_FALSE(memory_.fits());
  available_ = 150 * kMebibyte;
  EXPECT_TRUE(memory_.fits());
}

TEST_F(FitMemories, SayOnceWhyATrainingWaits) {
  train(2000);
  available_ = 3000 * kMebibyte;
  EXPECT_TRUE(memory_.fits());
  EXPECT_THAT(notes_, IsEmpty());

  available_ = 1200 * kMebibyte;
  EXPECT_FALSE(memory_.fits());
  EXPECT_FALSE(memory_.fits());

  EXPECT_THAT(notes_, ElementsAre("fewer trainings at once than there are workers: one more needs "
                                  "about 3000 MiB of memory, and 1200 MiB are left"));
}

}  // namespace
}  // namespace treadle::internal
