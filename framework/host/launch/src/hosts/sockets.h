#pragma once

#include <netdb.h>

#include <string>

#include <treadle/host/launch/addresses.h>

namespace treadle::launch {

/// An open socket, closed when it goes.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// The addresses that a name stands for.
class AddressList {
 public:
  explicit AddressList(const Endpoint& endpoint);
  ~AddressList();
  AddressList(const AddressList&) = delete;
  AddressList& operator=(const AddressList&) = delete;

  /// Null: none is known.
  const addrinfo* first() const { return first_; }
  /// Why.
  std::string reason() const;

 private:
  addrinfo* first_ = nullptr;
  int error_ = 0;
};

}  // namespace treadle::launch
