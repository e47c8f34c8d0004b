#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/distributed/communicator.h>

/// The errors of a group of processes, in the same words for every Communicator.
namespace treadle {

/// `ranks` have not joined the group in time.
CommunicationError absent_ranks(const Rendezvous& rendezvous, std::span<const std::int64_t> ranks);

/// Another process has joined with the rank of this one.
CommunicationError taken_rank(const Rendezvous& rendezvous);

/// Another group meets at the same place. `difference`: "its id is \"a\", this one's \"b\"".
CommunicationError foreign_group(const Rendezvous& rendezvous, const std::string& difference);

/// A process of the group has ended or left it. `sign`: how that was noticed.
CommunicationError lost_rank(std::int64_t rank, const std::string& sign);

/// A process of the group has not made its part of a call in time.
CommunicationError silent_rank(std::int64_t rank, std::chrono::milliseconds timeout);

/// This process has called abort().
CommunicationError aborted_group();

/// "node-1:29500", or the folder: where a group meets.
std::string meeting_place(const Rendezvous& rendezvous);

/// "60 s", "0.5 s"
std::string seconds_text(std::chrono::milliseconds time);

}  // namespace treadle
