#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/automl/table_reading.h>

#include "terminal/terminal.h"

/// What `auto` takes a table for, as text for people and as JSON.
namespace treadle::cli {

/// The columns with type, missing values, levels and the reason of each; then the task.
std::string table_text(const automl::TableReading& table, const Terminal& terminal);

nlohmann::json table_json(const automl::TableReading& table);

}  // namespace treadle::cli
