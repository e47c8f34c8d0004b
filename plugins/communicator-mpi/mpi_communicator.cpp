#include "mpi_communicator.h"

#include <sha2.h>

#include <algorithm>
#include <array>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/distributed/group_errors.h>

#include "backoff.h"

namespace treadle::mpi_group {
namespace {

constexpr int kBytesTag = 0;
constexpr int kAbortTag = 1;
constexpr std::size_t kLargest = std::size_t{1}
                                 << 30;  // bytes of a message, which MPI counts by int

using Clock = std::chrono::steady_clock;

std::array<char, SHA256_DIGEST_STRING_LENGTH> digest_of(const std::string& text) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> digest{};
  SHA256Data(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(), digest.data());
  return digest;
}

}  // namespace

MpiCommunicator::MpiCommunicator(const Config&) {}

MpiCommunicator::~MpiCommunicator() {
  if (process_ == nullptr || is_broken_)
    return;
  const std::lock_guard lock(process_->mutex());
  int has_ended = 0;
  MPI_Finalized(&has_ended);
  if (has_ended == 0 && group_ != MPI_COMM_NULL)
    MPI_Comm_free(&group_);
}

void MpiCommunicator::do_connect(const Rendezvous& rendezvous) {
  rendezvous_ = rendezvous;
  if (rendezvous.world_size == 1)
    return;
  process_ = &MpiProcess::begun_for(rendezvous);
  {
    const std::lock_guard lock(process_->mutex());
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    expect_success(MPI_Comm_idup(MPI_COMM_WORLD, &made, &request), "MPI_Comm_idup", -1);
    requests_.push_back({CommunicationError::kUnknownRank, -1, request});
    try {
      await_all();
    } catch (...) {
      is_broken_ = true;
      process_->set_broken();
      throw;
    }
    group_ = made;
    MPI_Comm_set_errhandler(group_, MPI_ERRORS_RETURN);
  }
  expect_own_group();
}

// Whether all ranks have the id and the token of this one.
void MpiCommunicator::expect_own_group() {
  const auto id = digest_of(rendezvous_.id);
  const auto token = digest_of(rendezvous_.token);
  std::string mine(id.begin(), id.end());
  mine.append(token.begin(), token.end());
  std::string all(mine.size() * static_cast<std::size_t>(rendezvous_.world_size), ' ');
  gather(reinterpret_cast<const std::byte*>(mine.data()), mine.size(),
         reinterpret_cast<std::byte*>(all.data()));
  for (std::int64_t rank = 0; rank < rendezvous_.world_size; ++rank) {
    const std::string other = all.substr(static_cast<std::size_t>(rank) * mine.size(), mine.size());
    if (other == mine)
      continue;
    is_broken_ = true;
    process_->set_broken();
    const bool has_id = other.compare(0, id.size(), mine, 0, id.size()) == 0;
    throw CommunicationError(
        "rank " + std::to_string(rank) + " is of another group: its " + (has_id ? "token" : "id") +
            " is not this one's; start all processes of the group in the same way",
        static_cast<int>(rank));
  }
}

void MpiCommunicator::do_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  gather(mine.data(), mine.size(), all.data());
}

void MpiCommunicator::gather(const std::byte* mine, std::size_t size, std::byte* all) {
  std::vector<Message> sent;
  std::vector<Message> received;
  const std::int64_t ranks = rendezvous_.world_size;
  const std::int64_t own = rendezvous_.rank;
  for (std::int64_t step = 1; step < ranks; ++step) {
    const std::int64_t from = (own + ranks - step) % ranks;
    sent.push_back({(own + step) % ranks, const_cast<std::byte*>(mine), size});
    received.push_back({from, all + static_cast<std::size_t>(from) * size, size});
  }
  std::copy_n(mine, size, all + static_cast<std::size_t>(own) * size);
  exchange(sent, received);
}

void MpiCommunicator::do_all_to_all(std::span<const std::byte> sent,
                                    std::span<const std::size_t> sent_sizes,
                                    std::span<std::byte> received,
                                    std::span<const std::size_t> received_sizes) {
  std::vector<Message> out;
  std::vector<Message> in;
  std::size_t sent_begin = 0;
  std::size_t received_begin = 0;
  Message own_sent;
  Message own_received;
  for (std::size_t other = 0; other < sent_sizes.size(); ++other) {
    const auto rank_of_other = static_cast<std::int64_t>(other);
    const Message to{rank_of_other, const_cast<std::byte*>(sent.data()) + sent_begin,
                     sent_sizes[other]};
    const Message from{rank_of_other, received.data() + received_begin, received_sizes[other]};
    if (rank_of_other == rank()) {
      own_sent = to;
      own_received = from;
    } else {
      out.push_back(to);
      in.push_back(from);
    }
    sent_begin += sent_sizes[other];
    received_begin += received_sizes[other];
  }
  if (own_sent.size != own_received.size)
    throw CommunicationError("rank " + std::to_string(rank()) + " sends itself " +
                             std::to_string(own_sent.size) + " bytes and expects " +
                             std::to_string(own_received.size) + "; these are the same bytes");
  std::copy_n(own_sent.bytes, own_sent.size, own_received.bytes);
  exchange(out, in);
}

void MpiCommunicator::do_broadcast(std::span<std::byte> bytes, std::int64_t root) {
  if (rank() != root)
    return exchange({}, {{root, bytes.data(), bytes.size()}});
  std::vector<Message> sent;
  for (std::int64_t step = 1; step < world_size(); ++step)
    sent.push_back({(rank() + step) % world_size(), bytes.data(), bytes.size()});
  exchange(sent, {});
}

// The others are given a sign; the process itself ends by its own error, with MPI_Abort.
void MpiCommunicator::do_abort() noexcept {
  is_given_up_ = true;
  if (process_ == nullptr)
    return;
  const std::lock_guard lock(process_->mutex());
  process_->set_broken();
  if (is_broken_ || group_ == MPI_COMM_NULL)
    return;
  is_broken_ = true;
  for (int other = 0; other < rendezvous_.world_size; ++other) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (other != rendezvous_.rank &&
        MPI_Isend(nullptr, 0, MPI_BYTE, other, kAbortTag, group_, &request) == MPI_SUCCESS)
      MPI_Request_free(&request);
  }
}

void MpiCommunicator::exchange(const std::vector<Message>& sent,
                               const std::vector<Message>& received) {
  if (rendezvous_.world_size == 1)
    return;
  const std::lock_guard lock(process_->mutex());
  try {
    if (is_broken_)
      throw aborted_group();
    for (const Message& message : received)
      post(message, false);
    for (const Message& message : sent)
      post(message, true);
    await_all();
  } catch (...) {
    is_broken_ = true;
    process_->set_broken();
    throw;
  }
}

void MpiCommunicator::post(const Message& message, bool is_sent) {
  const int rank = static_cast<int>(message.rank);
  for (std::size_t begin = 0; begin < message.size; begin += kLargest) {
    const auto size = static_cast<int>(std::min(kLargest, message.size - begin));
    std::byte* const bytes = message.bytes + begin;
    Request one{message.rank, is_sent ? -1 : size, MPI_REQUEST_NULL};
    expect_success(is_sent
                       ? MPI_Isend(bytes, size, MPI_BYTE, rank, kBytesTag, group_, &one.request)
                       : MPI_Irecv(bytes, size, MPI_BYTE, rank, kBytesTag, group_, &one.request),
                   is_sent ? "MPI_Isend" : "MPI_Irecv", rank);
    requests_.push_back(one);
  }
}

void MpiCommunicator::await_all() {
  const Clock::time_point end = Clock::now() + rendezvous_.timeout;
  Backoff backoff;
  while (!requests_.empty()) {
    for (std::size_t i = 0; i < requests_.size();) {
      Request& one = requests_[i];
      int is_done = 0;
      MPI_Status status;
      expect_success(MPI_Test(&one.request, &is_done, &status), "MPI_Test",
                     static_cast<int>(one.rank));
      if (is_done == 0) {
        ++i;
        continue;
      }
      int size = one.expected;
      if (one.expected >= 0)
        MPI_Get_count(&status, MPI_BYTE, &size);
      if (size != one.expected)
        throw CommunicationError("rank " + std::to_string(one.rank) + " sent " +
                                     std::to_string(size) + " bytes, expected " +
                                     std::to_string(one.expected) +
                                     "; all ranks must make the same calls",
                                 static_cast<int>(one.rank));
      requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (requests_.empty())
      return;
    if (is_given_up_)
      throw aborted_group();
    expect_nobody_aborted();
    if (Clock::now() >= end)
      fail_late(requests_.front().rank);
    backoff.wait();
  }
}

void MpiCommunicator::expect_nobody_aborted() {
  if (group_ == MPI_COMM_NULL)
    return;
  int has_come = 0;
  MPI_Status status;
  expect_success(MPI_Iprobe(MPI_ANY_SOURCE, kAbortTag, group_, &has_come, &status), "MPI_Iprobe",
                 -1);
  if (has_come != 0)
    throw lost_rank(status.MPI_SOURCE, "it has aborted the group");
}

void MpiCommunicator::fail_late(std::int64_t rank) const {
  if (rank >= 0)
    throw silent_rank(rank, rendezvous_.timeout);
  throw CommunicationError("not all processes of the group joined within " +
                           seconds_text(rendezvous_.timeout) +
                           "; see their own errors, and whether one of them hangs");
}

}  // namespace treadle::mpi_group
