#pragma once

#include <functional>
#include <string>

#include <treadle/base/error.h>

namespace treadle {

/// What `action` throws says; "accepted" when it throws nothing.
inline std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace treadle
