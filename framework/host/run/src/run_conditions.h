#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/runtime.h>

namespace treadle::internal {

/// The part of a resolved document that a run's bits depend on: without its name, its observers,
/// the number of workers, extensions, and the paths of files whose content is compared.
nlohmann::json document_identity(const PluginRegistry& registry, const nlohmann::json& resolved);

/// One phrase per difference, with its JSON pointer: "/seed was 5 and is now 6". Empty for none.
std::vector<std::string> document_differences(const nlohmann::json& before,
                                              const nlohmann::json& now);

/// Throws StorageError when the documents differ: a run that went on would be a mixture of two.
/// `place` is what was made with the document `before`.
void expect_same_document(const std::filesystem::path& place, const nlohmann::json& before,
                          const nlohmann::json& now, const RunFolder& folder);

/// What a run began with: environment.json, or what checkpoints and records of trainings hold of it
/// where that is lost, which `note` hears of. Nothing when no training has saved anything.
std::optional<nlohmann::json> beginning_of(const RunFolder& folder,
                                           const std::function<void(const std::string&)>& note);

}  // namespace treadle::internal
