#include "search/journal/study_description.h"

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

namespace treadle::internal {

nlohmann::json to_json(const StudyDescription& description) {
  return {{"identity", description.identity},
          {"document", description.document},
          {"folder", description.folder},
          {"token", description.token},
          {"environment", description.environment}};
}

StudyDescription read_study_description(const nlohmann::json& stored, const std::string& study) {
  const auto refuse = [&](const std::string& what) {
    throw StorageError("the study " + quote_text(study) + " of the storage has " + what +
                       ": another version of Treadle, or another program, has made it; choose "
                       "another name: --set search.study=NAME");
  };
  try {
    StudyDescription description{stored.at("identity"), stored.at("document"),
                                 stored.at("folder").get<std::string>(),
                                 stored.at("token").get<std::string>(), stored.at("environment")};
    if (!description.document.is_object() || !description.document.contains("search") ||
        !description.document.at("search").is_object())
      refuse("no document that searches");
    if (!description.environment.is_object())
      refuse("no environment");
    return description;
  } catch (const nlohmann::json::exception&) {
    refuse("no description that this version reads");
    throw;
  }
}

}  // namespace treadle::internal
