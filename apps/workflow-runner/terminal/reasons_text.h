#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "terminal/terminal.h"

/// What `evaluate --explain` finds, as text for people.
namespace treadle::cli {

/// Of each target the importances, the worst rows and the subgroups, after a line that names the
/// rows. `reasons`: as explain_run() has them.
std::string reasons_text(const nlohmann::json& reasons, const Terminal& terminal);

}  // namespace treadle::cli
