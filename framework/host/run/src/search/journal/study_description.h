#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace treadle::internal {

/// What the process that makes a study stores about it, for the processes that join.
struct StudyDescription {
  nlohmann::json identity;     ///< what the searches of all have in common
  nlohmann::json document;     ///< resolved
  std::string folder;          ///< of the run
  std::string token;           ///< what that folder is recognized by; empty: it has none
  nlohmann::json environment;  ///< as environment.json has it
};

nlohmann::json to_json(const StudyDescription& description);
/// Whoever writes to the storage has written it. Throws StorageError, which names the study, for
/// what to_json() never returns.
StudyDescription read_study_description(const nlohmann::json& stored, const std::string& study);

}  // namespace treadle::internal
