#pragma once

#include <string_view>

namespace treadle {

/// This release: "0.1.0". From CMakeLists.txt, where it is written once.
std::string_view version();

}  // namespace treadle
