#pragma once

#include <filesystem>
#include <string>

/// How messages speak of files.
namespace treadle {

/// The path as a person in this working directory would write it: relative when the file lies below
/// it.
std::string shown_path(const std::filesystem::path& path);

}  // namespace treadle
