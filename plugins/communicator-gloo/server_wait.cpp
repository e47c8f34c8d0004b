#include "server_wait.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

namespace treadle::gloo_group {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kBetweenTries{20};
constexpr Milliseconds kPatience{1000};  // with one connection: a firewall may drop its packets
constexpr Milliseconds kBanner{100};     // in which a program that speaks first does so
constexpr const char* kOtherProgram =
    "another program listens there, which speaks first: choose another port, for all processes";

struct Socket {
  explicit Socket(int its_number) : number(its_number) {}
  ~Socket() {
    if (number >= 0)
      ::close(number);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  const int number;
};

/// Linux connects a socket to itself where the port that it is given happens to be the one it
/// calls.
bool is_own_end(int socket) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_size = sizeof own;
  socklen_t peer_size = sizeof peer;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
         own_size == peer_size && std::memcmp(&own, &peer, own_size) == 0;
}

std::string words_of_errno(int error) {
  return std::generic_category().message(error);
}

/// Why a connection to that address is of no use; empty: it is.
std::string obstacle(const addrinfo& address, Milliseconds patience) {
  const Socket socket(
      ::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int error = socket.number < 0 ? errno : 0;
  if (error == 0 && ::connect(socket.number, address.ai_addr, address.ai_addrlen) != 0)
    error = errno;
  pollfd one{socket.number, POLLOUT, 0};
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    if (::poll(&one, 1, static_cast<int>(patience.count())) <= 0)
      error = ETIMEDOUT;
    else if (::getsockopt(socket.number, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
      error = errno;
  }
  if (error == 0 && is_own_end(socket.number))
    error = ECONNREFUSED;
  if (error != 0)
    return words_of_errno(error);
  // libtorch's client takes such words for lengths, and its threads end the process.
  one.events = POLLIN;
  char byte = 0;
  if (::poll(&one, 1, static_cast<int>(kBanner.count())) <= 0)
    return "";
  return ::recv(socket.number, &byte, 1, 0) > 0 ? kOtherProgram : words_of_errno(ECONNRESET);
}

std::string obstacle(const std::string& host, std::uint16_t port, Milliseconds patience) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* addresses = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses);
  if (failed != 0)
    return ::gai_strerror(failed);
  std::string reason;
  for (const addrinfo* one = addresses; one != nullptr; one = one->ai_next) {
    reason = obstacle(*one, patience);
    if (reason.empty() || reason == kOtherProgram)
      break;
  }
  ::freeaddrinfo(addresses);
  return reason;
}

}  // namespace

std::string await_listener(const std::string& host, std::uint16_t port, const Waiting& waiting) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<Milliseconds>(waiting.end - std::chrono::steady_clock::now());
    std::string reason = obstacle(host, port, std::clamp(left, Milliseconds(1), kPatience));
    if (reason.empty() || reason == kOtherProgram || waiting.is_over())
      return reason;
    std::this_thread::sleep_for(kBetweenTries);
  }
}

}  // namespace treadle::gloo_group
