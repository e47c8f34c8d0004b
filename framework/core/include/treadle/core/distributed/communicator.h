#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <treadle/base/component.h>

namespace treadle {

/// Where the processes of a group meet, and which of them this one is.
struct Rendezvous {
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  /// Tells the group from all others, the earlier ones of the same training included: a process of
  /// another group is refused.
  std::string id = {};
  /// Where the server is that all processes reach: "node-1:29500". Empty: all are on one host, and
  /// meet in `folder`.
  std::string address = {};
  bool is_served = false;        ///< by another program (torchrun's agent); else by rank 0
  std::string own_address = {};  ///< that other hosts reach this process by; empty: loopback alone
  std::filesystem::path folder = {};  ///< exists, is empty, belongs to this user and group alone
  std::string token = {};             ///< that every process of the group has; empty: none
  /// Of connect(), and of each call after it.
  std::chrono::milliseconds timeout{60'000};
};

/// Moves bytes between the processes of a group, one per rank: the interface to c10d, MPI and their
/// like. It computes nothing: the sums of these libraries depend on the number of processes, those
/// of Treadle do not.
///
/// All processes of a group make the same calls in the same order, with sizes that agree. Each call
/// returns when this process has its result, and its spans are the caller's again; others may be
/// behind it. The spans of a call do not overlap. One call at a time, from any thread; abort() at
/// any time.
///
/// An object that is destroyed leaves the group: its messages arrive, and later calls of
/// others fail.
///
/// Throws CommunicationError within `Rendezvous::timeout`, and with the rank where it is known, for
/// a process that is gone or does not answer. Afterwards the group is of no use: abort() it.
class Communicator : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.communicator/0";

  ~Communicator() override;

  /// Joins the group: returns when all its processes have. Once, also where it fails. Throws
  /// CommunicationError where some are missing when the time is over, with their ranks, and where
  /// another program or group listens at the address.
  void connect(const Rendezvous& rendezvous);

  std::int64_t rank() const { return rank_; }
  std::int64_t world_size() const { return world_size_; }

  /// `all`: those of rank 0, rank 1, …; `world_size` times the bytes of `mine`, which are as many
  /// in every process.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);

  /// `sent` is what each rank is sent, one behind the other: `sent_sizes[i]` bytes for rank i.
  /// `received` is what each has sent here, likewise. The sizes may be 0, and are as the other side
  /// has them.
  void all_to_all(std::span<const std::byte> sent, std::span<const std::size_t> sent_sizes,
                  std::span<std::byte> received, std::span<const std::size_t> received_sizes);

  /// `bytes`, as many in every process, become those of `root`.
  void broadcast(std::span<std::byte> bytes, std::int64_t root);

  /// Ends the group for this process: a call that waits throws at once, later ones throw, and the
  /// calls of other processes fail soon. From any thread, at any time.
  void abort() noexcept;

 private:
  // Called once. do_abort() may be called meanwhile, and before.
  virtual void do_connect(const Rendezvous& rendezvous) = 0;
  // After do_connect(), and not after do_abort(), which may be called meanwhile. Sizes add up.
  virtual void do_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  virtual void do_all_to_all(std::span<const std::byte> sent,
                             std::span<const std::size_t> sent_sizes, std::span<std::byte> received,
                             std::span<const std::size_t> received_sizes) = 0;
  virtual void do_broadcast(std::span<std::byte> bytes, std::int64_t root) = 0;
  // Called once at most.
  virtual void do_abort() noexcept = 0;

  void expect_usable() const;

  std::atomic<bool> has_joined_{false};  ///< or tried to
  std::atomic<bool> is_aborted_{false};
  std::int64_t rank_ = 0;
  std::int64_t world_size_ = 0;  // 0: not connected
};

}  // namespace treadle
