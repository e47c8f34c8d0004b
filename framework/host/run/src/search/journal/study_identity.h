#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/catalog/workflow_document.h>

/// What a study is recognized by.
namespace treadle::internal {

/// What two searches must have in common for the trials of one to be those of the other.
nlohmann::json identity_of(const ResolvedWorkflow& workflow);

/// What other processes recognize the folder of a study by. Written by the first call.
std::string study_token(const std::filesystem::path& folder);

}  // namespace treadle::internal
