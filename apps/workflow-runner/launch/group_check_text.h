#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/launch/group_check.h>

#include "terminal/terminal.h"

namespace treadle::cli {

/// A table of hosts, one of the links between them, problems and doubts.
std::string group_check_text(const launch::GroupCheck& check, const Terminal& terminal);

/// {"hosts": [{"number", "processes", "address", "cpu_capability", and facts}], "links": [{"from",
/// "to", "milliseconds"}], "problems": […], "doubts": […]}
nlohmann::json group_check_json(const launch::GroupCheck& check);

}  // namespace treadle::cli
