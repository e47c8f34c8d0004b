#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <string>

#include <nlohmann/json.hpp>

#include <treadle/core/data/abilities/table_profile.h>
#include <treadle/host/catalog/workflow_document.h>
#include <treadle/host/run/runtime.h>

namespace treadle {

/// What is in the columns of the data that the document names, whatever else the document says.
/// Throws a UsageError where the data component cannot find out, and a DataError where the file is
/// no table.
TableProfile profile_data(const Runtime& runtime, const ResolvedWorkflow& workflow);

/// The slot `data` for a table as people name it: a file, read by the component whose schema claims
/// its ending in x-treadle-extensions, else as CSV; or a JSON object, which is the slot. Throws a
/// UsageError for an object that names no component.
nlohmann::json data_slot_for(const Runtime& runtime, const std::string& table);

/// The slot `data` for a table as people name it: a file, read by the component whose schema claims
/// its ending in x-treadle-extensions, else as CSV; or a JSON object, which is the slot. Throws a
/// UsageError for an object that names no component.
nlohmann::json data_slot_for(const Runtime& runtime, const std::string& table);

}  // namespace treadle
