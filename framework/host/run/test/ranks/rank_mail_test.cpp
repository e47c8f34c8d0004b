#include "ranks/rank_mail.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <treadle/base/error.h>
#include <treadle/testing/distributed/thread_communicator.h>

namespace treadle::internal {
namespace {

using testing::at_ranks;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A process that keeps what it receives.
class Receiver {
 public:
  explicit Receiver(Communicator& communicator) : mail(communicator) {}

  void begin() {
    mail.begin({.received =
                    [this](std::int64_t from, const nlohmann::json& message) {
                      const std::lock_guard lock(mutex_);
                      received_.push_back(std::to_string(from) + ":" + message.dump());
                    },
                .stopped = [this] { is_stopped = true; },
                .failed = [this](const std::exception_ptr&) { has_failed = true; }});
  }
  std::vector<std::string> from(std::int64_t rank) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> messages;
    for (const std::string& one : received_) {
      if (one.starts_with(std::to_string(rank) + ":"))
        messages.push_back(one.substr(2));
    }
    return messages;
  }

  RankMail mail;
  std::atomic<bool> is_stopped = false;
  std::atomic<bool> has_failed = false;

 private:
  std::mutex mutex_;
  std::vector<std::string> received_;
};

TEST(RankMail, BringsMessagesOfEachToEachInTheirOrder) {
  constexpr int kMessages = 50;
  const auto errors = at_ranks(3, [&](Communicator& communicator) {
    Receiver receiver(communicator);
    receiver.begin();
    for (int i = 0; i < kMessages; ++i)
      receiver.mail.send_all(i);
    receiver.mail.finish();
    std::vector<std::string> expected;
    for (int i = 0; i < kMessages; ++i)
      expected.push_back(std::to_string(i));
    for (std::int64_t from = 0; from < 3; ++from)
      EXPECT_EQ(receiver.from(from), expected) << from << " to " << communicator.rank();
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(RankMail, BringsWhatIsTooLargeForOneRound) {
  const std::string large(std::size_t{40} << 20, 'x');
  const auto errors = at_ranks(2, [&](Communicator& communicator) {
    Receiver receiver(communicator);
    receiver.begin();
    if (communicator.rank() == 1) {
      receiver.mail.send(0, large);
      receiver.mail.send(0, "small");
    }
    receiver.mail.finish();
    if (communicator.rank() == 0) {
      const std::vector<std::string> received = receiver.from(1);
      ASSERT_EQ(received.size(), 2U);
      EXPECT_EQ(received[0].size(), large.size() + 2);
      EXPECT_EQ(received[1], "\"small\"");
    }
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(RankMail, TellsAllProcessesOfAStop) {
  const auto errors = at_ranks(3, [&](Communicator& communicator) {
    Receiver receiver(communicator);
    receiver.begin();
    if (communicator.rank() == 2)
      receiver.mail.wish_stop();
    receiver.mail.finish();
    EXPECT_TRUE(receiver.is_stopped) << communicator.rank();
  });
  EXPECT_THAT(errors, Each(""));
}

TEST(RankMail, EndsWithTheFailureOfAProcessThatIsGone) {
  const auto errors = at_ranks(
      2,
      [&](Communicator& communicator) {
        Receiver receiver(communicator);
        receiver.begin();
        if (communicator.rank() == 1)
          return;  // without finish()
        try {
          receiver.mail.finish();
        } catch (const CommunicationError&) {
          EXPECT_TRUE(receiver.has_failed);
          receiver.mail.send(1, "nobody hears it, and nobody waits");
          throw;
        }
      },
      std::chrono::seconds(5));
  EXPECT_THAT(errors[0], ::testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace treadle::internal
