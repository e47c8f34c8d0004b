#include <treadle/testing/distributed/communicator_contract.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/distributed/communicator.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/forked_process.h>
#include <treadle/testing/support/scratch_folder.h>

#include "claim.h"

namespace treadle::testing {
namespace {

using Milliseconds = std::chrono::milliseconds;
using Bytes = std::vector<std::byte>;
using Sizes = std::vector<std::size_t>;

constexpr Milliseconds kLong{60'000};  // longer than any claim takes

/// The claims about one rank run in its thread or process, where GoogleTest is not.
void expect(bool holds, const std::string& claim) {
  if (!holds)
    throw ContractViolation("expected that " + claim);
}

class Since {
 public:
  Milliseconds passed() const {
    return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - begin_);
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The error of a call that must throw one, `from` to `to` after it began.
template <typename Call>
CommunicationError error_of(const Call& call, Milliseconds from, Milliseconds to) {
  const Since begin;
  const auto in_time = [&](const std::string& error) {
    const Milliseconds passed = begin.passed();
    expect(passed >= from && passed <= to, "the error comes within " +
                                               std::to_string(from.count()) + " to " +
                                               std::to_string(to.count()) + " ms, not " +
                                               std::to_string(passed.count()) + ": " + error);
  };
  try {
    call();
  } catch (const CommunicationError& error) {
    in_time(error.what());
    return error;
  } catch (const std::exception& error) {
    expect(false, std::string("a CommunicationError is thrown, not ") + error.what());
  }
  in_time("none");
  throw ContractViolation("expected a CommunicationError, the call returned");
}

/// Bytes that differ by rank, call and place.
Bytes bytes_of(std::int64_t rank, std::int64_t call, std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>((i * 31 + i / 251 + static_cast<std::size_t>(call) * 7 +
                                       static_cast<std::size_t>(rank) * 101 + 1) &
                                      0xff);
  return bytes;
}

void expect_gathered(Communicator& group, std::int64_t call, std::size_t size) {
  Bytes mine = bytes_of(group.rank(), call, size);
  Bytes all(size * static_cast<std::size_t>(group.world_size()));
  group.all_gather(mine, all);
  std::fill(mine.begin(), mine.end(), std::byte{0xee});  // these are the caller's again
  Bytes expected;
  for (std::int64_t rank = 0; rank < group.world_size(); ++rank) {
    const Bytes one = bytes_of(rank, call, size);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  expect(all == expected, "all_gather of " + std::to_string(size) +
                              " bytes gives the bytes of each rank, in the order of ranks");
}

void expect_exchanged(Communicator& group, std::int64_t call,
                      const std::function<std::size_t(std::int64_t, std::int64_t)>& size_of) {
  Sizes sent_sizes;
  Sizes received_sizes;
  Bytes sent;
  Bytes expected;
  for (std::int64_t other = 0; other < group.world_size(); ++other) {
    sent_sizes.push_back(size_of(group.rank(), other));
    received_sizes.push_back(size_of(other, group.rank()));
    const Bytes to = bytes_of(10 * group.rank() + other, call, sent_sizes.back());
    const Bytes from = bytes_of(10 * other + group.rank(), call, received_sizes.back());
    sent.insert(sent.end(), to.begin(), to.end());
    expected.insert(expected.end(), from.begin(), from.end());
  }
  Bytes received(expected.size());
  group.all_to_all(sent, sent_sizes, received, received_sizes);
  std::fill(sent.begin(), sent.end(), std::byte{0xee});
  expect(received == expected, "all_to_all gives the bytes that each rank sent here");
}

void expect_broadcast(Communicator& group, std::int64_t call, std::size_t size, std::int64_t root) {
  Bytes bytes = bytes_of(group.rank(), call, size);
  group.broadcast(bytes, root);
  expect(bytes == bytes_of(root, call, size), "broadcast gives the bytes of the root " +
                                                  std::to_string(root) + " to rank " +
                                                  std::to_string(group.rank()));
}

void gather_for_ever(Communicator& group) {
  for (std::int64_t call = 0;; ++call)
    expect_gathered(group, call, 1000);
}

/// Rings a bell, at the latest where its rank has failed: nobody waits for ever.
class Ready {
 public:
  explicit Ready(Bell& bell) : bell_(bell) {}
  ~Ready() { ring(); }
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;

  void ring() {
    if (!std::exchange(has_rung_, true))
      bell_.ring();
  }

 private:
  Bell& bell_;
  bool has_rung_ = false;
};

/// Waits until so many ranks have rung, for that time at most.
void await_all(Bell& bell, int ranks, Milliseconds at_most) {
  const Since begin;
  while (ranks > 0 && bell.await(std::max(at_most - begin.passed(), Milliseconds(0))))
    --ranks;
}

/// The shared part of the claims.
class CommunicatorClaims : public ::testing::WithParamInterface<CommunicatorCase> {
 protected:
  using Ranks = CommunicatorCase::Ranks;

  /// One group and its place.
  struct Group {
    std::filesystem::path folder;
    Rendezvous rendezvous;

    Rendezvous of(std::int64_t rank) const {
      Rendezvous one = rendezvous;
      one.rank = rank;
      return one;
    }
  };

  Group new_group(std::int64_t world_size, Milliseconds timeout = kLong) {
    const std::string id = "group-" + std::to_string(++groups_);
    Group group{folder_.path() / id,
                {.world_size = world_size, .id = id, .token = "secret", .timeout = timeout}};
    std::filesystem::create_directory(group.folder);
    std::filesystem::permissions(group.folder, std::filesystem::perms::owner_all);
    group.rendezvous.folder = group.folder;
    if (GetParam().address)
      group.rendezvous.address = GetParam().address();
    return group;
  }

  static bool are_processes() { return GetParam().ranks == Ranks::kProcesses; }
  static bool are_launched() { return GetParam().ranks == Ranks::kLaunched; }
  static Milliseconds timeout() { return GetParam().timeout; }
  static Milliseconds soon() { return GetParam().soon; }
  static std::unique_ptr<Communicator> make(const Group& group) {
    return GetParam().make(group.folder);
  }

  /// A rank that runs, in a thread or in a process.
  class Running {
   public:
    template <typename Work>
    Running(Ranks ranks, const Work& work) {
      if (ranks == Ranks::kProcesses) {
        process_.emplace(work);
        return;
      }
      thread_ = std::thread([this, work] {
        try {
          work();
        } catch (const std::exception& error) {
          error_ = error.what();
        }
      });
    }
    /// Its error, in words; empty without one.
    std::string join() {
      if (process_)
        return process_->join();
      thread_.join();
      return error_;
    }
    ForkedProcess& process() { return *process_; }

   private:
    std::optional<ForkedProcess> process_;
    std::thread thread_;
    std::string error_;
  };

  template <typename Work>
  std::unique_ptr<Running> start(const Work& work) const {
    return std::make_unique<Running>(GetParam().ranks, work);
  }

  /// Runs `work(rank)` for each of some ranks; their errors.
  template <typename Work>
  std::vector<std::string> run_ranks(const std::vector<std::int64_t>& ranks,
                                     const Work& work) const {
    std::vector<std::unique_ptr<Running>> running;
    for (const std::int64_t rank : ranks)
      running.push_back(start([&work, rank] { work(rank); }));
    std::vector<std::string> errors;
    for (std::size_t i = 0; i < running.size(); ++i) {
      const std::string error = running[i]->join();
      if (!error.empty())
        errors.push_back("rank " + std::to_string(ranks[i]) + ": " + error);
    }
    return errors;
  }

  /// Runs `work(communicator)` in each rank of a group that has connected; the errors of ranks.
  template <typename Work>
  std::vector<std::string> run(const Group& group, const Work& work) const {
    const auto one = [&](std::int64_t rank) {
      const auto communicator = make(group);
      communicator->connect(group.of(rank));
      work(*communicator);
    };
    std::vector<std::int64_t> ranks;
    for (std::int64_t rank = 0; rank < group.rendezvous.world_size; ++rank)
      ranks.push_back(rank);
    if (!are_launched())
      return run_ranks(ranks, one);
    if (GetParam().launched_ranks != group.rendezvous.world_size)
      return kNoErrors;
    try {
      one(GetParam().launched_rank);
    } catch (const std::exception& error) {
      return {error.what()};
    }
    return kNoErrors;
  }

  static void expect_rank(const CommunicationError& error, std::int64_t rank) {
    expect(!GetParam().names_ranks || error.rank() == rank,
           "the error has the rank " + std::to_string(rank) + ", not " +
               std::to_string(error.rank()) + ": " + error.what());
  }

  /// Waits until a process has ended, for so long at most.
  static bool ends_within(ForkedProcess& process, Milliseconds time) {
    const Since begin;
    while (!process.has_ended()) {
      if (begin.passed() > time)
        return false;
      std::this_thread::sleep_for(Milliseconds(2));
    }
    return true;
  }

  const ScratchFolder folder_;
  std::int64_t groups_ = 0;
};

/// The local addresses, in hexadecimal as /proc has them, at which this process listens for others
/// than those of its own host.
std::vector<std::string> open_ports() {
  std::set<std::string> own;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code is_gone;
    own.insert(std::filesystem::read_symlink(entry.path(), is_gone).string());
  }
  std::vector<std::string> open;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream words(line);
      const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
      if (word.size() < 10 || word[3] != "0A" || !own.contains("socket:[" + word[9] + "]"))
        continue;
      const std::string address = word[1].substr(0, word[1].find(':'));
      const bool is_loopback = address.ends_with("7F") ||  // 127.…, also as IPv6
                               address == "00000000000000000000000001000000";
      if (!is_loopback)
        open.push_back(word[1]);
    }
  }
  return open;
}

}  // namespace

LINKS_CLAIMS_OF(Communicator)

CLAIM(Communicator, GathersInTheOrderOfRanks) {
  for (const std::int64_t ranks : {1, 2, 3, 4}) {
    EXPECT_EQ(run(new_group(ranks),
                  [](Communicator& group) {
                    for (const std::size_t size : {0, 1, 7, 64 << 10, 1 << 20})
                      expect_gathered(group, 0, size);
                  }),
              kNoErrors)
        << ranks << " ranks";
  }
}

CLAIM(Communicator, SendsToEachRankItsOwnBytes) {
  for (const std::int64_t ranks : {1, 2, 3, 4}) {
    EXPECT_EQ(run(new_group(ranks),
                  [](Communicator& group) {
                    expect_exchanged(group, 0, [](auto from, auto to) {
                      return static_cast<std::size_t>(1 + 3 * from + 5 * to);
                    });
                    expect_exchanged(group, 1, [](auto from, auto to) {
                      return static_cast<std::size_t>((from + to) % 2 * 70'001);
                    });
                    expect_exchanged(group, 2, [](auto from, auto) {
                      return static_cast<std::size_t>(from == 0 ? 1 << 20 : 0);
                    });
                    expect_exchanged(group, 3, [](auto, auto) { return std::size_t{0}; });
                  }),
              kNoErrors)
        << ranks << " ranks";
  }
}

CLAIM(Communicator, BroadcastsFromAnyRank) {
  for (const std::int64_t ranks : {1, 2, 3, 4}) {
    EXPECT_EQ(run(new_group(ranks),
                  [](Communicator& group) {
                    for (std::int64_t root = 0; root < group.world_size(); ++root) {
                      for (const std::size_t size : {0, 1, 7, 1 << 20})
                        expect_broadcast(group, root, size, root);
                    }
                  }),
              kNoErrors)
        << ranks << " ranks";
  }
}

CLAIM(Communicator, MakesManyCallsInARow) {
  EXPECT_EQ(run(new_group(3),
                [](Communicator& group) {
                  for (std::int64_t call = 0; call < 100; ++call) {
                    const auto size = static_cast<std::size_t>(call * call);
                    expect_gathered(group, call, size);
                    expect_exchanged(group, call, [size](auto from, auto to) {
                      return size * static_cast<std::size_t>((from + 2 * to) % 3);
                    });
                    expect_broadcast(group, call, size, call % 3);
                  }
                }),
            kNoErrors);
}

CLAIM(Communicator, IsCalledFromAnyThread) {
  EXPECT_EQ(run(new_group(2),
                [](Communicator& group) {
                  std::string error;
                  std::thread([&] {
                    try {
                      expect_gathered(group, 0, 1000);
                    } catch (const std::exception& thrown) {
                      error = thrown.what();
                    }
                  }).join();
                  expect(error.empty(), "another thread may call it: " + error);
                  expect_gathered(group, 1, 1000);
                }),
            kNoErrors);
}

// Others are late in turn.
CLAIM(Communicator, HasItsResultWhenACallReturns) {
  EXPECT_EQ(run(new_group(3),
                [](Communicator& group) {
                  for (std::int64_t call = 0; call < 12; ++call) {
                    if (call % 3 == group.rank())
                      std::this_thread::sleep_for(Milliseconds(10));
                    if (call % 2 == 0)
                      expect_gathered(group, call, call < 6 ? 1 << 20 : 10);
                    else
                      expect_broadcast(group, call, call < 6 ? 1 << 20 : 10, call % 3);
                  }
                }),
            kNoErrors);
}

CLAIM(Communicator, ARankMayLeaveAfterItsLastCall) {
  for (int late = 0; late < 3; ++late) {
    EXPECT_EQ(run(new_group(3),
                  [&](Communicator& group) {
                    expect_gathered(group, 0, 100);
                    if (group.rank() == late)
                      std::this_thread::sleep_for(Milliseconds(30));
                    expect_gathered(group, 1, 200'000);
                  }),
              kNoErrors);
  }
}

CLAIM(Communicator, AbortWakesAWaitingCall) {
  if (are_launched())
    GTEST_SKIP() << "the launcher ends all";
  Bell done;
  EXPECT_EQ(run(new_group(2, 3 * soon()),
                [&](Communicator& group) {
                  expect_gathered(group, 0, 10);
                  if (group.rank() == 1) {
                    await_all(done, 1, Milliseconds(400) + soon());
                    return;
                  }
                  const Ready is_done(done);
                  std::thread another([&] {
                    std::this_thread::sleep_for(Milliseconds(200));
                    group.abort();
                  });
                  std::string error;
                  try {
                    error_of([&] { expect_gathered(group, 1, 10); }, Milliseconds(100),
                             Milliseconds(200) + soon());
                  } catch (const std::exception& thrown) {
                    error = thrown.what();
                  }
                  another.join();
                  expect(error.empty(), error);
                  error_of([&] { expect_gathered(group, 2, 10); }, Milliseconds(0), soon());
                }),
            kNoErrors);
}

CLAIM(Communicator, AbortFailsTheCallsOfOthers) {
  if (are_launched())
    GTEST_SKIP() << "the launcher ends all";
  Bell done;
  EXPECT_EQ(run(new_group(4, 3 * soon()),
                [&](Communicator& group) {
                  expect_gathered(group, 0, 10);
                  if (group.rank() == 2) {
                    std::this_thread::sleep_for(Milliseconds(200));
                    group.abort();
                    await_all(done, 3, Milliseconds(400) + soon());  // it has not ended
                    return;
                  }
                  const Ready is_done(done);
                  if (group.rank() == 3)  // which is not in a call meanwhile
                    std::this_thread::sleep_for(Milliseconds(400));
                  expect_rank(error_of([&] { gather_for_ever(group); }, Milliseconds(0),
                                       Milliseconds(200) + soon()),
                              2);
                }),
            kNoErrors);
}

CLAIM(Communicator, AbortWakesConnect) {
  if (are_launched())
    GTEST_SKIP() << "its ranks are all there";
  const Group group = new_group(2, 3 * soon());
  EXPECT_EQ(run_ranks({0},
                      [&](std::int64_t rank) {
                        const auto communicator = make(group);
                        std::thread another([&] {
                          std::this_thread::sleep_for(Milliseconds(200));
                          communicator->abort();
                        });
                        std::string error;
                        try {
                          error_of([&] { communicator->connect(group.of(rank)); }, Milliseconds(0),
                                   Milliseconds(200) + soon());
                        } catch (const std::exception& thrown) {
                          error = thrown.what();
                        }
                        another.join();
                        expect(error.empty(), error);
                      }),
            kNoErrors);
}

CLAIM(Communicator, ARankThatMakesNoCallFailsThoseOfOthersAtTheTimeout) {
  if (are_launched())
    GTEST_SKIP() << "the launcher ends all";
  Bell done;
  EXPECT_EQ(run(new_group(3, timeout()),
                [&](Communicator& group) {
                  expect_gathered(group, 0, 10);
                  if (group.rank() == 1) {
                    await_all(done, 2, timeout() + soon() + Milliseconds(200));
                    return;
                  }
                  const Ready is_done(done);
                  // The first rank to fail may leave before the others' time is over.
                  expect_rank(error_of([&] { expect_gathered(group, 1, 10); }, timeout() * 2 / 3,
                                       timeout() + soon()),
                              1);
                }),
            kNoErrors);
}

CLAIM(Communicator, MissingRanksAreNamed) {
  if (are_launched())
    GTEST_SKIP() << "its ranks are all there";
  const Group group = new_group(4, timeout());
  EXPECT_EQ(run_ranks({0, 2},
                      [&](std::int64_t rank) {
                        const auto communicator = make(group);
                        const CommunicationError error =
                            error_of([&] { communicator->connect(group.of(rank)); }, timeout() / 2,
                                     timeout() + GetParam().grace);
                        const std::string text = error.what();
                        expect(text.find("ranks 1 and 3") != std::string::npos,
                               "the text has \"ranks 1 and 3\": " + text);
                      }),
            kNoErrors);
}

CLAIM(Communicator, AMissingRankIsNamedWhereRankZeroIsMissing) {
  if (are_launched())
    GTEST_SKIP() << "its ranks are all there";
  const Group group = new_group(2, timeout());
  EXPECT_EQ(run_ranks({1},
                      [&](std::int64_t rank) {
                        const auto communicator = make(group);
                        const CommunicationError error =
                            error_of([&] { communicator->connect(group.of(rank)); },
                                     Milliseconds(0), timeout() + GetParam().grace);
                        expect_rank(error, 0);
                      }),
            kNoErrors);
}

CLAIM(Communicator, AnotherGroupIsRefused) {
  if (are_launched())
    GTEST_SKIP() << "it has one group";
  struct Changed {
    const char* what;
    std::function<void(Rendezvous&)> change;
    Group group = {};
  };
  std::vector<Changed> all = {
      {"id", [](Rendezvous& other) { other.id = "an earlier one"; }},
      {"token", [](Rendezvous& other) { other.token = "secret of others"; }},
      {"size", [](Rendezvous& other) { other.world_size = 3; }},
  };
  for (Changed& one : all)
    one.group = new_group(2, timeout());

  // At once, since one of each group waits until the time is over.
  const auto errors = run_ranks({0, 1, 2, 3, 4, 5}, [&](std::int64_t process) {
    const Changed& one = all[static_cast<std::size_t>(process / 2)];
    const auto communicator = make(one.group);
    Rendezvous rendezvous = one.group.of(process % 2);
    if (process % 2 == 1)
      one.change(rendezvous);
    const std::string what = std::string("another ") + one.what + ": ";
    try {
      const CommunicationError error = error_of([&] { communicator->connect(rendezvous); },
                                                Milliseconds(0), timeout() + GetParam().grace);
      expect(std::string(error.what()).find("secret") == std::string::npos,
             "tokens are in no text");
    } catch (const std::exception& error) {
      throw ContractViolation(what + error.what());
    }
  });

  EXPECT_EQ(errors, kNoErrors);
}

CLAIM(Communicator, ASecondProcessOfARankIsRefused) {
  if (are_launched())
    GTEST_SKIP() << "the launcher counts ranks";
  const Group group = new_group(2, timeout());
  const auto connected = folder_.path() / "connected";
  std::filesystem::create_directory(connected);

  // The second comes later, while the first is there.
  const auto errors = run_ranks({0, 1, 2}, [&](std::int64_t process) {
    const auto communicator = make(group);
    if (process == 2)
      std::this_thread::sleep_for(Milliseconds(100));
    try {
      communicator->connect(group.of(process == 2 ? 1 : process));
    } catch (const CommunicationError&) {
      return;
    }
    std::ofstream(connected / std::to_string(process)) << "!";
    std::this_thread::sleep_for(timeout() / 2);
  });

  EXPECT_EQ(errors, kNoErrors);
  EXPECT_FALSE(std::filesystem::exists(connected / "1") && std::filesystem::exists(connected / "2"))
      << "both processes of rank 1 connected";
}

CLAIM(Communicator, ListensOnLoopbackAlone) {
  if (!are_processes() || !GetParam().listens_on_loopback_alone)
    GTEST_SKIP() << "this one does not claim it";
  EXPECT_EQ(run(new_group(2),
                [](Communicator& group) {
                  expect_gathered(group, 0, 10);
                  const std::vector<std::string> open = open_ports();
                  expect(open.empty(), "no port is open to other hosts: " +
                                           (open.empty() ? std::string() : open.front()));
                  expect_gathered(group, 1, 10);
                }),
            kNoErrors);
}

// Also in the middle of a large message.
CLAIM(Communicator, AKilledProcessFailsTheCallsOfOthersWithinASecond) {
  if (!are_processes())
    GTEST_SKIP() << "its ranks are no processes that can be killed";
  for (const std::int64_t victim : {2, 0}) {
    const Group group = new_group(4);
    Bell ready;
    std::vector<std::unique_ptr<Running>> ranks;
    for (std::int64_t rank = 0; rank < 4; ++rank)
      ranks.push_back(start([&, rank] {
        Ready is_ready(ready);
        const auto communicator = make(group);
        communicator->connect(group.of(rank));
        expect_gathered(*communicator, 0, 1000);
        is_ready.ring();
        const CommunicationError error = error_of(
            [&] {
              for (std::int64_t call = 0;; ++call) {
                if (rank == 3)  // which is not in a call in most of the time
                  std::this_thread::sleep_for(Milliseconds(20));
                expect_gathered(*communicator, call, call % 2 == 0 ? 1000 : 4 << 20);
              }
            },
            Milliseconds(0), kLong);
        expect_rank(error, victim);
      }));
    for (std::size_t i = 0; i < ranks.size(); ++i)
      ready.await();
    std::this_thread::sleep_for(Milliseconds(100));

    ranks[static_cast<std::size_t>(victim)]->process().kill();

    const Since killed;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      if (rank == victim)
        continue;
      Running& one = *ranks[static_cast<std::size_t>(rank)];
      const bool has_ended = ends_within(one.process(), soon() - killed.passed());
      EXPECT_TRUE(has_ended) << "rank " << rank << ", victim " << victim;
      if (has_ended) {
        EXPECT_EQ(one.join(), "") << "rank " << rank << ", victim " << victim;
      }
    }
  }
}

CLAIM(Communicator, AStoppedProcessFailsTheCallsOfOthersAtTheTimeout) {
  if (!are_processes())
    GTEST_SKIP() << "its ranks are no processes that can be stopped";
  struct Stopped {
    Stopped(std::int64_t its_victim, Group its_group)
        : victim(its_victim), group(std::move(its_group)) {}

    const std::int64_t victim;
    const Group group;
    Bell ready;
    std::vector<std::unique_ptr<Running>> ranks;

    ForkedProcess& process() { return ranks[static_cast<std::size_t>(victim)]->process(); }
  };
  std::vector<std::unique_ptr<Stopped>> groups;  // at once, since each takes its timeout
  for (const std::int64_t victim : {1, 0}) {
    groups.push_back(std::make_unique<Stopped>(victim, new_group(3, timeout())));
    Stopped& one = *groups.back();
    for (std::int64_t rank = 0; rank < 3; ++rank)
      one.ranks.push_back(start([&one, rank] {
        Ready is_ready(one.ready);
        const auto communicator = make(one.group);
        communicator->connect(one.group.of(rank));
        expect_gathered(*communicator, 0, 1000);
        is_ready.ring();
        const CommunicationError error =
            error_of([&] { gather_for_ever(*communicator); }, Milliseconds(0), kLong);
        if (rank != one.victim)
          expect_rank(error, one.victim);
      }));
  }
  for (const auto& one : groups)
    await_all(one->ready, 3, kLong);
  std::this_thread::sleep_for(Milliseconds(50));

  for (const auto& one : groups)
    one->process().freeze();

  const Since begin;
  for (const auto& one : groups) {
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      if (rank == one->victim)
        continue;
      Running& survivor = *one->ranks[static_cast<std::size_t>(rank)];
      const bool has_ended = ends_within(survivor.process(), timeout() + soon() - begin.passed());
      EXPECT_TRUE(has_ended) << "rank " << rank << ", victim " << one->victim;
      EXPECT_GE(begin.passed(), timeout() * 2 / 3);
      if (has_ended) {
        EXPECT_EQ(survivor.join(), "") << "rank " << rank << ", victim " << one->victim;
      }
    }
  }
  for (const auto& one : groups)
    one->process().thaw();
  for (const auto& one : groups) {
    const bool has_ended = ends_within(one->process(), timeout() + soon());
    EXPECT_TRUE(has_ended) << "the stopped process, when it is awake";
    if (has_ended) {
      EXPECT_EQ(one->ranks[static_cast<std::size_t>(one->victim)]->join(), "")
          << "the stopped process, when it is awake";
    }
  }
}

}  // namespace treadle::testing
