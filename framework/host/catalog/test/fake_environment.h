#pragma once

#include <map>
#include <string>
#include <utility>

#include <treadle/host/catalog/search_path.h>

namespace treadle {

/// An environment with these variables and no other.
inline EnvironmentReader environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

}  // namespace treadle
