#pragma once

#include <filesystem>

#include "command_line/command_line.h"

namespace treadle::cli {

/// `launch --check`: starts the processes of the group with `rank_program`, which measures their
/// communicator instead of training, and prints what hosts and processes report. Throws AlreadyTold
/// where something keeps the group from training. Called as launch().
void check_launch(const CommandLine& line, const std::filesystem::path& rank_program);

}  // namespace treadle::cli
