#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/compare/run_records.h>
#include "terminal/terminal.h"

/// What `runs list` prints.
namespace treadle::cli {

std::string run_listing(const std::vector<compare::RunRecord>& runs, const Terminal& terminal);
nlohmann::json run_listing_json(const std::vector<compare::RunRecord>& runs);

}  // namespace treadle::cli
