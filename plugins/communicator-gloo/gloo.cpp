#include "gloo.h"

#include <gloo/context.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/from_blob.h>

#include <treadle/base/error.h>
#include <treadle/core/distributed/group_errors.h>

#include "own_device.h"
#include "without_sigpipe.h"

namespace treadle::gloo_group {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kGrace{2000};      // of libtorch's stores, after the time-out they have
constexpr Milliseconds kBlameTime{400};   // to look up who failed first
constexpr std::int64_t kNoLimit = 1'000;  // times the time-out: the timer ends a call before

struct Connected {
  std::shared_ptr<Meeting> meeting;
  c10::intrusive_ptr<Group> group;
};

Connected connected(const Rendezvous& rendezvous, const Waiting& waiting) {
  const WithoutSigpipe guard;  // Gloo's threads inherit it
  Connected all{std::make_shared<Meeting>(Meeting::open(rendezvous)), {}};
  all.meeting->join(waiting);
  const auto options = c10d::ProcessGroupGloo::Options::create(rendezvous.timeout);
  options->threads = 1;  // for its collectives, which are not called
  options->devices.push_back(own_device(rendezvous));
  try {
    all.group = c10::make_intrusive<Group>(all.meeting->store(), static_cast<int>(rendezvous.rank),
                                           static_cast<int>(rendezvous.world_size), options);
  } catch (const std::exception& error) {
    throw CommunicationError(meeting_place(rendezvous) +
                             ": a process of the group cannot be connected to (" + words_of(error) +
                             "); see the errors of the others, and whether a firewall is between");
  }
  all.meeting->await_all(waiting);
  return all;
}

/// A tag for the messages of one size in one call. Messages of another size have another one.
int tag_of(std::uint64_t call, std::size_t size) {
  std::uint64_t mixed = call * 0x9e3779b97f4a7c15U + size;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
  return static_cast<int>((mixed ^ (mixed >> 31)) & 0x7fffffffU);
}

}  // namespace

void Group::close() noexcept {
  for (const auto& context : contexts_) {
    try {
      context->closeConnections();
    } catch (const std::exception&) {  // they are closed then
    }
  }
}

Gloo::Gloo(const Config&) {}

Gloo::~Gloo() {
  is_given_up_ = true;
  close();
}

void Gloo::do_connect(const Rendezvous& rendezvous) {
  rendezvous_ = rendezvous;
  if (rendezvous.world_size == 1)
    return;
  // The thread may outlive this object.
  const auto given_up = std::make_shared<std::atomic<bool>>(false);
  const Waiting waiting{.end = std::chrono::steady_clock::now() + rendezvous.timeout,
                        .is_given_up = [given_up] { return given_up->load(); }};
  std::optional<Connected> all =
      guarded({.end = waiting.end + kGrace, .is_given_up = [this] { return is_given_up_.load(); }},
              [rendezvous, waiting] { return connected(rendezvous, waiting); });
  *given_up = true;
  if (is_given_up_)
    throw aborted_group();
  if (!all)
    throw CommunicationError(
        meeting_place(rendezvous) + ": does not answer as a group's meeting place within " +
        seconds_text(rendezvous.timeout) +
        (rendezvous.address.empty()
             ? "; give the group a new, empty folder"
             : "; another program may listen there: choose another port, for all processes"));
  const std::lock_guard call(call_);
  const std::lock_guard lock(pending_mutex_);
  meeting_ = std::move(all->meeting);
  group_ = std::move(all->group);
  timer_ = std::thread([this] { keep_time(); });
}

void Gloo::do_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  std::vector<Message> sent;
  std::vector<Message> received;
  // The bytes of a message that is sent are not changed: tensors have no const.
  auto* const own = const_cast<std::byte*>(mine.data());
  for (std::int64_t step = 1; step < world_size(); ++step) {
    const std::int64_t to = (rank() + step) % world_size();
    const std::int64_t from = (rank() + world_size() - step) % world_size();
    sent.push_back({to, own, mine.size()});
    received.push_back(
        {from, all.data() + static_cast<std::size_t>(from) * mine.size(), mine.size()});
  }
  std::copy(mine.begin(), mine.end(),
            all.begin() + rank() * static_cast<std::ptrdiff_t>(mine.size()));
  exchange(sent, received);
}

void Gloo::do_all_to_all(std::span<const std::byte> sent, std::span<const std::size_t> sent_sizes,
                         std::span<std::byte> received,
                         std::span<const std::size_t> received_sizes) {
  std::vector<Message> out;
  std::vector<Message> in;
  const auto own = static_cast<std::size_t>(rank());
  std::size_t sent_begin = 0;
  std::size_t received_begin = 0;
  std::size_t own_begin = 0;
  std::size_t own_place = 0;
  for (std::size_t other = 0; other < sent_sizes.size(); ++other) {
    if (other == own) {
      own_begin = sent_begin;
      own_place = received_begin;
    } else {
      const auto rank_of_other = static_cast<std::int64_t>(other);
      out.push_back(
          {rank_of_other, const_cast<std::byte*>(sent.data()) + sent_begin, sent_sizes[other]});
      in.push_back({rank_of_other, received.data() + received_begin, received_sizes[other]});
    }
    sent_begin += sent_sizes[other];
    received_begin += received_sizes[other];
  }
  if (sent_sizes[own] != received_sizes[own])
    throw CommunicationError("rank " + std::to_string(rank()) + " sends itself " +
                             std::to_string(sent_sizes[own]) + " bytes and expects " +
                             std::to_string(received_sizes[own]) + "; these are the same bytes");
  std::copy_n(sent.data() + own_begin, sent_sizes[own], received.data() + own_place);
  exchange(out, in);
}

void Gloo::do_broadcast(std::span<std::byte> bytes, std::int64_t root) {
  if (rank() != root)
    return exchange({}, {{root, bytes.data(), bytes.size()}});
  std::vector<Message> sent;
  for (std::int64_t step = 1; step < world_size(); ++step)
    sent.push_back({(rank() + step) % world_size(), bytes.data(), bytes.size()});
  exchange(sent, {});
}

void Gloo::do_abort() noexcept {
  is_given_up_ = true;
  wake_calls();
  const std::lock_guard call(call_);
  if (group_)
    first_blame({.rank = rank(), .is_silent = false});
  close();
}

void Gloo::exchange(const std::vector<Message>& sent, const std::vector<Message>& received) {
  if (world_size() == 1)
    return;
  const std::lock_guard call(call_);
  const WithoutSigpipe guard;
  try {
    begin_call();
    for (const Message& message : received)
      post(message, false);
    for (const Message& message : sent)
      post(message, true);
    for (std::size_t i = 0; i < pending_.size(); ++i)
      await(pending_[i]);
  } catch (...) {
    close();  // messages that are on their way are the caller's memory
    throw;
  }
  const std::lock_guard lock(pending_mutex_);
  pending_.clear();
  end_.reset();
}

void Gloo::begin_call() {
  const std::lock_guard lock(pending_mutex_);
  ++calls_;
  end_ = std::chrono::steady_clock::now() + rendezvous_.timeout;
  is_late_ = false;
}

void Gloo::post(const Message& message, bool is_sent) {
  if (message.size == 0)
    return;
  std::vector<at::Tensor> bytes{
      at::from_blob(message.bytes, {static_cast<std::int64_t>(message.size)}, at::kByte)};
  const int tag = tag_of(calls_, message.size);
  const int rank = static_cast<int>(message.rank);
  std::unique_lock lock(pending_mutex_);
  if (is_given_up_ || group_ == nullptr)
    throw aborted_group();
  try {
    WorkPointer work = is_sent ? group_->send(bytes, rank, tag) : group_->recv(bytes, rank, tag);
    pending_.push_back({message.rank, std::move(work)});
  } catch (const std::exception& error) {
    lock.unlock();
    fail(message.rank, words_of(error));
  }
}

void Gloo::await(const Pending& one) {
  bool has_come = false;
  try {
    has_come = one.work->wait(rendezvous_.timeout * kNoLimit);
  } catch (const std::exception& error) {
    fail(one.rank, words_of(error));
  }
  if (!has_come)
    fail(one.rank, "");
}

void Gloo::fail(std::int64_t rank, const std::string& sign) {
  bool is_late = false;
  {
    const std::lock_guard lock(pending_mutex_);
    is_late = is_late_;
  }
  if (is_given_up_)
    throw aborted_group();
  const Blame first = first_blame({.rank = rank, .is_silent = is_late});
  if (first.is_silent)
    throw silent_rank(first.rank, rendezvous_.timeout);
  throw lost_rank(first.rank, first.rank == rank ? sign : "as other ranks have noticed");
}

Blame Gloo::first_blame(const Blame& mine) noexcept {
  try {
    const std::optional<Blame> first = guarded(
        Waiting::of(kBlameTime), [meeting = meeting_, mine] { return meeting->blame(mine); });
    return first.value_or(mine);
  } catch (...) {
    // The server of the group is rank 0's, and gone with it.
    const bool is_with_rank_zero = !rendezvous_.address.empty() && !rendezvous_.is_served;
    return is_with_rank_zero && !mine.is_silent ? Blame{.rank = 0, .is_silent = false} : mine;
  }
}

void Gloo::wake_calls() noexcept {
  const std::lock_guard lock(pending_mutex_);
  for (const Pending& one : pending_)
    one.work->abort();
}

// Looks at the end of each call; a call need not wake it, since all have the same time-out.
void Gloo::keep_time() {
  std::unique_lock lock(pending_mutex_);
  while (!is_closed_) {
    const auto now = std::chrono::steady_clock::now();
    if (end_ && *end_ <= now) {
      is_late_ = true;
      end_.reset();
      for (const Pending& one : pending_)
        one.work->abort();
    }
    changed_.wait_until(lock, end_.value_or(now + rendezvous_.timeout));
  }
}

void Gloo::close() noexcept {
  c10::intrusive_ptr<Group> group;
  {
    const std::lock_guard lock(pending_mutex_);
    is_closed_ = true;
    group = std::move(group_);
  }
  changed_.notify_all();
  if (timer_.joinable())
    timer_.join();
  if (group)
    group->close();
  const std::lock_guard lock(pending_mutex_);
  pending_.clear();
}

}  // namespace treadle::gloo_group
