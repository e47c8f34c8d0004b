#include <treadle/testing/distributed/thread_communicator.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/core/distributed/group_errors.h>

namespace treadle::testing {
namespace {

/// The end of a call that begins now.
struct Patience {
  explicit Patience(std::chrono::milliseconds timeout_of_call) : timeout(timeout_of_call) {}

  std::chrono::milliseconds timeout;
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now() + timeout;
};

}  // namespace

/// Messages from each rank to each other one, in the order in which they were sent. Sending waits
/// for nobody; receiving waits for the sender.
class ThreadGroup::Board {
 public:
  void join(const Rendezvous& rendezvous) {
    std::unique_lock lock(mutex_);
    if (!first_)
      first_ = rendezvous;
    expect_same_group(rendezvous);
    if (places_[rendezvous.rank] != Place::kEmpty)
      throw taken_rank(rendezvous);
    places_[rendezvous.rank] = Place::kTaken;
    changed_.notify_all();
    wait(lock, Patience(rendezvous.timeout), [&] { return is_broken() || absent().empty(); });
    expect_whole(rendezvous.rank);
    const std::vector<std::int64_t> missing = absent();
    if (missing.empty())
      return;
    places_[rendezvous.rank] = Place::kLeft;
    throw absent_ranks(rendezvous, missing);
  }

  void leave(std::int64_t rank) {
    const std::lock_guard lock(mutex_);
    places_[rank] = Place::kLeft;
    changed_.notify_all();
  }

  void abort(std::int64_t rank) {
    const std::lock_guard lock(mutex_);
    aborted_by_ = aborted_by_.value_or(rank);
    changed_.notify_all();
  }

  void send(std::int64_t from, std::int64_t to, std::span<const std::byte> message) {
    const std::lock_guard lock(mutex_);
    expect_whole(from);
    messages_[{from, to}].emplace_back(message.begin(), message.end());
    changed_.notify_all();
  }

  void receive(std::int64_t to, std::int64_t from, std::span<std::byte> bytes,
               const Patience& patience) {
    std::unique_lock lock(mutex_);
    auto& waiting = messages_[{from, to}];
    wait(lock, patience,
         [&] { return is_broken() || !waiting.empty() || places_[from] == Place::kLeft; });
    expect_whole(to);
    if (waiting.empty() && places_[from] == Place::kLeft)
      throw lost_rank(from, "it has left the group");
    if (waiting.empty())
      throw silent_rank(from, patience.timeout);
    if (waiting.front().size() != bytes.size())
      throw CommunicationError("rank " + std::to_string(from) + " sent " +
                                   std::to_string(waiting.front().size()) + " bytes, expected " +
                                   std::to_string(bytes.size()) +
                                   "; all ranks must make the same calls",
                               static_cast<int>(from));
    std::copy(waiting.front().begin(), waiting.front().end(), bytes.begin());
    waiting.pop_front();
  }

 private:
  enum class Place { kEmpty, kTaken, kLeft };

  template <typename Condition>
  void wait(std::unique_lock<std::mutex>& lock, const Patience& patience,
            const Condition& condition) {
    changed_.wait_until(lock, patience.end, condition);
  }

  void expect_same_group(const Rendezvous& other) const {
    if (other.id != first_->id)
      throw foreign_group(other,
                          "its id is \"" + first_->id + "\", this one's \"" + other.id + "\"");
    if (other.token != first_->token)
      throw foreign_group(other, "its token is not this one's");
    if (other.world_size != first_->world_size)
      throw foreign_group(other, "it has " + std::to_string(first_->world_size) +
                                     " processes, this one " + std::to_string(other.world_size));
  }

  std::vector<std::int64_t> absent() const {
    std::vector<std::int64_t> ranks;
    for (std::int64_t rank = 0; rank < first_->world_size; ++rank) {
      if (!places_.contains(rank) || places_.at(rank) == Place::kEmpty)
        ranks.push_back(rank);
    }
    return ranks;
  }

  bool is_broken() const { return aborted_by_.has_value(); }
  void expect_whole(std::int64_t rank) const {
    if (aborted_by_ == rank)
      throw aborted_group();
    if (aborted_by_)
      throw lost_rank(*aborted_by_, "it has aborted the group");
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Rendezvous> first_;  ///< of the rank that came first
  std::map<std::int64_t, Place> places_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::deque<std::vector<std::byte>>> messages_;
  std::optional<std::int64_t> aborted_by_;
};

ThreadGroup::ThreadGroup() : board_(std::make_shared<Board>()) {}

ThreadCommunicator::ThreadCommunicator(ThreadGroup group) : board_(std::move(group.board_)) {}

ThreadCommunicator::~ThreadCommunicator() {
  if (world_size() > 0)
    board_->leave(rank());
}

void ThreadCommunicator::do_connect(const Rendezvous& rendezvous) {
  timeout_ = rendezvous.timeout;
  joins_as_ = rendezvous.rank;
  if (aborts_)  // which may not have seen the rank
    throw aborted_group();
  board_->join(rendezvous);
}

void ThreadCommunicator::do_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const Patience patience(timeout_);
  for (std::int64_t to = 0; to < world_size(); ++to)
    board_->send(rank(), to, mine);
  for (std::int64_t from = 0; from < world_size(); ++from)
    board_->receive(rank(), from,
                    all.subspan(static_cast<std::size_t>(from) * mine.size(), mine.size()),
                    patience);
}

void ThreadCommunicator::do_all_to_all(std::span<const std::byte> sent,
                                       std::span<const std::size_t> sent_sizes,
                                       std::span<std::byte> received,
                                       std::span<const std::size_t> received_sizes) {
  const Patience patience(timeout_);
  for (std::size_t to = 0, begin = 0; to < sent_sizes.size(); begin += sent_sizes[to++])
    board_->send(rank(), static_cast<std::int64_t>(to), sent.subspan(begin, sent_sizes[to]));
  for (std::size_t from = 0, begin = 0; from < received_sizes.size();
       begin += received_sizes[from++])
    board_->receive(rank(), static_cast<std::int64_t>(from),
                    received.subspan(begin, received_sizes[from]), patience);
}

void ThreadCommunicator::do_broadcast(std::span<std::byte> bytes, std::int64_t root) {
  if (rank() != root)
    return board_->receive(rank(), root, bytes, Patience(timeout_));
  for (std::int64_t to = 0; to < world_size(); ++to) {
    if (to != root)
      board_->send(root, to, bytes);
  }
}

void ThreadCommunicator::do_abort() noexcept {
  aborts_ = true;
  if (joins_as_ >= 0)
    board_->abort(joins_as_);
}

}  // namespace treadle::testing
