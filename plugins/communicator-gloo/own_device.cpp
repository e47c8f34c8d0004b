#include "own_device.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <treadle/base/error.h>

#include "meeting.h"

namespace treadle::gloo_group {
namespace {

/// Whether a host or address is this machine's alone: 127.0.0.0/8, ::1.
bool is_loopback(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0 || found == nullptr)
    return false;
  bool is_loopback = false;
  if (found->ai_family == AF_INET) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
    is_loopback = (ntohl(address->sin_addr.s_addr) >> 24) == 127;
  } else if (found->ai_family == AF_INET6) {
    const auto* address = reinterpret_cast<const sockaddr_in6*>(found->ai_addr);
    is_loopback = IN6_IS_ADDR_LOOPBACK(&address->sin6_addr);
  }
  ::freeaddrinfo(found);
  return is_loopback;
}

/// Threads that begin meanwhile preempt nobody when they wake. Gloo's device thread would preempt
/// the one whose message woke it, which holds the lock of a connection then; the device thread of
/// that process tries that lock until its time slice is over.
class WithoutPreemption {
 public:
  WithoutPreemption() : policy_(::sched_getscheduler(0)) { set(SCHED_BATCH); }
  ~WithoutPreemption() { set(policy_); }
  WithoutPreemption(const WithoutPreemption&) = delete;
  WithoutPreemption& operator=(const WithoutPreemption&) = delete;

 private:
  void set(int policy) const {
    const sched_param none{};
    if (policy_ == SCHED_OTHER)  // another one is somebody's choice
      ::sched_setscheduler(0, policy, &none);
  }

  const int policy_;
};

}  // namespace

std::shared_ptr<gloo::transport::Device> own_device(const Rendezvous& rendezvous) {
  const std::string own = rendezvous.own_address.empty() ? "127.0.0.1" : rendezvous.own_address;
  const std::string server = rendezvous.address.substr(0, rendezvous.address.rfind(':'));
  if (!rendezvous.own_address.empty() && !server.empty() && is_loopback(own) &&
      !is_loopback(server))
    throw CommunicationError(own + ": is an address of this host alone, but the group meets at " +
                             rendezvous.address +
                             "; give the address by which other hosts reach this one");
  const WithoutPreemption guard;
  try {
    return c10d::ProcessGroupGloo::createDeviceForHostname(own);
  } catch (const std::exception& error) {
    throw CommunicationError(own + ": cannot be listened at (" + words_of(error) +
                             "); give an address of this host");
  }
}

}  // namespace treadle::gloo_group
