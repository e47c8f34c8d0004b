#pragma once

#include <string>

namespace treadle {

/// The name of this host, as others of its network call it; "localhost" where the system tells
/// none.
std::string host_name();

}  // namespace treadle
