#pragma once

#include <filesystem>

namespace treadle::testing {

/// A file of the source tree by its path from the tree's root, wherever the program was started:
/// below the folder that TREADLE_SOURCE names in the environment, or else below the nearest folder
/// above the program that has it and a CMakeLists.txt. Programs of Treadle's tree are compiled with
/// such paths, so that a second checkout finds them in the compiler's cache. A path that is
/// absolute, or that is nowhere found, is returned as it is.
std::filesystem::path source_path(const std::filesystem::path& path);

}  // namespace treadle::testing
