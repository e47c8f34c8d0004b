#pragma once

#include <cstdint>
#include <string>

#include "guarded.h"

namespace treadle::gloo_group {

/// Waits until a program listens at the port that may be the server of a group, by connections that
/// end at once. Processes start in any order, and libtorch's client tries again only after a
/// second; where a program speaks first, as those for mail and logins do, it ends the process.
///
/// The reason of the last failure where the time is over, such as "Connection refused", or where it
/// is another program; empty: somebody listens.
std::string await_listener(const std::string& host, std::uint16_t port, const Waiting& waiting);

}  // namespace treadle::gloo_group
