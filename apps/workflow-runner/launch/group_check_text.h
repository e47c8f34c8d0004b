#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/launch/group_check.h>

#include "terminal/terminal.h"

namespace treadle::cli {

/// A table of hosts and their ranks, one of the links between hosts, the communicator's speed, and
/// sentences: problems and doubts, or that the group can train.
std::string group_check_text(const launch::GroupCheck& check, const Terminal& terminal);

/// {"hosts": [{"number", "first_rank", "processes", "address", and facts}], "links":
/// [{"from", "to", "milliseconds"}], "problems": […], "doubts": […]}, and where the processes have
/// reported, the members of GroupReport::json().
nlohmann::json group_check_json(const launch::GroupCheck& check);

}  // namespace treadle::cli
