#include <treadle/base/path_words.h>

#include <system_error>

namespace treadle {

std::string shown_path(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error || !path.is_absolute())
    return path.string();
  const std::filesystem::path relative = path.lexically_relative(here);
  const bool below = !relative.empty() && *relative.begin() != "..";
  return below ? relative.string() : path.string();
}

}  // namespace treadle
