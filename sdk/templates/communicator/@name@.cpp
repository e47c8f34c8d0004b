#include <treadle/sdk.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>

namespace {

using Clock = std::chrono::steady_clock;

/// A file descriptor that is closed with the object.
class File {
 public:
  explicit File(int number = -1) : number_(number) {}
  ~File() {
    if (number_ >= 0)
      ::close(number_);
  }
  File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

File new_socket() {
  return File(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// A socket's name in the folder. By way of the open folder, since names have 107 bytes at most.
sockaddr_un address_in(const File& folder, std::int64_t rank) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%lld.socket",
                folder.number(), static_cast<long long>(rank));
  return address;
}

/// The first message of each connection, in both directions.
struct Hello {
  std::int64_t rank = 0;
  std::int64_t world_size = 0;
  std::array<char, 32> id = {};
  std::array<char, 32> token = {};  ///< a hash: the token itself is not sent

  static Hello of(const treadle::Rendezvous& rendezvous) {
    Hello hello{.rank = rendezvous.rank, .world_size = rendezvous.world_size};
    std::memcpy(hello.id.data(), treadle::hash_text(rendezvous.id).data(), hello.id.size());
    std::memcpy(hello.token.data(), treadle::hash_text(rendezvous.token).data(),
                hello.token.size());
    return hello;
  }
};

/// Bytes that move to or from one rank: their number, then they.
struct Transfer {
  Transfer(std::int64_t of_rank, bool sends, std::byte* of_bytes, std::size_t count)
      : rank(of_rank), is_sent(sends), bytes(of_bytes), size(count), header(count) {}

  std::int64_t rank;
  bool is_sent;
  std::byte* bytes;
  std::size_t size;
  std::uint64_t header;  ///< sent in front; of a transfer that is received, replaced by the other's
  std::size_t done = 0;  ///< bytes, with those of the header

  bool is_done() const { return done == sizeof header + size; }
};

/// Processes of one machine, each pair of which has a Unix socket. They meet in the folder of the
/// rendezvous, where each listens at a socket of its own.
///
/// A rank that fails closes its sockets, so the others fail as well. Their errors name the rank
/// whose socket they saw closed first, which need not be the one to blame.
class @Name@ final : public treadle::Communicator {
 public:
  explicit @Name@(const treadle::Config&) {}

 private:
  void do_connect(const treadle::Rendezvous& rendezvous) override {
    const std::lock_guard lock(call_);
    rendezvous_ = rendezvous;
    const Clock::time_point end = Clock::now() + rendezvous.timeout;
    const File folder(::open(rendezvous.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder.is_open())
      fail_by_system(rendezvous.folder.string() + " cannot be opened");
    const File listener = listen_in(folder);
    while (peers_.size() + 1 < static_cast<std::size_t>(rendezvous.world_size)) {
      for (std::int64_t lower = 0; lower < rendezvous.rank; ++lower) {
        if (!peers_.contains(lower))
          knock_at(folder, lower, end);
      }
      admit(File(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)),
            end);
      if (Clock::now() >= end)
        throw treadle::absent_ranks(rendezvous, absent());
      wait_a_moment();
    }
  }

  File listen_in(const File& folder) const {
    File listener = new_socket();
    const sockaddr_un address = address_in(folder, rendezvous_.rank);
    if (::bind(listener.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw treadle::taken_rank(rendezvous_);
    if (::listen(listener.number(), static_cast<int>(rendezvous_.world_size)) != 0)
      fail_by_system("a socket in " + rendezvous_.folder.string() + " cannot be listened at");
    return listener;
  }

  /// Connects to a rank, if it listens already.
  void knock_at(const File& folder, std::int64_t rank, Clock::time_point end) {
    File socket = new_socket();
    const sockaddr_un address = address_in(folder, rank);
    if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
        0)
      admit(std::move(socket), end);
  }

  /// Greets the other side of a socket, and keeps it where that is of this group.
  void admit(File socket, Clock::time_point end) {
    if (!socket.is_open())
      return;
    Hello mine = Hello::of(rendezvous_);
    Hello other;
    peers_[kStranger] = std::move(socket);
    std::vector<Transfer> greetings{{kStranger, true, bytes_of(mine), sizeof mine},
                                    {kStranger, false, bytes_of(other), sizeof other}};
    move(greetings, end);
    auto stranger = peers_.extract(kStranger);
    if (other.id != mine.id)
      throw treadle::foreign_group(rendezvous_, "its id is not \"" + rendezvous_.id + "\"");
    if (other.token != mine.token)
      throw treadle::foreign_group(rendezvous_, "its token is not this one's");
    if (other.world_size != mine.world_size)
      throw treadle::foreign_group(rendezvous_,
                                   "it has " + std::to_string(other.world_size) +
                                       " processes, this one " + std::to_string(mine.world_size));
    stranger.key() = other.rank;
    peers_.insert(std::move(stranger));
  }

  std::vector<std::int64_t> absent() const {
    std::vector<std::int64_t> ranks;
    for (std::int64_t rank = 0; rank < rendezvous_.world_size; ++rank) {
      if (rank != rendezvous_.rank && !peers_.contains(rank))
        ranks.push_back(rank);
    }
    return ranks;
  }

  void do_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::vector<Transfer> transfers;
    for (std::int64_t other = 0; other < world_size(); ++other) {
      std::byte* const place = all.data() + static_cast<std::size_t>(other) * mine.size();
      if (other == rank()) {
        std::copy(mine.begin(), mine.end(), place);
        continue;
      }
      transfers.emplace_back(other, true, const_cast<std::byte*>(mine.data()), mine.size());
      transfers.emplace_back(other, false, place, mine.size());
    }
    move_all(transfers);
  }

  void do_all_to_all(std::span<const std::byte> sent, std::span<const std::size_t> sent_sizes,
                     std::span<std::byte> received,
                     std::span<const std::size_t> received_sizes) override {
    std::vector<Transfer> transfers;
    std::byte* out = const_cast<std::byte*>(sent.data());
    std::byte* in = received.data();
    std::byte* own = out;
    std::byte* own_place = in;
    for (std::int64_t other = 0; other < world_size(); ++other) {
      const auto i = static_cast<std::size_t>(other);
      if (other == rank()) {
        own = out;
        own_place = in;
      } else {
        transfers.emplace_back(other, true, out, sent_sizes[i]);
        transfers.emplace_back(other, false, in, received_sizes[i]);
      }
      out += sent_sizes[i];
      in += received_sizes[i];
    }
    std::copy_n(own, sent_sizes[static_cast<std::size_t>(rank())], own_place);
    move_all(transfers);
  }

  void do_broadcast(std::span<std::byte> bytes, std::int64_t root) override {
    std::vector<Transfer> transfers;
    if (rank() != root)
      transfers.emplace_back(root, false, bytes.data(), bytes.size());
    for (std::int64_t other = 0; rank() == root && other < world_size(); ++other) {
      if (other != root)
        transfers.emplace_back(other, true, bytes.data(), bytes.size());
    }
    move_all(transfers);
  }

  // A call that waits looks at the flag. The others see the sockets closed.
  void do_abort() noexcept override {
    is_given_up_ = true;
    const std::lock_guard lock(call_);
    peers_.clear();
  }

  /// The transfers of one call.
  void move_all(std::vector<Transfer>& transfers) {
    const std::lock_guard lock(call_);
    expect_wanted();
    move(transfers, Clock::now() + rendezvous_.timeout);
  }

  /// Moves all of them at once, until they are done or the time is over.
  void move(std::vector<Transfer>& transfers, Clock::time_point end) {
    for (;;) {
      std::vector<pollfd> waiting;
      for (Transfer& one : transfers) {
        while (!one.is_done() && advance(one)) {
        }
        if (!one.is_done())
          waiting.push_back({peers_.at(one.rank).number(),
                             static_cast<short>(one.is_sent ? POLLOUT : POLLIN), 0});
      }
      if (waiting.empty())
        return;
      expect_wanted();
      if (Clock::now() >= end)
        fail_late(transfers);
      ::poll(waiting.data(), waiting.size(), kMoment);
    }
  }

  /// Moves as many bytes as it can. False: it must wait.
  bool advance(Transfer& one) {
    const bool is_header = one.done < sizeof one.header;
    std::byte* const begin = is_header ? bytes_of(one.header) + one.done
                                       : one.bytes + (one.done - sizeof one.header);
    const std::size_t count = (is_header ? 0 : one.size) + sizeof one.header - one.done;
    const int socket = peers_.at(one.rank).number();
    const ssize_t moved = one.is_sent ? ::send(socket, begin, count, MSG_NOSIGNAL)
                                      : ::recv(socket, begin, count, 0);
    if (moved < 0 && (errno == EAGAIN || errno == EINTR))
      return false;
    if (moved <= 0)
      fail_lost(one.rank, moved == 0 ? "its socket was closed"
                                     : std::generic_category().message(errno));
    one.done += static_cast<std::size_t>(moved);
    if (one.done == sizeof one.header && one.header != one.size)
      throw treadle::CommunicationError("rank " + std::to_string(one.rank) + " sent " +
                                            std::to_string(one.header) + " bytes, expected " +
                                            std::to_string(one.size) +
                                            "; all ranks must make the same calls",
                                        static_cast<int>(one.rank));
    return true;
  }

  [[noreturn]] void fail_lost(std::int64_t rank, const std::string& sign) const {
    expect_wanted();
    if (rank == kStranger)
      throw treadle::foreign_group(rendezvous_, "it refuses this one (" + sign + ")");
    throw treadle::lost_rank(rank, sign);
  }

  [[noreturn]] void fail_late(const std::vector<Transfer>& transfers) const {
    const auto late = std::find_if(transfers.begin(), transfers.end(),
                                   [](const Transfer& one) { return !one.is_done(); });
    if (late->rank == kStranger)
      throw treadle::absent_ranks(rendezvous_, absent());
    throw treadle::silent_rank(late->rank, rendezvous_.timeout);
  }

  [[noreturn]] static void fail_by_system(const std::string& what) {
    throw treadle::CommunicationError(what + ": " + std::generic_category().message(errno));
  }

  void expect_wanted() const {
    if (is_given_up_)
      throw treadle::aborted_group();
  }

  void wait_a_moment() const {
    expect_wanted();
    ::poll(nullptr, 0, kMoment);
  }

  template <typename Value>
  static std::byte* bytes_of(Value& value) {
    return reinterpret_cast<std::byte*>(&value);
  }

  static constexpr int kMoment = 10;  // milliseconds, between two looks at the flag
  static constexpr std::int64_t kStranger = -1;

  treadle::Rendezvous rendezvous_;
  std::map<std::int64_t, File> peers_;  ///< by rank
  std::atomic<bool> is_given_up_{false};
  std::mutex call_;  ///< held by connect() and by calls
};

}  // namespace

TREADLE_PLUGIN(registrar) {
  registrar.add<@Name@>("@name@");
}
