#pragma once

#include <exception>
#include <functional>
#include <map>
#include <string_view>

#include <treadle/base/error.h>

#include "command_line/command_line.h"

namespace treadle::cli {

/// Thrown by a handler whose answer has already said what is wrong: only the exit code is left.
struct AlreadyTold {
  ErrorKind kind = ErrorKind::kInternal;
};

/// Executes one command. Throws what goes wrong; what it prints is the command's answer.
using Handler = std::function<void(const CommandLine&)>;
using Handlers = std::map<std::string_view, Handler, std::less<>>;

/// What makes one of the two programs.
struct Program {
  bool has_tensors = false;  ///< executes the commands that need them, and no others
  Handlers handlers;
  Handler elsewhere;  ///< called for the other program's commands
};

/// Prints what went wrong, for people or as JSON; returns the exit code.
int report_failure(const std::exception_ptr& error, bool as_json);

/// Does what `main` of both programs does: understands the arguments, prints help or version, finds
/// the handler, turns exceptions into messages and exit codes.
int run_program(int argc, char** argv, const Program& program);

}  // namespace treadle::cli
