#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <treadle/core/distributed/communicator.h>

#include "mpi_process.h"

namespace treadle {
class Config;
}

namespace treadle::mpi_group {

/// Bytes to or from one rank.
struct Message {
  std::int64_t rank = 0;
  std::byte* bytes = nullptr;
  std::size_t size = 0;
};

/// `mpi`: bytes by messages of MPI that do not block. MPI has no time limits, and waits for ever
/// for a process that hangs: this class tests its requests until the time is over.
///
/// Once a call has failed, MPI is not called any more, because requests still point to the
/// caller's memory: without calls, nothing moves.
class MpiCommunicator final : public Communicator {
 public:
  explicit MpiCommunicator(const Config& config);
  ~MpiCommunicator() override;

 private:
  void do_connect(const Rendezvous& rendezvous) override;
  void do_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void do_all_to_all(std::span<const std::byte> sent, std::span<const std::size_t> sent_sizes,
                     std::span<std::byte> received,
                     std::span<const std::size_t> received_sizes) override;
  void do_broadcast(std::span<std::byte> bytes, std::int64_t root) override;
  void do_abort() noexcept override;

  struct Request {
    std::int64_t rank;
    int expected;  ///< bytes; -1: a message that is sent
    MPI_Request request;
  };

  void expect_own_group();
  void gather(const std::byte* mine, std::size_t size, std::byte* all);
  /// Moves the messages of one call.
  void exchange(const std::vector<Message>& sent, const std::vector<Message>& received);
  void post(const Message& message, bool is_sent);
  void await_all();
  void expect_nobody_aborted();
  [[noreturn]] void fail_late(std::int64_t rank) const;

  Rendezvous rendezvous_;
  MpiProcess* process_ = nullptr;
  MPI_Comm group_ = MPI_COMM_NULL;
  std::vector<Request> requests_;
  std::atomic<bool> is_given_up_{false};
  bool is_broken_ = false;
};

}  // namespace treadle::mpi_group
