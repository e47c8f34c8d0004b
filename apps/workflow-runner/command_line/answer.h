#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace treadle::cli {

/// Writes a command's answer, or a part of it, to the standard output. Throws a StorageError where
/// nobody can read it.
void print(const std::string& text);
/// The same of a value, indented, with a new line at its end.
void print(const nlohmann::json& value);

}  // namespace treadle::cli
