#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/support/forked_process.h>
#include <treadle/testing/support/scratch_folder.h>

#include "made.h"

namespace treadle::gloo_group {
namespace {

using testing::ForkedProcess;
using ::testing::HasSubstr;
using testing::ScratchFolder;
using ::testing::StartsWith;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kTimeout{1000};

/// The text of the error of connect(), in a process of its own: Gloo and libtorch leave threads
/// behind.
std::string refusal(const Rendezvous& rendezvous) {
  const auto begin = std::chrono::steady_clock::now();
  ForkedProcess process([&] {
    try {
      make()->connect(rendezvous);
    } catch (const CommunicationError&) {
      throw;
    } catch (const std::exception& error) {
      throw ContractViolation(std::string("no CommunicationError: ") + error.what());
    }
  });
  std::string text = process.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, rendezvous.timeout + Milliseconds(5000));
  return text;
}

Rendezvous at(const std::string& address, std::int64_t rank) {
  return {.rank = rank, .world_size = 2, .id = "a", .address = address, .timeout = kTimeout};
}

TEST(GlooFailures, AFolderThatIsMissingIsNamed) {
  EXPECT_THAT(refusal({.world_size = 2, .folder = "/no/such", .timeout = kTimeout}),
              StartsWith("/no/such: the processes of the group meet in this folder, which is "
                         "missing; create it"));
}

TEST(GlooFailures, TheFolderOfAnEarlierGroupIsRefused) {
  const ScratchFolder folder;
  Rendezvous rendezvous{
      .world_size = 2, .id = "first", .folder = folder.path(), .timeout = Milliseconds(200)};
  EXPECT_THAT(refusal(rendezvous), HasSubstr("rank 1 of 2 did not join within 0.2 s"));

  EXPECT_THAT(refusal(rendezvous), HasSubstr("another process is rank 0 of this group already"));
  rendezvous.id = "second";
  EXPECT_THAT(refusal(rendezvous),
              HasSubstr("another group meets here: its id is \"first\", this one's \"second\"; "
                        "choose another folder"));
}

TEST(GlooFailures, AnAddressHasAPort) {
  for (const char* address : {"node-1", "node-1:", "node-1:x", ":29500", "node-1:0"})
    EXPECT_THAT(refusal(at(address, 1)), HasSubstr("is no address; expected host:port"));
}

TEST(GlooFailures, AnotherProgramAtTheAddressIsNoGroup) {
  for (const std::string_view answer : {"HTTP/1.1 400 Bad Request\r\n\r\n", ""}) {
    const Listener web;
    std::thread server([&] {
      const int client = web.accept();
      if (::send(client, answer.data(), answer.size(), MSG_NOSIGNAL) < 0)
        return;
      std::this_thread::sleep_for(4 * kTimeout);
      ::close(client);
    });
    EXPECT_THAT(refusal(at(web.address(), 1)),
                ::testing::AnyOf(HasSubstr("another program may listen there"),
                                 HasSubstr("the group's server cannot be reached"),
                                 HasSubstr("the group's meeting place fails")))
        << answer;
    server.join();
  }
}

TEST(GlooFailures, APortInUseIsRefused) {
  const Listener web;

  EXPECT_THAT(refusal(at(web.address(), 0)),
              ::testing::AllOf(StartsWith(web.address() + ": rank 0 cannot serve the group here"),
                               HasSubstr("choose a free port")));
}

TEST(GlooFailures, AServerThatIsMissingIsRankZeros) {
  EXPECT_THAT(refusal(at(free_address(), 1)), HasSubstr("the group's server cannot be reached"));
}

TEST(GlooFailures, OtherHostsDoNotReachLoopback) {
  Rendezvous rendezvous = at("192.0.2.1:29500", 1);
  rendezvous.own_address = "127.0.1.1";

  EXPECT_THAT(refusal(rendezvous),
              StartsWith("127.0.1.1: is an address of this host alone, but the group meets at "
                         "192.0.2.1:29500"));
}

TEST(GlooFailures, AnAddressOfAnotherHostIsNotListenedAt) {
  Rendezvous rendezvous = at(free_address(), 0);
  rendezvous.own_address = "192.0.2.7";

  EXPECT_THAT(refusal(rendezvous), StartsWith("192.0.2.7: cannot be listened at"));
}

/// The errors of two ranks that make different calls.
std::vector<std::string> errors_of(const std::function<void(Communicator&)>& call) {
  const ScratchFolder folder;
  std::vector<ForkedProcess> ranks;
  for (const std::int64_t rank : {0, 1}) {
    ranks.emplace_back([&, rank] {
      const auto group = make();
      group->connect({.rank = rank, .world_size = 2, .folder = folder.path(), .timeout = kTimeout});
      call(*group);
    });
  }
  std::vector<std::string> errors;
  for (ForkedProcess& rank : ranks)
    errors.push_back(rank.join());
  return errors;
}

// Gloo's own collectives end the process.
TEST(GlooFailures, SizesThatDifferAreErrors) {
  const auto errors = errors_of([](Communicator& group) {
    std::vector<std::byte> bytes(group.rank() == 0 ? 3 : 400'000);
    group.broadcast(bytes, 0);
  });

  for (const std::string& error : errors)
    EXPECT_THAT(error, HasSubstr("or it makes other calls than this one"));
}

TEST(GlooFailures, DifferentCallsAreErrors) {
  const auto errors = errors_of([](Communicator& group) {
    std::vector<std::byte> bytes(4);
    std::vector<std::byte> all(8);
    if (group.rank() == 0)
      group.broadcast(bytes, 0);
    group.all_gather(bytes, all);
  });

  for (const std::string& error : errors)
    EXPECT_THAT(error, HasSubstr("rank "));
}

}  // namespace
}  // namespace treadle::gloo_group
