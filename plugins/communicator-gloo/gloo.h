#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <treadle/core/distributed/communicator.h>

#include "meeting.h"

namespace treadle {
class Config;
}

namespace treadle::gloo_group {

/// A process group of c10d whose connections can be closed while others still wait for messages.
class Group final : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  void close() noexcept;
};

/// Bytes to or from one rank.
struct Message {
  std::int64_t rank = 0;
  std::byte* bytes = nullptr;
  std::size_t size = 0;
};

/// `gloo`: bytes over TCP by libtorch's Gloo.
///
/// Every call is a message to or from each rank, all of them at once, instead of a collective of
/// Gloo: the rank that fails is known then, and Gloo's collectives end the process where sizes
/// differ. Sizes are in the tags of messages, so other sizes find no counterpart here.
///
/// The time of a call is kept by a thread of this object. At a time-out of its own Gloo closes all
/// connections first, so others would take this process for the one that failed.
class Gloo final : public Communicator {
 public:
  explicit Gloo(const Config& config);
  ~Gloo() override;

 private:
  void do_connect(const Rendezvous& rendezvous) override;
  void do_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void do_all_to_all(std::span<const std::byte> sent, std::span<const std::size_t> sent_sizes,
                     std::span<std::byte> received,
                     std::span<const std::size_t> received_sizes) override;
  void do_broadcast(std::span<std::byte> bytes, std::int64_t root) override;
  void do_abort() noexcept override;

  using WorkPointer =
      decltype(std::declval<Group&>().recvAnysource(std::declval<std::vector<at::Tensor>&>(), 0));
  struct Pending {
    std::int64_t rank;
    WorkPointer work;
  };

  /// Moves the messages of one call.
  void exchange(const std::vector<Message>& sent, const std::vector<Message>& received);
  void begin_call();
  void post(const Message& message, bool is_sent);
  void await(const Pending& one);
  /// Throws the error of the rank that failed first.
  [[noreturn]] void fail(std::int64_t rank, const std::string& sign);
  Blame first_blame(const Blame& mine) noexcept;
  void wake_calls() noexcept;
  void keep_time();
  void close() noexcept;

  Rendezvous rendezvous_;
  std::shared_ptr<Meeting> meeting_;
  c10::intrusive_ptr<Group> group_;
  std::uint64_t calls_ = 0;
  std::mutex call_;  ///< held by the call that runs
  std::atomic<bool> is_given_up_{false};

  std::mutex pending_mutex_;
  std::condition_variable changed_;
  std::vector<Pending> pending_;
  std::optional<std::chrono::steady_clock::time_point> end_;  ///< of the call that runs
  bool is_late_ = false;                                      ///< the call that runs
  bool is_closed_ = false;
  std::thread timer_;
};

}  // namespace treadle::gloo_group
