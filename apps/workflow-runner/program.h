#pragma once

#include <functional>
#include <map>
#include <string_view>

#include "command_line.h"

namespace treadle::cli {

/// Executes one command. Throws what goes wrong; what it prints is the command's answer.
using Handler = std::function<void(const CommandLine&)>;
using Handlers = std::map<std::string_view, Handler, std::less<>>;

/// Does what `main` of both programs does: understands the arguments, prints help or version, finds
/// the handler, turns exceptions into messages and exit codes. `elsewhere` is called for a command
/// that has no handler here.
int run_program(int argc, char** argv, const Handlers& handlers, const Handler& elsewhere);

}  // namespace treadle::cli
