#pragma once

#include <filesystem>

#include "command_line/command_line.h"

namespace treadle::cli {

/// Starts the processes that the line describes, each with `program`, and watches them to their
/// end. Throws AlreadyTold with their exit code unless that is 0. Called by the main thread of a
/// program without other threads.
void launch(const CommandLine& line, const std::filesystem::path& program);

}  // namespace treadle::cli
