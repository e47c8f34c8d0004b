#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/distributed/communicator.h>

namespace treadle::internal {

/// Messages between the processes of a group, from any to any, whenever one has something to say. A
/// Communicator has no such calls: all processes make the same ones. So each has a thread that
/// exchanges what there is, many times a second, and the communicator is nobody else's meanwhile.
///
/// Messages of one process to another arrive in their order. They are JSON, with bytes where it
/// needs them. Calls from any thread.
class RankMail {
 public:
  /// Called on a thread of this object, one call at a time. They throw nothing.
  struct Calls {
    std::function<void(std::int64_t from, const nlohmann::json& message)> received;
    /// Some process, or this one, wants all of them to stop.
    std::function<void()> stopped;
    /// No message goes or comes any more.
    std::function<void(std::exception_ptr why)> failed;
  };

  /// `communicator` is connected. Borrows it.
  explicit RankMail(Communicator& communicator);
  /// Without finish() before, aborts the communicator.
  ~RankMail();
  RankMail(const RankMail&) = delete;
  RankMail& operator=(const RankMail&) = delete;

  std::int64_t rank() const { return communicator_.rank(); }
  std::int64_t world_size() const { return communicator_.world_size(); }

  /// Once.
  void begin(Calls calls);
  /// Also to this process itself. Waits while much is still to be sent to that process. After a
  /// failure, does nothing.
  void send(std::int64_t to, const nlohmann::json& message);
  void send_all(const nlohmann::json& message);
  /// All processes are to stop.
  void wish_stop();
  /// This process has no more messages. Returns when no process has, everything was received, and
  /// no call is made any more. Throws CommunicationError.
  void finish();

 private:
  struct Outbox {
    std::deque<std::string> messages = {};  // each behind its length
    std::size_t sent = 0;                   // bytes of the first
    std::size_t bytes = 0;                  // still to be sent
  };
  struct Round;

  void exchange();
  bool exchange_once();
  Round next_round();
  std::string take(Outbox& outbox);
  void receive(std::int64_t from, std::span<const std::byte> bytes);
  void deliver();
  void fail(std::exception_ptr failure);

  Communicator& communicator_;
  Calls calls_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Outbox> outboxes_;         // by rank
  std::vector<std::string> incomplete_;  // by rank: a message that has come in part
  std::deque<std::pair<std::int64_t, std::string>> inbox_;
  bool wishes_stop_ = false;
  bool is_stopped_ = false;  // by anybody
  bool has_told_stop_ = false;
  bool is_done_ = false;
  bool has_said_done_ = false;
  bool has_ended_ = false;  // no further exchange
  std::exception_ptr failure_;

  std::thread exchanging_;
  std::thread delivering_;
};

}  // namespace treadle::internal
