#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>

#include <treadle/base/error.h>
#include <treadle/core/distributed/communicator.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::gloo_group {

inline std::unique_ptr<Communicator> make() {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<Communicator>("gloo");
}

/// A socket that listens at a port of this host.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    TREADLE_EXPECTS(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                        ::listen(socket_, 8) == 0 &&
                        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0,
                    "a port can be listened at");
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { ::close(socket_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int accept() const { return ::accept(socket_, nullptr, nullptr); }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

/// One at which nobody listens.
inline std::string free_address() {
  return Listener().address();
}

}  // namespace treadle::gloo_group
