#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "hosts/sockets.h"

namespace treadle::launch {

/// Messages between two supervisors: JSON objects, one a line. It never waits. A peer that is gone,
/// sends anything else or takes nothing closes it.
class MessageSocket {
 public:
  /// Of a connected socket. A peer whose machine is gone is noticed after `silence`, or 3 seconds.
  MessageSocket(Socket socket, std::chrono::milliseconds silence);
  /// Connects. Throws CommunicationError, also where nobody accepts within `patience`.
  static MessageSocket to(const Endpoint& endpoint, std::chrono::milliseconds patience,
                          std::chrono::milliseconds silence);

  bool is_open() const { return socket_.is_open(); }
  int descriptor() const { return socket_.descriptor(); }

  void send(const nlohmann::json& message);
  /// Reads all that has arrived, which next() returns later; so it notices a peer that is gone.
  void receive();
  /// The next message that has arrived, if any.
  std::optional<nlohmann::json> next();
  /// Waits for it. Nothing: the time is over, or the peer is gone.
  std::optional<nlohmann::json> await(std::chrono::milliseconds patience);
  void close() { socket_ = Socket(); }

 private:
  bool is_silent() const;

  Socket socket_;
  std::chrono::milliseconds silence_;
  std::string received_;
};

/// A socket that listens at the endpoint's port, on all interfaces. Throws CommunicationError where
/// another program has the port.
Socket listen_at(const Endpoint& endpoint);
std::uint16_t port_of(const Socket& socket);
/// A port of this host that is free now.
std::uint16_t free_port();

}  // namespace treadle::launch
