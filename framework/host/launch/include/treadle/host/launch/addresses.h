#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace treadle::launch {

/// A place that a process listens at: "node-1:29500", "[fd00::1]:29500".
struct Endpoint {
  /// Throws UsageError, which names `option`, for text that is none.
  static Endpoint parse(const std::string& text, const std::string& option);
  std::string text() const;

  std::string host;
  std::uint16_t port = 0;
};

/// The address by which other hosts reach this one, where they meet at `meeting`: that of the
/// interface that leads there. The name of this host itself often means 127.0.1.1 (/etc/hosts of
/// Debian), which would lead others to themselves: then that of the interface that leads outside.
/// "127.0.0.1" where the meeting is on loopback by an address, or by the name localhost. Throws
/// CommunicationError for an unknown host, or one to which no interface leads.
std::string own_address_towards(const Endpoint& meeting);

/// The addresses of all interfaces but loopback.
std::vector<std::string> own_addresses();

}  // namespace treadle::launch
