#pragma once

#include <memory>

#include <gloo/transport/device.h>

#include <treadle/core/distributed/communicator.h>

namespace treadle::gloo_group {

/// What Gloo listens and connects with: the address by which others reach this process, or
/// loopback. Never that of the host's name, as in Gloo itself: Debian writes 127.0.1.1 for it.
std::shared_ptr<gloo::transport::Device> own_device(const Rendezvous& rendezvous);

}  // namespace treadle::gloo_group
