#pragma once

#include <filesystem>
#include <string>

/// Paths as text for messages.
namespace treadle {

/// The path as a person in this working directory would write it: relative when the file lies below
/// it.
std::string shown_path(const std::filesystem::path& path);

}  // namespace treadle
