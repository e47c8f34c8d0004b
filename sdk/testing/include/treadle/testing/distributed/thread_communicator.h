#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <treadle/core/distributed/communicator.h>
#include <treadle/testing/support/at_once.h>

namespace treadle::testing {

/// Where the ranks of one group meet that are threads of one process. Copies are of the same group.
class ThreadGroup {
 public:
  ThreadGroup();

 private:
  friend class ThreadCommunicator;
  class Board;
  std::shared_ptr<Board> board_;
};

/// Moves bytes between threads of one process: a group of ranks for tests, without sockets and
/// processes. A Rendezvous needs no place.
class ThreadCommunicator final : public Communicator {
 public:
  explicit ThreadCommunicator(ThreadGroup group);
  ~ThreadCommunicator() override;

 private:
  void do_connect(const Rendezvous& rendezvous) override;
  void do_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void do_all_to_all(std::span<const std::byte> sent, std::span<const std::size_t> sent_sizes,
                     std::span<std::byte> received,
                     std::span<const std::size_t> received_sizes) override;
  void do_broadcast(std::span<std::byte> bytes, std::int64_t root) override;
  void do_abort() noexcept override;

  std::shared_ptr<ThreadGroup::Board> board_;
  std::chrono::milliseconds timeout_{0};
  std::atomic<std::int64_t> joins_as_{-1};  ///< the rank, from the beginning of connect()
  std::atomic<bool> aborts_{false};
};

/// Runs `work(communicator)` for each rank of a group, in as many threads. Returns the words of
/// the errors:
///
///     EXPECT_EQ(at_ranks(4, [&](Communicator& group) { … group.rank() … }), kNoErrors);
template <typename Work>
std::vector<std::string> at_ranks(
    std::int64_t world_size, Work&& work,
    std::chrono::milliseconds timeout = std::chrono::milliseconds(60'000)) {
  const ThreadGroup group;
  return at_once(static_cast<std::size_t>(world_size), [&](std::size_t thread) {
    ThreadCommunicator communicator(group);
    communicator.connect(
        {.rank = static_cast<std::int64_t>(thread), .world_size = world_size, .timeout = timeout});
    work(static_cast<Communicator&>(communicator));
  });
}

}  // namespace treadle::testing
