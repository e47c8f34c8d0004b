#include <treadle/testing/support/source_path.h>

#include <cstdlib>

namespace treadle::testing {

namespace fs = std::filesystem;

fs::path source_path(const fs::path& path) {
  if (path.is_absolute())
    return path;
  if (const char* const source = std::getenv("TREADLE_SOURCE"))
    return fs::path(source) / path;
  std::error_code none;
  fs::path folder = fs::read_symlink("/proc/self/exe", none).parent_path();
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    // A build folder has folders of the same names, but no CMakeLists.txt.
    if (fs::exists(folder / "CMakeLists.txt", none) && fs::exists(folder / path, none))
      return folder / path;
  }
  return path;
}

}  // namespace treadle::testing
