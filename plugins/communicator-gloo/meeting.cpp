#include "meeting.h"

#include <sha2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <treadle/base/error.h>
#include <treadle/core/distributed/group_errors.h>

#include "server_wait.h"

namespace treadle::gloo_group {
namespace {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

constexpr std::chrono::milliseconds kPause{5};
// libtorch's client counts whole seconds, and gives up at once after none.
constexpr std::chrono::milliseconds kLeastTime{1000};
// Ranks that wait for each other began to wait within less.
constexpr std::chrono::milliseconds kSkew{200};

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

/// Tells tokens apart without giving them away: every process of the group can read the store.
std::string digest_of(const std::string& token) {
  std::array<char, SHA256_DIGEST_STRING_LENGTH> text{};
  SHA256Data(reinterpret_cast<const std::uint8_t*>(token.data()), token.size(), text.data());
  return text.data();
}

StorePointer open_file(const Rendezvous& rendezvous) {
  if (rendezvous.folder.empty())
    throw CommunicationError(
        "the launcher of these processes gives them no place to meet; set MASTER_ADDR and "
        "MASTER_PORT, an address and a free port of rank 0's host, or use the communicator mpi");
  if (!std::filesystem::is_directory(rendezvous.folder))
    throw CommunicationError(rendezvous.folder.string() +
                             ": the processes of the group meet in this folder, which is missing; "
                             "create it before they start");
  // -1: the file stays. A rank that leaves early would delete it under the others.
  return c10::make_intrusive<c10d::FileStore>((rendezvous.folder / "gloo").string(), -1);
}

/// "node-1:29500", "[fe80::1]:29500"
std::pair<std::string, std::uint16_t> host_and_port(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  std::uint16_t port = 0;
  if (colon != std::string::npos)
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  if (colon == std::string::npos || colon == 0 || port == 0)
    throw CommunicationError(address + ": is no address; expected host:port, as node-1:29500");
  std::string host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return {host, port};
}

/// Debian builds libtorch without libuv, whose store is the default from 2.4 on and throws there.
template <typename Options>
void use_plain_sockets(Options& options) {
  if constexpr (requires { options.useLibUV; })
    options.useLibUV = false;
}

CommunicationError no_server(const Rendezvous& rendezvous, const std::string& reason) {
  return CommunicationError(
      rendezvous.address + ": the group's server cannot be reached (" + reason +
          "); check that rank 0 was started there, and that no firewall is between",
      rendezvous.is_served ? CommunicationError::kUnknownRank : 0);
}

/// Somebody has taken the connection.
CommunicationError no_store(const Rendezvous& rendezvous, const std::string& reason) {
  return CommunicationError(
      rendezvous.address + ": does not answer as a group's meeting place (" + reason +
          "); another program may listen there: choose another port, for all processes",
      rendezvous.is_served ? CommunicationError::kUnknownRank : 0);
}

StorePointer open_server(const Rendezvous& rendezvous, const Waiting& waiting) {
  const auto [host, port] = host_and_port(rendezvous.address);
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = rendezvous.rank == 0 && !rendezvous.is_served;
  options.waitWorkers = false;
  options.timeout = std::max(rendezvous.timeout, kLeastTime);
  use_plain_sockets(options);
  if (!options.isServer) {
    if (const std::string reason = await_listener(host, port, waiting); !reason.empty())
      throw no_server(rendezvous, reason);
  }
  try {
    return c10::make_intrusive<c10d::TCPStore>(host, options);
  } catch (const std::exception& error) {
    if (options.isServer)
      throw CommunicationError(rendezvous.address + ": rank 0 cannot serve the group here (" +
                               words_of(error) + "); choose a free port of this host");
    throw no_store(rendezvous, words_of(error));
  }
}

std::string place_of(std::int64_t rank) {
  return "treadle/rank/" + std::to_string(rank);
}

std::string waiting_of(std::int64_t rank) {
  return "treadle/waiting/" + std::to_string(rank);
}

}  // namespace

std::string words_of(const std::exception& error) {
  std::string text = error.what();
  if (const auto* of_torch = dynamic_cast<const c10::Error*>(&error))
    text = of_torch->what_without_backtrace();
  text = text.substr(0, text.find('\n'));
  // "[../gloo/transport/tcp/pair.cc:598] Connection closed by peer"
  const std::size_t end = text.find("] ");
  return text.starts_with("[") && end != std::string::npos ? text.substr(end + 2) : text;
}

Meeting::Meeting(Rendezvous rendezvous, StorePointer store)
    : rendezvous_(std::move(rendezvous)), store_(std::move(store)) {}

Meeting Meeting::open(const Rendezvous& rendezvous, const Waiting& waiting) {
  StorePointer store =
      rendezvous.address.empty() ? open_file(rendezvous) : open_server(rendezvous, waiting);
  store->setTimeout(rendezvous.timeout);
  return Meeting(rendezvous, std::move(store));
}

// Whoever comes first writes down the group.
void Meeting::expect_own_group() {
  const auto is_ours = [&](const std::string& key, const std::string& mine) {
    const std::vector<std::uint8_t> first =
        store_->compareSet("treadle/" + key, {}, bytes_of(mine));
    return std::pair{first == bytes_of(mine), std::string(first.begin(), first.end())};
  };
  // With something in front: an empty value would count as none.
  const auto [has_id, id] = is_ours("id", "id " + rendezvous_.id);
  if (!has_id)
    throw foreign_group(rendezvous_, "its id is \"" +
                                         id.substr(std::min<std::size_t>(3, id.size())) +
                                         "\", this one's \"" + rendezvous_.id + "\"");
  const auto [has_token, token] = is_ours("token", digest_of(rendezvous_.token));
  if (!has_token)
    throw foreign_group(rendezvous_, "its token is another one");
  const auto [has_size, size] = is_ours("size", std::to_string(rendezvous_.world_size));
  if (!has_size)
    throw foreign_group(rendezvous_, "it has " + size + " processes, this one " +
                                         std::to_string(rendezvous_.world_size));
}

void Meeting::join(const Waiting& waiting) {
  expect_own_group();
  if (store_->add(place_of(rendezvous_.rank), 1) != 1)
    throw taken_rank(rendezvous_);
  std::vector<std::int64_t> absent = {0};
  while (!absent.empty()) {
    try {
      absent = absent_now();
    } catch (const std::exception&) {  // rank 0 has given up, and its server is gone with it
      throw absent_ranks(rendezvous_, absent);
    }
    if (!absent.empty() && waiting.is_over())
      throw absent_ranks(rendezvous_, absent);
    if (!absent.empty())
      std::this_thread::sleep_for(kPause);
  }
}

std::vector<std::int64_t> Meeting::absent_now() const {
  std::vector<std::int64_t> absent;
  for (std::int64_t rank = 0; rank < rendezvous_.world_size; ++rank) {
    if (!store_->check({place_of(rank)}))
      absent.push_back(rank);
  }
  return absent;
}

void Meeting::await_all(const Waiting& waiting) {
  store_->add("treadle/connected", 1);
  while (store_->add("treadle/connected", 0) < rendezvous_.world_size) {
    if (waiting.is_over())
      throw CommunicationError(meeting_place(rendezvous_) +
                               ": not all processes of the group could connect to each other "
                               "within " +
                               seconds_text(rendezvous_.timeout) + "; see their own errors");
    std::this_thread::sleep_for(kPause);
  }
}

Blame Meeting::blame(const Blame& mine) {
  const std::string text = std::to_string(mine.rank) + (mine.is_silent ? " silent" : " gone");
  const std::vector<std::uint8_t> first = store_->compareSet("treadle/blame", {}, bytes_of(text));
  std::istringstream words(std::string(first.begin(), first.end()));
  Blame stands;
  std::string how;
  words >> stands.rank >> how;
  stands.is_silent = how == "silent";
  return stands;
}

std::int64_t Meeting::last_in_chain(std::int64_t other) {
  store_->set(waiting_of(rendezvous_.rank), bytes_of(std::to_string(other)));
  std::this_thread::sleep_for(kSkew);
  std::int64_t last = other;
  for (std::int64_t step = 0; step < rendezvous_.world_size; ++step) {
    if (!store_->check({waiting_of(last)}))
      return last;
    const std::vector<std::uint8_t> next = store_->get(waiting_of(last));
    last = std::stoll(std::string(next.begin(), next.end()));
  }
  return other;  // they wait for each other: calls differ
}

StorePointer Meeting::store() const {
  return c10::make_intrusive<c10d::PrefixStore>("treadle/gloo", store_);
}

}  // namespace treadle::gloo_group
