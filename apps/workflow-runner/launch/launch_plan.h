#pragma once

#include <treadle/host/launch/supervisor.h>

#include "command_line/command_line.h"

namespace treadle::cli {

/// The options of `launch`, without the command that its processes execute. Throws UsageError.
launch::LaunchPlan launch_plan(const CommandLine& line);

}  // namespace treadle::cli
