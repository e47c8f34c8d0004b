#include "hosts/message_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include <treadle/base/error.h>

namespace treadle::launch {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kLongestMessage = 256 * 1024;

void set_option(int socket, int level, int name, int value) {
  ::setsockopt(socket, level, name, &value, sizeof value);
}

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

/// 0, or the error.
int try_to_connect(const Socket& socket, const addrinfo& target, Clock::time_point end) {
  if (::connect(socket.descriptor(), target.ai_addr, target.ai_addrlen) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  pollfd ready{socket.descriptor(), POLLOUT, 0};
  if (::poll(&ready, 1, milliseconds_until(end)) <= 0)
    return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

/// Some times as long as between two signs of life of a connection.
constexpr milliseconds kLeastSilence{3000};

}  // namespace

MessageSocket::MessageSocket(Socket socket, milliseconds silence)
    : socket_(std::move(socket)), silence_(std::max(silence, kLeastSilence)) {
  const int number = socket_.descriptor();
  ::fcntl(number, F_SETFL, O_NONBLOCK);
  constexpr int kSecondsBetween = 1;
  const auto seconds =
      static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(silence).count());
  set_option(number, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(number, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(number, IPPROTO_TCP, TCP_KEEPIDLE, kSecondsBetween);
  set_option(number, IPPROTO_TCP, TCP_KEEPINTVL, kSecondsBetween);
  set_option(number, IPPROTO_TCP, TCP_KEEPCNT, std::max(1, seconds / kSecondsBetween));
  set_option(number, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(silence.count()));
}

MessageSocket MessageSocket::to(const Endpoint& endpoint, milliseconds patience,
                                milliseconds silence) {
  constexpr milliseconds kPause{100};
  const auto end = Clock::now() + patience;
  std::string reason;
  do {
    const AddressList targets(endpoint);
    reason = targets.first() == nullptr ? targets.reason() : reason;
    for (const addrinfo* one = targets.first(); one != nullptr; one = one->ai_next) {
      Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int error = socket.is_open() ? try_to_connect(socket, *one, end) : errno;
      if (error == 0)
        return MessageSocket(std::move(socket), silence);
      reason = std::generic_category().message(error);
    }
    std::this_thread::sleep_for(kPause);
  } while (Clock::now() < end);
  throw CommunicationError(endpoint.text() + ": host 0 cannot be reached (" + reason +
                           "); is \"launch --host 0\" running there, and does a firewall let its "
                           "port through?");
}

void MessageSocket::send(const nlohmann::json& message) {
  const std::string line =
      message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  // All messages of a launch together fit into the socket's buffer.
  if (is_open() && ::send(descriptor(), line.data(), line.size(), MSG_NOSIGNAL) !=
                       static_cast<ssize_t>(line.size()))
    close();
}

void MessageSocket::receive() {
  std::array<char, 16 * 1024> buffer{};
  while (is_open()) {
    const ssize_t count = ::recv(descriptor(), buffer.data(), buffer.size(), 0);
    if (count > 0)
      received_.append(buffer.data(), static_cast<std::size_t>(count));
    if (count < 0 && errno == EAGAIN && !is_silent())
      return;
    if (count == 0 || (count < 0 && errno != EINTR) || received_.size() > kLongestMessage)
      close();
  }
}

/// By the kernel's signs of life. Its own time-out begins anew with each message that is sent.
bool MessageSocket::is_silent() const {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(descriptor(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         milliseconds(std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv)) >= silence_;
}

std::optional<nlohmann::json> MessageSocket::next() {
  receive();
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos)
    return std::nullopt;
  nlohmann::json message =
      nlohmann::json::parse(received_.substr(0, end), nullptr, /*allow_exceptions=*/false);
  received_.erase(0, end + 1);
  if (message.is_object())
    return message;
  received_.clear();
  close();
  return std::nullopt;
}

std::optional<nlohmann::json> MessageSocket::await(milliseconds patience) {
  const auto end = Clock::now() + patience;
  while (true) {
    if (auto message = next())
      return message;
    const int left = milliseconds_until(end);
    if (!is_open() || left == 0)
      return std::nullopt;
    pollfd ready{descriptor(), POLLIN, 0};
    ::poll(&ready, 1, left);
  }
}

Socket listen_at(const Endpoint& endpoint) {
  Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in6 everywhere{};
  everywhere.sin6_family = AF_INET6;
  everywhere.sin6_port = htons(endpoint.port);
  sockaddr_in everywhere4{};
  everywhere4.sin_family = AF_INET;
  everywhere4.sin_port = everywhere.sin6_port;
  const sockaddr* address = reinterpret_cast<const sockaddr*>(&everywhere);
  socklen_t size = sizeof everywhere;
  if (socket.is_open()) {
    set_option(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  } else {  // a kernel without IPv6
    socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    address = reinterpret_cast<const sockaddr*>(&everywhere4);
    size = sizeof everywhere4;
  }
  set_option(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(socket.descriptor(), address, size) != 0 ||
      ::listen(socket.descriptor(), SOMAXCONN) != 0) {
    throw CommunicationError(
        "port " + std::to_string(endpoint.port) + " cannot be listened at (" +
        std::generic_category().message(errno) + "); choose another one for all hosts: --at " +
        Endpoint{endpoint.host,
                 static_cast<std::uint16_t>(endpoint.port < 65535 ? endpoint.port + 1 : 29500)}
            .text());
  }
  return socket;
}

std::uint16_t free_port() {
  return port_of(listen_at({}));
}

std::uint16_t port_of(const Socket& socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  ::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&own), &size);
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&own)->sin6_port
                                         : reinterpret_cast<sockaddr_in*>(&own)->sin_port);
}

}  // namespace treadle::launch
