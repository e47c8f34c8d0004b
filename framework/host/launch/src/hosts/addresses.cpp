#include <treadle/host/launch/addresses.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <system_error>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "hosts/sockets.h"

namespace treadle::launch {
namespace {

/// "10.0.0.1"; empty for other kinds of addresses.
std::string numeric(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  if (address->sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (bytes == nullptr ||
      ::inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr)
    return {};
  return text.data();
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

/// By the kernel's routes; nothing is sent. Empty: no route.
std::string source_towards(const addrinfo& target) {
  const Socket socket(::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (!socket.is_open() || ::connect(socket.descriptor(), target.ai_addr, target.ai_addrlen) != 0 ||
      ::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return {};
  return numeric(reinterpret_cast<const sockaddr*>(&own));
}

/// Of the interface with the default route, or of the first one.
std::string source_outwards() {
  // Of a block that is for documentation: nobody has it, so the default route leads there.
  const AddressList anywhere({"192.0.2.1", 9});
  const std::string address =
      anywhere.first() == nullptr ? std::string() : source_towards(*anywhere.first());
  if (!address.empty() && !is_loopback(address))
    return address;
  const std::vector<std::string> all = own_addresses();
  return all.empty() ? std::string() : all.front();
}

/// Somebody who wrote these means loopback.
bool means_loopback(const std::string& host) {
  return host == "localhost" || is_loopback(host);
}

}  // namespace

Endpoint Endpoint::parse(const std::string& text, const std::string& option) {
  const auto fail = [&] {
    throw UsageError(option + ": " + quote_text(text) +
                     " is no address; expected HOST:PORT with a port from 1 to 65535, such as "
                     "node-1:29500");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    fail();
  Endpoint endpoint;
  endpoint.host = text.substr(0, colon);
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
  if (error != std::errc() || stopped != end || endpoint.port == 0)
    fail();
  const bool has_brackets = endpoint.host.front() == '[' && endpoint.host.back() == ']';
  if (has_brackets) {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  } else if (endpoint.host.find(':') != std::string::npos) {
    fail();  // an IPv6 address without brackets: which colon is the port's?
  }
  if (endpoint.host.empty())
    fail();
  return endpoint;
}

std::string Endpoint::text() const {
  const bool needs_brackets = host.find(':') != std::string::npos;
  return (needs_brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string own_address_towards(const Endpoint& meeting) {
  const AddressList targets(meeting);
  if (targets.first() == nullptr) {
    throw CommunicationError(quote_text(meeting.host) + " is no host that is known here (" +
                             targets.reason() +
                             "); name it by its address, or add it to /etc/hosts or DNS");
  }
  for (const addrinfo* target = targets.first(); target != nullptr; target = target->ai_next) {
    std::string address = source_towards(*target);
    if (address.empty())
      continue;
    if (is_loopback(address) && !means_loopback(meeting.host))
      address = source_outwards();
    if (!address.empty())
      return address;
  }
  throw CommunicationError("no network interface leads to " + quote_text(meeting.host) +
                           "; is this host connected to its network?");
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0)
    return addresses;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, ::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_LOOPBACK) != 0 ||
        (one->ifa_flags & IFF_UP) == 0)
      continue;
    std::string address = numeric(one->ifa_addr);
    if (!address.empty() && !address.starts_with("fe80:"))  // of one link alone
      addresses.push_back(std::move(address));
  }
  return addresses;
}

}  // namespace treadle::launch
