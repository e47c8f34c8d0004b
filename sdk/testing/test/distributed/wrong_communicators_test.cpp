#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/distributed/communicator_contract.h>
#include <treadle/testing/distributed/thread_communicator.h>

#include "component/wrong.h"

namespace treadle::testing {
namespace wrong_communicators {
namespace {

using Bytes = std::vector<std::byte>;

/// The changes that a defect makes.
struct Changes {
  std::function<void(Rendezvous&)> rendezvous = {};
  std::function<void(Rendezvous&, const CommunicationError&)> refused = {};
  /// Of each call: its result, and the number of ranks.
  std::function<void(std::span<std::byte> all, std::size_t ranks)> gathered = {};
  std::function<void(std::span<std::byte> received)> exchanged = {};
  std::function<void(Communicator& inner, std::span<std::byte> bytes, std::int64_t root)>
      broadcast = {};
  std::function<CommunicationError(const CommunicationError&)> error = {};
  std::function<void()> called = {};
  bool ignores_abort = false;
  bool returns_early = false;  ///< with the result of the call before
};

/// A right communicator behind a wrong one.
class Changed final : public Communicator {
 public:
  Changed(const ThreadGroup& group, Changes changes)
      : inner_(std::make_unique<ThreadCommunicator>(group)), changes_(std::move(changes)) {}

 private:
  template <typename Call>
  void call(const Call& inner) {
    if (changes_.called)
      changes_.called();
    try {
      inner();
    } catch (const CommunicationError& error) {
      throw changes_.error ? changes_.error(error) : error;
    }
  }

  void do_connect(const Rendezvous& rendezvous) override {
    Rendezvous changed = rendezvous;
    if (changes_.rendezvous)
      changes_.rendezvous(changed);
    call([&] {
      try {
        inner_->connect(changed);
      } catch (const CommunicationError& error) {
        if (!changes_.refused)
          throw;
        changes_.refused(changed, error);
      }
    });
  }

  void do_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    Bytes result(all.size());
    call([&] { inner_->all_gather(mine, result); });
    if (changes_.gathered)
      changes_.gathered(result, static_cast<std::size_t>(world_size()));
    if (changes_.returns_early)
      std::swap(result, before_);
    result.resize(all.size());
    std::copy(result.begin(), result.end(), all.begin());
  }

  void do_all_to_all(std::span<const std::byte> sent, std::span<const std::size_t> sent_sizes,
                     std::span<std::byte> received,
                     std::span<const std::size_t> received_sizes) override {
    call([&] { inner_->all_to_all(sent, sent_sizes, received, received_sizes); });
    if (changes_.exchanged)
      changes_.exchanged(received);
  }

  void do_broadcast(std::span<std::byte> bytes, std::int64_t root) override {
    call([&] {
      if (changes_.broadcast)
        changes_.broadcast(*inner_, bytes, root);
      else
        inner_->broadcast(bytes, root);
    });
  }

  void do_abort() noexcept override {
    if (!changes_.ignores_abort)
      inner_->abort();
  }

  std::unique_ptr<ThreadCommunicator> inner_;
  Changes changes_;
  Bytes before_;
};

/// The group of each folder.
class Groups {
 public:
  ThreadGroup at(const std::filesystem::path& folder) {
    const std::lock_guard lock(mutex_);
    return groups_[folder];
  }

 private:
  std::mutex mutex_;
  std::map<std::filesystem::path, ThreadGroup> groups_;
};

/// `changes()` are those of one communicator.
CommunicatorCase of_threads(
    std::string name, const std::function<Changes()>& changes = [] { return Changes(); }) {
  return {.name = std::move(name),
          .make =
              [changes, groups = std::make_shared<Groups>()](const std::filesystem::path& folder) {
                return std::make_unique<Changed>(groups->at(folder), changes());
              },
          .ranks = CommunicatorCase::Ranks::kThreads,
          .timeout = std::chrono::milliseconds(300),
          .grace = std::chrono::milliseconds(600),
          .soon = std::chrono::milliseconds(400)};
}

CommunicatorCase changed(std::string name, const Changes& changes) {
  return of_threads(std::move(name), [changes] { return changes; });
}

void drop_last_byte(std::span<std::byte> bytes) {
  if (bytes.size() > 1)
    bytes.back() = std::byte{0};
}

const std::set<std::string> kUseGather = {
    "GathersInTheOrderOfRanks",      "MakesManyCallsInARow",
    "IsCalledFromAnyThread",         "HasItsResultWhenACallReturns",
    "ARankMayLeaveAfterItsLastCall", "AbortWakesAWaitingCall",
    "AbortFailsTheCallsOfOthers",    "ARankThatMakesNoCallFailsThoseOfOthersAtTheTimeout"};

std::vector<Wrong<CommunicatorCase>> all() {
  return {
      {changed("ReordersRanks", {.gathered =
                                     [](std::span<std::byte> all, std::size_t ranks) {
                                       std::rotate(all.begin(),
                                                   all.begin() + static_cast<std::ptrdiff_t>(
                                                                     all.size() / ranks),
                                                   all.end());
                                     }}),
       kUseGather},
      {changed("DropsTheLastByte",
               {.gathered = [](std::span<std::byte> all, std::size_t) { drop_last_byte(all); }}),
       kUseGather},
      {changed("DropsTheLastByteOfAnExchange", {.exchanged = drop_last_byte}),
       {"SendsToEachRankItsOwnBytes", "MakesManyCallsInARow"}},
      {changed("BroadcastsFromRankZero",
               {.broadcast = [](Communicator& inner, std::span<std::byte> bytes,
                                std::int64_t) { inner.broadcast(bytes, 0); }}),
       {"BroadcastsFromAnyRank", "MakesManyCallsInARow", "HasItsResultWhenACallReturns"}},
      {changed("ReturnsEarly", {.returns_early = true}), kUseGather},
      {changed("IgnoresAbort", {.ignores_abort = true}),
       {"AbortWakesAWaitingCall", "AbortFailsTheCallsOfOthers", "AbortWakesConnect"}},
      {changed("ForgetsTheTimeout",
               {.rendezvous = [](Rendezvous& rendezvous) { rendezvous.timeout *= 6; }}),
       {"ARankThatMakesNoCallFailsThoseOfOthersAtTheTimeout", "MissingRanksAreNamed",
        "AMissingRankIsNamedWhereRankZeroIsMissing", "AnotherGroupIsRefused"}},
      {changed("AcceptsStrangers",
               {.rendezvous = [](Rendezvous& rendezvous) { rendezvous.id = ""; }}),
       {"AnotherGroupIsRefused"}},
      {changed("ReadsNoToken",
               {.rendezvous = [](Rendezvous& rendezvous) { rendezvous.token = ""; }}),
       {"AnotherGroupIsRefused"}},
      {changed("GivesTokensAway", {.error =
                                       [](const CommunicationError& error) {
                                         return CommunicationError(
                                             std::string(error.what()) + " (token: secret)",
                                             error.rank());
                                       }}),
       {"AnotherGroupIsRefused"}},
      {changed("TakesEveryProcess",
               {.refused =
                    [](Rendezvous&, const CommunicationError& error) {
                      if (std::string(error.what()).find("another process is rank") ==
                          std::string::npos)
                        throw error;
                    }}),
       {"ASecondProcessOfARankIsRefused"}},
      {changed("NamesNoRank", {.error =
                                   [](const CommunicationError& error) {
                                     return CommunicationError(error.what());
                                   }}),
       {"AbortFailsTheCallsOfOthers", "ARankThatMakesNoCallFailsThoseOfOthersAtTheTimeout",
        "AMissingRankIsNamedWhereRankZeroIsMissing"}},
      {changed("DoesNotNameMissingRanks", {.error =
                                               [](const CommunicationError& error) {
                                                 return CommunicationError("it failed",
                                                                           error.rank());
                                               }}),
       {"MissingRanksAreNamed"}},
      {of_threads("OfOneThread",
                  [] {
                    return Changes{.called = [mine = OneThread()] {
                      if (!mine.is_mine())
                        throw std::logic_error("another thread");
                    }};
                  }),
       {"IsCalledFromAnyThread"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Right, CommunicatorContract, ::testing::Values(of_threads("Threads")),
                         CaseName());
INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, CommunicatorContract, ::testing::ValuesIn(cases_of(all())),
                         CaseName());

}  // namespace
}  // namespace wrong_communicators

std::vector<Defect> communicator_defects() {
  return defects_of("CommunicatorContract", wrong_communicators::all());
}

}  // namespace treadle::testing
