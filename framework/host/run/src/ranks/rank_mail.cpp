#include "ranks/rank_mail.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include <treadle/base/error.h>

// Two threads. One exchanges: it is never kept from its next call by what somebody does with a
// message, or the calls of the others would run out of time. The other one delivers.
//
// A round is a call with two signals of each process (stop, done) and the number of bytes that it
// has for each other one; if any has some, a second call moves them. Large messages take several
// rounds. A round begins when the last process joins it, so a message waits at most for the pause
// between rounds. The pause is short while messages are exchanged, and grows while there are none.
//
// The end: a process that is done sends nothing of its own accord. The round in which all are done
// and nothing is on its way is the last one, in all of them.

namespace treadle::internal {
namespace {

using std::chrono::microseconds;

constexpr std::size_t kMostInRound = std::size_t{16} << 20;
constexpr std::size_t kMostWaiting = std::size_t{64} << 20;
constexpr microseconds kShortestPause{500};
constexpr microseconds kLongestPause{20'000};
constexpr std::size_t kLength = sizeof(std::uint64_t);

/// Before the sizes, in what each process says in a round.
enum Word : std::size_t { kStops, kIsDone, kWords };

}  // namespace

struct RankMail::Round {
  std::vector<std::uint64_t> said;  // kWords, and how many bytes for each rank
  std::string bytes;                // for rank 0, rank 1, …
};

RankMail::RankMail(Communicator& communicator)
    : communicator_(communicator),
      outboxes_(static_cast<std::size_t>(communicator.world_size())),
      incomplete_(outboxes_.size()) {}

RankMail::~RankMail() {
  if (!exchanging_.joinable())
    return;
  communicator_.abort();
  exchanging_.join();
  delivering_.join();
}

void RankMail::begin(Calls calls) {
  calls_ = std::move(calls);
  exchanging_ = std::thread([this] { exchange(); });
  delivering_ = std::thread([this] { deliver(); });
}

void RankMail::send(std::int64_t to, const nlohmann::json& message) {
  std::string text(kLength, '\0');
  nlohmann::json::to_cbor(message, text);
  const std::uint64_t length = text.size() - kLength;
  std::memcpy(text.data(), &length, kLength);
  std::unique_lock lock(mutex_);
  if (to == rank()) {
    inbox_.emplace_back(to, text.substr(kLength));
  } else {
    Outbox& outbox = outboxes_[static_cast<std::size_t>(to)];
    changed_.wait(lock, [&] { return outbox.bytes < kMostWaiting || has_ended_; });
    if (has_ended_)
      return;
    outbox.bytes += text.size();
    outbox.messages.push_back(std::move(text));
  }
  changed_.notify_all();
}

void RankMail::send_all(const nlohmann::json& message) {
  for (std::int64_t to = 0; to < world_size(); ++to)
    send(to, message);
}

void RankMail::wish_stop() {
  const std::lock_guard lock(mutex_);
  wishes_stop_ = true;
  changed_.notify_all();
}

void RankMail::finish() {
  {
    const std::lock_guard lock(mutex_);
    is_done_ = true;
  }
  changed_.notify_all();
  exchanging_.join();
  delivering_.join();
  if (failure_)
    std::rethrow_exception(failure_);
}

// Exchanges.

void RankMail::exchange() {
  microseconds pause = kShortestPause;
  try {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, pause, [&] {
          return (is_done_ && !has_said_done_) || (wishes_stop_ && !is_stopped_) ||
                 std::any_of(outboxes_.begin(), outboxes_.end(),
                             [](const Outbox& outbox) { return outbox.bytes > 0; });
        });
      }
      const bool had_mail = exchange_once();
      const std::lock_guard lock(mutex_);
      if (has_ended_)
        return;
      pause = had_mail ? kShortestPause : std::min(pause * 5 / 4, kLongestPause);
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

/// The signals and bytes of this process.
RankMail::Round RankMail::next_round() {
  const std::lock_guard lock(mutex_);
  Round round;
  round.said.resize(kWords);
  round.said[kStops] = wishes_stop_ ? 1 : 0;
  round.said[kIsDone] = is_done_ ? 1 : 0;
  has_said_done_ = is_done_;
  for (Outbox& outbox : outboxes_) {
    const std::string bytes = take(outbox);
    round.said.push_back(bytes.size());
    round.bytes += bytes;
  }
  changed_.notify_all();
  return round;
}

std::string RankMail::take(Outbox& outbox) {
  std::string bytes;
  while (!outbox.messages.empty() && bytes.size() < kMostInRound) {
    const std::string& first = outbox.messages.front();
    const std::size_t count = std::min(first.size() - outbox.sent, kMostInRound - bytes.size());
    bytes.append(first, outbox.sent, count);
    outbox.sent += count;
    if (outbox.sent == first.size()) {
      outbox.messages.pop_front();
      outbox.sent = 0;
    }
  }
  outbox.bytes -= bytes.size();
  return bytes;
}

/// Whether any process has sent something.
bool RankMail::exchange_once() {
  const Round mine = next_round();
  const auto ranks = static_cast<std::size_t>(world_size());
  const std::size_t words = kWords + ranks;
  std::vector<std::uint64_t> all(words * ranks);
  communicator_.all_gather(std::as_bytes(std::span(mine.said)),
                           std::as_writable_bytes(std::span(all)));
  std::vector<std::size_t> sent_sizes(mine.said.begin() + kWords, mine.said.end());
  std::vector<std::size_t> received_sizes;
  bool any_stops = false;
  bool all_are_done = true;
  bool any_mail = false;
  for (std::size_t from = 0; from < ranks; ++from) {
    const auto said = std::span(all).subspan(from * words, words);
    any_stops = any_stops || said[kStops] != 0;
    all_are_done = all_are_done && said[kIsDone] != 0;
    any_mail = any_mail || std::any_of(said.begin() + kWords, said.end(),
                                       [](std::uint64_t size) { return size > 0; });
    received_sizes.push_back(said[kWords + static_cast<std::size_t>(rank())]);
  }
  std::vector<std::byte> received(
      std::accumulate(received_sizes.begin(), received_sizes.end(), std::size_t{0}));
  if (any_mail)
    communicator_.all_to_all(std::as_bytes(std::span(mine.bytes)), sent_sizes, received,
                             received_sizes);
  const std::lock_guard lock(mutex_);
  std::size_t begin = 0;
  for (std::size_t from = 0; from < ranks; ++from) {
    receive(static_cast<std::int64_t>(from),
            std::span(received).subspan(begin, received_sizes[from]));
    begin += received_sizes[from];
  }
  is_stopped_ = is_stopped_ || any_stops;
  has_ended_ = all_are_done && !any_mail;
  changed_.notify_all();
  return any_mail;
}

/// Puts the parts of messages together. With the lock held.
void RankMail::receive(std::int64_t from, std::span<const std::byte> bytes) {
  std::string& text = incomplete_[static_cast<std::size_t>(from)];
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::size_t begin = 0;
  for (std::uint64_t length = 0; text.size() - begin >= kLength; begin += kLength + length) {
    std::memcpy(&length, text.data() + begin, kLength);
    if (text.size() - begin - kLength < length)
      break;
    inbox_.emplace_back(from, text.substr(begin + kLength, length));
  }
  text.erase(0, begin);
}

void RankMail::fail(std::exception_ptr failure) {
  communicator_.abort();
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
    has_ended_ = true;
  }
  changed_.notify_all();
}

// Deliveries.

void RankMail::deliver() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(
        lock, [&] { return !inbox_.empty() || (is_stopped_ && !has_told_stop_) || has_ended_; });
    if (is_stopped_ && !std::exchange(has_told_stop_, true)) {
      lock.unlock();
      calls_.stopped();
      lock.lock();
      continue;
    }
    if (inbox_.empty())
      break;
    const auto& [from, text] = inbox_.front();
    lock.unlock();
    calls_.received(from, nlohmann::json::from_cbor(text));
    lock.lock();
    inbox_.pop_front();
    changed_.notify_all();
  }
  if (!failure_)
    return;
  lock.unlock();
  calls_.failed(failure_);
}

}  // namespace treadle::internal
