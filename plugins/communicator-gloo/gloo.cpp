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

constexpr Milliseconds kGrace{1000};     // of libtorch's stores, after the time-out they have
constexpr Milliseconds kBlameTime{600};  // to look up who failed first
// For libtorch, whose own limit closes everything: the timer and the watchers end a wait before.
constexpr Milliseconds kNever = std::chrono::hours(24 * 365);
constexpr int kFarewellTag = 0x7fffffff;

struct Connected {
  std::shared_ptr<Meeting> meeting;
  c10::intrusive_ptr<Group> group;
};

Connected connected(const Rendezvous& rendezvous, const Waiting& waiting) {
  const auto device = own_device(rendezvous);
  Connected all{std::make_shared<Meeting>(Meeting::open(rendezvous, waiting)), {}};
  all.meeting->join(waiting);
  const auto options = c10d::ProcessGroupGloo::Options::create(rendezvous.timeout);
  options->threads = 1;  // for its collectives, which are not called
  options->devices.push_back(device);
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

Connected connected_or_error(const Rendezvous& rendezvous, const Waiting& waiting) {
  const WithoutSigpipe guard;  // Gloo's threads inherit it
  try {
    return connected(rendezvous, waiting);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw CommunicationError(meeting_place(rendezvous) + ": the group's meeting place fails (" +
                             words_of(error) +
                             "); see the error of rank 0, and whether the disk is full");
  }
}

/// A tag for the messages of one size in one call. Messages of another size have another one.
int tag_of(std::uint64_t call, std::size_t size) {
  std::uint64_t mixed = call * 0x9e3779b97f4a7c15U + size;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
  return static_cast<int>((mixed ^ (mixed >> 31)) % kFarewellTag);
}

}  // namespace

void Group::reset_connections() noexcept {
  for (const auto& context : contexts_) {
    try {
      context->closeConnections();
    } catch (const std::exception&) {  // they are closed then
    }
  }
}

Gloo::Gloo(const Config&) {}

Gloo::~Gloo() {
  const WithoutSigpipe guard;
  if (group_)
    say_farewell();
  close(Leave::kInPeace);
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
              [rendezvous, waiting] { return connected_or_error(rendezvous, waiting); });
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
  watch_others();
}

void Gloo::watch_others() {
  for (std::int64_t other = 0; other < rendezvous_.world_size; ++other) {
    if (other == rendezvous_.rank)
      continue;
    std::vector<at::Tensor> byte{at::from_blob(&farewell_, {1}, at::kByte)};
    farewells_.push_back(group_->recv(byte, static_cast<int>(other), kFarewellTag));
    watchers_.emplace_back([this, other, farewell = farewells_.back()] {
      try {
        if (farewell->wait(kNever))
          note({other, "it has left the group", true});
      } catch (const std::exception& error) {
        note({other, words_of(error), false});
      }
    });
  }
}

void Gloo::note(const End& end) {
  const std::lock_guard lock(pending_mutex_);
  ended_.push_back(end);
  for (const Pending& one : pending_) {
    if (one.rank == end.rank)
      one.work->abort();
  }
}

void Gloo::say_farewell() noexcept {
  std::vector<WorkPointer> sent;
  for (std::int64_t other = 0; other < rendezvous_.world_size; ++other) {
    std::vector<at::Tensor> byte{at::from_blob(&farewell_, {1}, at::kByte)};
    try {
      if (other != rendezvous_.rank)
        sent.push_back(group_->send(byte, static_cast<int>(other), kFarewellTag));
    } catch (const std::exception&) {  // it has left before
    }
  }
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
  // Each begins with the rank behind it: otherwise all would send to rank 0 at first.
  std::rotate(out.begin(), out.begin() + rank(), out.end());
  std::rotate(in.begin(), in.begin() + rank(), in.end());
  std::reverse(in.begin(), in.end());
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
  {
    const std::lock_guard lock(pending_mutex_);
    is_given_up_ = true;
    for (const Pending& one : pending_)
      one.work->abort();
  }
  const std::lock_guard call(call_);
  if (group_)
    first_blame({.rank = rendezvous_.rank, .is_silent = false});
  close(Leave::kAtOnce);
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
    close(Leave::kAtOnce);  // messages on their way are the caller's memory
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
  try {
    if (one.work->wait(kNever))
      return;
  } catch (const std::exception& error) {
    fail(one.rank, words_of(error));
  }
  // It was woken: by the timer, abort(), or the end of the connection.
  std::string sign;
  {
    const std::lock_guard lock(pending_mutex_);
    for (const End& end : ended_)
      sign = end.rank == one.rank ? end.sign : sign;
    if (is_late_ || is_given_up_)
      sign.clear();
  }
  if (!sign.empty()) {
    try {  // the message may have come before the connection ended
      if (one.work->wait(Milliseconds(1)))
        return;
    } catch (const std::exception&) {
    }
  }
  fail(one.rank, sign);
}

void Gloo::fail(std::int64_t rank, std::string sign) {
  bool is_late = false;
  {
    const std::lock_guard lock(pending_mutex_);
    is_late = is_late_;
    // Others close their connections because of the first one.
    const auto first =
        std::find_if(ended_.begin(), ended_.end(), [](const End& end) { return !end.is_peaceful; });
    if (!is_late && first != ended_.end()) {
      rank = first->rank;
      sign = first->sign;
    }
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
    const std::optional<Blame> first =
        guarded(Waiting::of(kBlameTime), [meeting = meeting_, mine = mine]() mutable {
          if (mine.is_silent)
            mine.rank = meeting->last_in_chain(mine.rank);
          return meeting->blame(mine);
        });
    if (first)
      return *first;
    // The server of the group hangs, and with it rank 0.
    const bool is_with_rank_zero = !rendezvous_.address.empty() && !rendezvous_.is_served;
    return mine.is_silent && is_with_rank_zero ? Blame{.rank = 0, .is_silent = true} : mine;
  } catch (...) {  // the server of the group has ended with rank 0
    return mine;
  }
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

void Gloo::close(Leave how) noexcept {
  c10::intrusive_ptr<Group> group;
  {
    const std::lock_guard lock(pending_mutex_);
    is_closed_ = true;
    group = std::move(group_);
  }
  changed_.notify_all();
  if (timer_.joinable())
    timer_.join();
  if (group && how == Leave::kAtOnce)
    group->reset_connections();
  for (const WorkPointer& farewell : farewells_)
    farewell->abort();
  for (std::thread& watcher : watchers_)
    watcher.join();
  watchers_.clear();
  farewells_.clear();
  const std::lock_guard lock(pending_mutex_);
  pending_.clear();
}

}  // namespace treadle::gloo_group
