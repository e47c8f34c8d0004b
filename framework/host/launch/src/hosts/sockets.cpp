#include "hosts/sockets.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace treadle::launch {

Socket::~Socket() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

AddressList::AddressList(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  error_ =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &first_);
}

AddressList::~AddressList() {
  if (first_ != nullptr)
    ::freeaddrinfo(first_);
}

std::string AddressList::reason() const {
  return ::gai_strerror(error_);
}

}  // namespace treadle::launch
