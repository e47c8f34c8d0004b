#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/catalog/workflow_document.h>

/// Identities of a study and of its folder.
namespace treadle::internal {

/// Equal for two searches if the trials of one are those of the other.
nlohmann::json identity_of(const ResolvedWorkflow& workflow);

/// Identifies the folder of a study to other processes. Written by the first call.
std::string study_token(const std::filesystem::path& folder);

}  // namespace treadle::internal
