#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/automl/table_reading.h>

#include "terminal.h"

/// What `auto` takes a table for, as text for people and as JSON.
namespace treadle::cli {

/// The columns with type, missing values, levels and the reason of each; then the task.
std::string table_text(const automl::TableReading& table, const Terminal& terminal);

/// What predicts, as a line: "Ensemble  5 models, log_loss 0.0712 on rows they were not trained
/// on", or the best trial alone and why. `search` is that of the document.
std::string model_text(const nlohmann::json& result, const nlohmann::json& search);

nlohmann::json table_json(const automl::TableReading& table);

}  // namespace treadle::cli
