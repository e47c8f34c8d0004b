#pragma once

#include <cstddef>
#include <string>

namespace treadle::launch {

/// So many random bytes of the system's, as hexadecimal digits. Throws std::system_error.
std::string random_text(std::size_t bytes);

}  // namespace treadle::launch
