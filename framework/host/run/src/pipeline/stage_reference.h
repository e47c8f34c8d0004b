#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

/// "stage:pretrain/model.safetensors": a file of another stage's folder, or the folder itself.
namespace treadle::internal {

/// The stages that texts anywhere in `content` refer to.
std::set<std::string> stages_in(const nlohmann::json& content);

/// `content` with paths in place of all references: `folder` gives that of a stage.
nlohmann::json with_paths(nlohmann::json content,
                          const std::function<std::filesystem::path(const std::string&)>& folder);

/// "pretrain" and "model.safetensors"; the second is empty for the folder.
std::pair<std::string, std::string> parts_of_reference(const std::string& reference);

/// The references themselves, sorted.
std::set<std::string> references_in(const nlohmann::json& content);

}  // namespace treadle::internal
