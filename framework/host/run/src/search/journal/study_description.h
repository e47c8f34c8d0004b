#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace treadle::internal {

/// The description that the first process of a study stores, for the processes that join.
struct StudyDescription {
  nlohmann::json identity;     ///< equal in the searches of all processes
  nlohmann::json document;     ///< resolved
  std::string folder;          ///< of the run
  std::string token;           ///< identifies that folder; empty: none
  nlohmann::json environment;  ///< as environment.json has it
};

nlohmann::json to_json(const StudyDescription& description);
/// Anybody may have written to the storage. Throws StorageError, which names the study, for JSON
/// that to_json() never returns.
StudyDescription read_study_description(const nlohmann::json& stored, const std::string& study);

}  // namespace treadle::internal
