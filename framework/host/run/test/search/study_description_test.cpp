#include "search/journal/study_description.h"

#include <gmock/gmock.h>

#include <treadle/base/error.h>

namespace treadle::internal {
namespace {

using ::testing::HasSubstr;

StudyDescription description() {
  return {.identity = {{"search", {{"seed", 1}}}},
          .document = {{"search", {{"trials", 3}}}},
          .folder = "/runs/iris",
          .token = "12",
          .environment = {{"treadle", "0.1"}}};
}

std::string refused_with(const char* key, const nlohmann::json& value) {
  nlohmann::json stored = to_json(description());
  stored[key] = value;
  try {
    read_study_description(stored, "iris");
  } catch (const StorageError& error) {
    return error.what();
  }
  return "none";
}

TEST(StudyDescriptions, AreReadAsTheyWereWritten) {
  const nlohmann::json stored = to_json(description());

  EXPECT_EQ(to_json(read_study_description(stored, "iris")), stored);
}

TEST(StudyDescriptions, OfOthersAreRefused) {
  EXPECT_THAT(refused_with("folder", 7), HasSubstr("the study \"iris\" of the storage has no "
                                                   "description that this version reads"));
  EXPECT_THAT(refused_with("token", nullptr), HasSubstr("no description"));
  EXPECT_THAT(refused_with("document", nlohmann::json::array()),
              HasSubstr("no document that searches"));
  EXPECT_THAT(refused_with("document", {{"search", 1}}), HasSubstr("no document that searches"));
  EXPECT_THAT(refused_with("environment", "here"), HasSubstr("no environment"));
  EXPECT_THROW(read_study_description(7, "iris"), StorageError);
  EXPECT_THROW(read_study_description(nlohmann::json::object(), "iris"), StorageError);
}

}  // namespace
}  // namespace treadle::internal
