#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include <treadle/base/error.h>

namespace treadle::engine {

/// What one process of a group has thrown, for the others.
struct ProcessFailure {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
};

ProcessFailure failure_of(const std::exception_ptr& error);

/// An error of another process is of the same kind here.
[[noreturn]] void throw_again(const ProcessFailure& failure, std::int64_t rank);

}  // namespace treadle::engine
