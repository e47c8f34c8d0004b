#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "records/run_records.h"
#include "terminal/terminal.h"

/// What `runs list` prints.
namespace treadle::cli {

std::string run_listing(const std::vector<RunRecord>& runs, const Terminal& terminal);
nlohmann::json run_listing_json(const std::vector<RunRecord>& runs);

}  // namespace treadle::cli
