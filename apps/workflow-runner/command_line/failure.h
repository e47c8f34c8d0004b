#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::cli {

/// What went wrong, as it is told to people and to programs.
struct Failure {
  ErrorKind kind = ErrorKind::kInternal;
  std::vector<std::string> lines;  ///< one per problem
  nlohmann::json problems;         ///< of a document: file, line, column, pointer, message

  int exit_code() const { return static_cast<int>(kind); }
  /// "workflow-runner: <line>", each with a line feed; wrapped where it is wider than `columns`.
  std::string text(std::size_t columns = static_cast<std::size_t>(-1)) const;
  /// {"error": {"kind", "exit_code", "message", "problems"}}
  nlohmann::json json() const;
};

/// The failure that an exception stands for. What is no treadle::Error is a mistake of ours, but
/// for running out of memory.
Failure explain(const std::exception_ptr& error);

/// "usage", "document" …: the word for a kind in JSON and in the documentation.
std::string kind_word(ErrorKind kind);

}  // namespace treadle::cli
