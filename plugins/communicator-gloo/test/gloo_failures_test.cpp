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

using ::testing::AnyOf;
using testing::ForkedProcess;
using ::testing::HasSubstr;
using testing::ScratchFolder;
using ::testing::StartsWith;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kTimeout{500};
constexpr Milliseconds kShort{200};  // where nobody is to come

/// The error of connect(), in a process of its own: Gloo and libtorch leave threads behind.
class Refusal {
 public:
  explicit Refusal(const Rendezvous& rendezvous)
      : end_(std::chrono::steady_clock::now() + rendezvous.timeout + Milliseconds(5000)),
        process_([rendezvous] {
          try {
            make()->connect(rendezvous);
          } catch (const CommunicationError&) {
            throw;
          } catch (const std::exception& error) {
            throw ContractViolation(std::string("no CommunicationError: ") + error.what());
          }
        }) {}

  std::string text() {
    std::string text = process_.join();
    EXPECT_LT(std::chrono::steady_clock::now(), end_);
    return text;
  }

 private:
  const std::chrono::steady_clock::time_point end_;
  ForkedProcess process_;
};

std::string refusal(const Rendezvous& rendezvous) {
  return Refusal(rendezvous).text();
}

Rendezvous at(const std::string& address, std::int64_t rank, Milliseconds timeout = kShort) {
  return {.rank = rank, .world_size = 2, .id = "a", .address = address, .timeout = timeout};
}

TEST(GlooFailures, AFolderThatIsMissingIsNamed) {
  EXPECT_THAT(refusal({.world_size = 2, .folder = "/no/such", .timeout = kShort}),
              StartsWith("/no/such: the processes of the group meet in this folder, which is "
                         "missing; create it"));
}

TEST(GlooFailures, NoPlaceToMeetIsAnErrorOfItsOwn) {
  EXPECT_THAT(refusal({.world_size = 2, .timeout = kShort}),
              HasSubstr("gives them no place to meet; set MASTER_ADDR and MASTER_PORT"));
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

/// How a program at the port treats a connection.
void keep_silent(int) {
  std::this_thread::sleep_for(Milliseconds(60'000));
}
void speak_first(int client) {
  constexpr std::string_view kBanner = "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7\r\n";
  ::send(client, kBanner.data(), kBanner.size(), MSG_NOSIGNAL);
  keep_silent(client);
}
void answer(int client) {
  char byte = 0;
  while (::recv(client, &byte, 1, 0) == 1 && byte != 0) {
  }
  constexpr std::string_view kAnswer = "HTTP/1.1 400 Bad Request\r\n\r\n";
  ::send(client, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
  keep_silent(client);
}

// libtorch takes the first bytes of an answer for a size, and this sanitizer ends a process that
// requests so much memory.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMayAnswer = false;
#else
constexpr bool kMayAnswer = true;
#endif

TEST(GlooFailures, AnotherProgramAtTheAddressIsNoGroup) {
  std::vector<std::unique_ptr<Listener>> ports;
  std::vector<std::unique_ptr<ForkedProcess>> programs;
  std::vector<std::unique_ptr<Refusal>> refusals;
  for (const auto& serve : {keep_silent, speak_first, kMayAnswer ? answer : keep_silent}) {
    const Listener& port = *ports.emplace_back(std::make_unique<Listener>());
    programs.push_back(std::make_unique<ForkedProcess>([&port, serve] {
      while (true)
        std::thread(serve, port.accept()).detach();
    }));
    refusals.push_back(std::make_unique<Refusal>(at(port.address(), 1, kTimeout)));
  }

  EXPECT_THAT(refusals[0]->text(), HasSubstr("another program may listen there"));
  EXPECT_THAT(refusals[1]->text(), HasSubstr("another program listens there, which speaks first"));
  EXPECT_THAT(refusals[2]->text(), AnyOf(HasSubstr("another program may listen there"),
                                         HasSubstr("the group's meeting place fails")));
}

TEST(GlooFailures, APortInUseIsRefused) {
  const Listener web;

  EXPECT_THAT(refusal(at(web.address(), 0)),
              ::testing::AllOf(StartsWith(web.address() + ": rank 0 cannot serve the group here"),
                               HasSubstr("choose a free port")));
}

TEST(GlooFailures, AServerThatIsMissingIsRankZeros) {
  EXPECT_THAT(refusal(at(free_address(), 1)),
              HasSubstr("the group's server cannot be reached (Connection refused)"));
}

TEST(GlooFailures, AHostThatNobodyKnowsIsNamed) {
  EXPECT_THAT(refusal(at("no-such-host.invalid:29500", 1)),
              StartsWith("no-such-host.invalid:29500: the group's server cannot be reached ("));
}

// Its client tries again only after a second.
TEST(GlooFailures, ARankThatComesBeforeTheServerWaitsNoLongerThanForIt) {
  const Rendezvous rendezvous = at(free_address(), 1, Milliseconds(10'000));
  const auto begin = std::chrono::steady_clock::now();
  ForkedProcess early([&] { make()->connect(rendezvous); });
  std::this_thread::sleep_for(Milliseconds(100));
  ForkedProcess server([&] {
    Rendezvous zero = rendezvous;
    zero.rank = 0;
    make()->connect(zero);
  });

  EXPECT_EQ(server.join(), "");
  EXPECT_EQ(early.join(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, Milliseconds(800));
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

/// Two ranks that make different calls.
class Pair {
 public:
  explicit Pair(const std::function<void(Communicator&)>& call) {
    for (const std::int64_t rank : {0, 1}) {
      ranks_.emplace_back([&, rank] {
        const auto group = make();
        group->connect(
            {.rank = rank, .world_size = 2, .folder = folder_.path(), .timeout = kTimeout});
        call(*group);
      });
    }
  }

  std::vector<std::string> errors() {
    std::vector<std::string> errors;
    for (ForkedProcess& rank : ranks_)
      errors.push_back(rank.join());
    return errors;
  }

 private:
  const ScratchFolder folder_;
  std::vector<ForkedProcess> ranks_;
};

// Both at once, since each takes its time-out. Gloo's own collectives end the process.
TEST(GlooFailures, SizesAndCallsThatDifferAreErrors) {
  Pair sizes([](Communicator& group) {
    std::vector<std::byte> bytes(group.rank() == 0 ? 3 : 400'000);
    group.broadcast(bytes, 0);
  });
  Pair calls([](Communicator& group) {
    std::vector<std::byte> bytes(4);
    std::vector<std::byte> all(8);
    if (group.rank() == 0)
      group.broadcast(bytes, 0);
    group.all_gather(bytes, all);
  });

  for (const std::string& error : sizes.errors())
    EXPECT_THAT(error, HasSubstr("or it makes other calls than this one"));
  for (const std::string& error : calls.errors())
    EXPECT_THAT(error, HasSubstr("rank "));
}

}  // namespace
}  // namespace treadle::gloo_group
