#pragma once

#include <memory>

#include <gloo/transport/device.h>

#include <treadle/core/distributed/communicator.h>

namespace treadle::gloo_group {

/// The socket address of Gloo: the one by which others reach this process, or loopback. Never that
/// of the host's name, Gloo's own choice: Debian writes 127.0.1.1 for it.
std::shared_ptr<gloo::transport::Device> own_device(const Rendezvous& rendezvous);

}  // namespace treadle::gloo_group
