#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <treadle/core/distributed/communicator.h>

#include "guarded.h"

namespace treadle::gloo_group {

/// The first failure of a group, as all its processes see it.
struct Blame {
  std::int64_t rank = 0;
  bool is_silent = false;  ///< it did not answer; else it is gone
};

/// Where the processes of a group find each other: a c10d store, in a file or on a server. It
/// refuses other groups and second processes of a rank, and notes the first failure.
///
/// Its functions block as libtorch's stores do, longer than their time-outs: call them guarded().
class Meeting {
 public:
  /// Opens the store, whose server may come later. Throws CommunicationError where it cannot be
  /// reached.
  static Meeting open(const Rendezvous& rendezvous, const Waiting& waiting);

  /// Takes the place of this rank and waits for those of all others.
  void join(const Waiting& waiting);
  /// Waits until all ranks have called it.
  void await_all(const Waiting& waiting);

  /// Keeps the first blame that any rank gives, and returns it.
  Blame blame(const Blame& mine);
  /// Of a rank whose time is over while it waits for `other`: the rank that all wait for. `other`
  /// itself may wait for a third one, whose process hangs.
  std::int64_t last_in_chain(std::int64_t other);

  /// For the keys of libtorch.
  c10::intrusive_ptr<c10d::Store> store() const;

 private:
  Meeting(Rendezvous rendezvous, c10::intrusive_ptr<c10d::Store> store);

  void expect_own_group();
  std::vector<std::int64_t> absent_now() const;

  Rendezvous rendezvous_;
  c10::intrusive_ptr<c10d::Store> store_;
};

/// The first line of an error of libtorch or Gloo, without its place in their sources.
std::string words_of(const std::exception& error);

}  // namespace treadle::gloo_group
