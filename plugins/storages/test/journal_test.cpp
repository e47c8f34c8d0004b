#include "journal.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/search/local_storage_contract.h>
#include <treadle/testing/search/storage_contract.h>
#include <treadle/testing/search/wrong_system_calls.h>
#include <treadle/testing/support/scratch_folder.h>

namespace treadle::storages {
namespace {

using testing::CaseName;
using testing::LocalStorageCase;
using testing::LocalStorageContract;
using testing::ScratchFolder;
using testing::StorageCase;
using testing::StorageContract;

constexpr double kLong = 1000;  // seconds: a lease that passes in no test

std::unique_ptr<StudyStorage> make(const std::filesystem::path& path) {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<StudyStorage>("journal", {{"location", path.string()}});
}

INSTANTIATE_TEST_SUITE_P(Journal, StorageContract,
                         ::testing::Values(StorageCase{"Journal",
                                                       [](const std::filesystem::path& folder) {
                                                         return make(folder / "studies");
                                                       }}),
                         CaseName());

INSTANTIATE_TEST_SUITE_P(Journal, LocalStorageContract,
                         ::testing::Values(LocalStorageCase{
                             "Journal",
                             [](const std::filesystem::path& path,
                                double patience) -> std::unique_ptr<StudyStorage> {
                               return std::make_unique<Journal>(path, Patience::Duration(patience));
                             }}),
                         CaseName());

class JournalStorage : public ::testing::Test {
 protected:
  std::string text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  std::string error() const {
    try {
      make(path_)->studies();
    } catch (const StorageError& thrown) {
      return thrown.what();
    }
    return "none";
  }
  /// A study whose job 0 A has ended.
  void given_study() const {
    const auto storage = make(path_);
    storage->create("study", {{"trials", 3}});
    storage->claim("study", 0, "A", 100);
    storage->finish("study", 0, "A", 7);
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_.path() / "studies.jsonl";
};

TEST_F(JournalStorage, HasALineForEachChange) {
  const auto storage = make(path_);
  storage->create("iris", {{"trials", 3}});
  storage->create("iris", 2);
  storage->claim("iris", 0, "A", 100);
  storage->claim("iris", 0, "B", 100);
  storage->release("iris", 0, "A");
  storage->claim("iris", 0, "B", 100);
  storage->finish("iris", 0, "B", {{"loss", 0.5}});
  storage->finish("iris", 0, "B", 1);
  storage->end("iris", "target");
  storage->end("iris", "budget");

  std::istringstream lines(text());
  std::vector<nlohmann::json> got;
  for (std::string line; std::getline(lines, line);) {
    got.push_back(nlohmann::json::parse(line));
    got.back().erase("boot");
    got.back().erase("until");
  }
  EXPECT_EQ(nlohmann::json(got), nlohmann::json::parse(R"([
    {"treadle_storage": 1},
    {"op": "create", "study": "iris", "description": {"trials": 3}},
    {"op": "lease", "study": "iris", "job": 0, "worker": "A"},
    {"op": "release", "study": "iris", "job": 0, "worker": "A"},
    {"op": "lease", "study": "iris", "job": 0, "worker": "B"},
    {"op": "finish", "study": "iris", "job": 0, "worker": "B", "result": {"loss": 0.5}},
    {"op": "end", "study": "iris", "how": "target"}])"));
}

// Wherever it was cut, the whole lines before count, and the journal goes on.
TEST_F(JournalStorage, ALastLineThatWasCutOffIsTakenBack) {
  given_study();
  const std::string whole = text();
  const std::size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    const auto storage = make(path_);
    storage->create("study", {{"trials", 3}});
    EXPECT_EQ(storage->results("study", 0).size(), 0U) << size;
    EXPECT_EQ(storage->finish("study", 0, "A", 7), size >= last_line) << size;
    if (size >= last_line) {
      EXPECT_EQ(text(), whole) << size;
    }
  }
}

TEST_F(JournalStorage, ALastLineWithoutItsBytesIsTakenBack) {
  given_study();
  const std::string whole = text();
  write(whole + std::string(100, '\0') + "\n");

  EXPECT_EQ(make(path_)->results("study", 0).size(), 1U);
  EXPECT_EQ(text(), whole);
}

TEST_F(JournalStorage, ADamagedLineIsNamedByItsPlace) {
  given_study();
  const std::string whole = text();
  const std::size_t second = whole.find('\n') + 1;
  const std::string deep = std::string(9999, '[') + std::string(9999, ']');
  const std::string job = R"("study": "study", "worker": "A", "job": )";
  const std::vector<std::string> lines{
      "{",
      "7",
      "{}",
      R"({"op": "fly", "study": "study"})",
      R"({"op": "lease", "study": "study"})",
      R"({"op": "release", "study": "other", "job": 0})",
      R"({"op": "lease", "boot": "b", "until": 1, )" + job + "\"x\"}",
      R"({"op": "finish", "result": 1, )" + job + "-1}",
      R"({"op": "finish", "result": 1, )" + job + "1e300}",
      R"({"op": "finish", "result": 1, )" + job + "18446744073709551615}",
      R"({"op": "create", "study": "deep", "description": )" + deep + "}"};
  for (const std::string& damaged : lines) {
    write(whole.substr(0, second) + damaged + "\n" + whole.substr(second));

    EXPECT_EQ(error(),
              path_ +
                  ":2: is no line of a journal of studies: it is damaged; delete this line "
                  "(a job whose result was in it is done again), or put back a copy of the "
                  "file");
  }
}

TEST_F(JournalStorage, ASecondResultOfAJobIsDamage) {
  given_study();
  const std::string whole = text();
  write(whole + whole.substr(whole.rfind('\n', whole.size() - 2) + 1));

  EXPECT_THAT(error(), ::testing::StartsWith(path_ + ":5: is no line of a journal"));
}

TEST_F(JournalStorage, WhatComesAfterTheResultOfAJobIsDamage) {
  given_study();
  const std::string whole = text();
  for (const std::string late :
       {R"({"op":"release","study":"study","job":0,"worker":"A"})",
        R"({"op":"lease","study":"study","job":0,"worker":"A","boot":"b","until":1})",
        R"({"op":"create","study":"study","description":1})"}) {
    write(whole + late + "\n");

    EXPECT_THAT(error(), ::testing::StartsWith(path_ + ":5: is no line of a journal")) << late;
  }
}

TEST_F(JournalStorage, ALeaseWhoseLineWasDeletedMayBeGivenBack) {
  given_study();
  write(text() + R"({"op":"release","study":"study","job":1,"worker":"A"})" + "\n");

  EXPECT_EQ(error(), "none");
}

TEST_F(JournalStorage, AStudyThatNobodyCanNameIsDamage) {
  write(
      "{\"treadle_storage\":1}\n"
      "{\"op\":\"create\",\"study\":\"a\\u0000b\",\"description\":1}\n");

  EXPECT_THAT(error(), ::testing::StartsWith("the storage has a study called \"a\\u0000b\""));
}

TEST_F(JournalStorage, AJobWhoseResultWasDeletedIsDoneAgain) {
  given_study();
  std::string whole = text();
  write(whole.substr(0, whole.rfind('\n', whole.size() - 2) + 1));

  const auto storage = make(path_);
  EXPECT_TRUE(storage->claim("study", 0, "A", 100));
  EXPECT_TRUE(storage->finish("study", 0, "A", 7));
}

TEST_F(JournalStorage, AnotherVersionIsRefused) {
  write("{\"treadle_storage\":2}\n{\"what\":\"ever\"}\n");

  EXPECT_EQ(error(), path_ +
                         ": has studies of version 2, and this Treadle knows version 1; use the "
                         "Treadle that the study was begun with, or another location");
}

TEST_F(JournalStorage, AnotherFileIsRefusedAndStays) {
  for (const std::string other : {"x", "{\"op_code\": 0}\n", "one\ntwo", "{", "{\"treadle\": 1}"}) {
    write(other);

    if (other == "{") {
      EXPECT_EQ(error(), "none") << "the beginning of a first line";
      continue;
    }
    EXPECT_EQ(error(),
              path_ +
                  ": is no journal of studies, whose first line is {\"treadle_storage\":1}; "
                  "choose another location");
    EXPECT_EQ(text(), other);
  }
}

TEST_F(JournalStorage, LeasesOfAnotherBootHavePassed) {
  write(
      "{\"treadle_storage\":1}\n"
      "{\"op\":\"create\",\"study\":\"study\",\"description\":1}\n"
      "{\"op\":\"lease\",\"study\":\"study\",\"job\":0,\"worker\":\"A\",\"boot\":\"another\","
      "\"until\":1e12}\n");

  EXPECT_TRUE(make(path_)->claim("study", 0, "B", 100));
}

}  // namespace
}  // namespace treadle::storages
