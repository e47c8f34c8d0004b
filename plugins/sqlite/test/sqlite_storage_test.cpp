#include "sqlite_storage.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/search/local_storage_contract.h>
#include <treadle/testing/search/storage_contract.h>
#include <treadle/testing/search/wrong_system_calls.h>
#include <treadle/testing/support/scratch_folder.h>

#include "database_by_hand.h"

namespace treadle::sqlite {
namespace {

using ::testing::AllOf;
using testing::CaseName;
using ::testing::HasSubstr;
using testing::LocalStorageCase;
using testing::LocalStorageContract;
using testing::ScratchFolder;
using ::testing::StartsWith;
using testing::StorageCase;
using testing::StorageContract;

std::unique_ptr<StudyStorage> make(const std::filesystem::path& path) {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<StudyStorage>("sqlite", {{"location", path.string()}});
}

INSTANTIATE_TEST_SUITE_P(Sqlite, StorageContract,
                         ::testing::Values(StorageCase{"Sqlite",
                                                       [](const std::filesystem::path& folder) {
                                                         return make(folder / "studies");
                                                       }}),
                         CaseName());

INSTANTIATE_TEST_SUITE_P(
    Sqlite, LocalStorageContract,
    ::testing::Values(LocalStorageCase{
        "Sqlite",
        [](const std::filesystem::path& path, double patience) -> std::unique_ptr<StudyStorage> {
          return std::make_unique<SqliteStorage>(path, Patience::Duration(patience));
        }}),
    CaseName());

class SqliteStudies : public ::testing::Test {
 protected:
  /// By SQLite itself, as anybody would.
  std::string by_hand(const std::string& sql) const { return run_by_hand(path_, sql); }
  std::string error() const {
    try {
      make(path_)->studies();
    } catch (const StorageError& thrown) {
      return thrown.what();
    }
    return "none";
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_.path() / "studies.db";
};

TEST_F(SqliteStudies, TablesAreForAnyTool) {
  const auto storage = make(path_);
  storage->create("iris", {{"trials", 3}});
  storage->claim("iris", 4, "A", 100);
  storage->finish("iris", 4, "A", {{"loss", 0.5}});
  storage->claim("iris", 5, "A", 100);

  EXPECT_EQ(by_hand("PRAGMA journal_mode"), "wal|");
  EXPECT_EQ(by_hand("SELECT version FROM treadle_schema"), "1|");
  EXPECT_EQ(by_hand("SELECT name, description, ended, results FROM treadle_studies"),
            "iris|{\"trials\":3}|NULL|1|");
  EXPECT_EQ(by_hand("SELECT job, worker, sequence, result ->> 'loss' FROM treadle_jobs"),
            "4|A|1|0.5|5|A|NULL|NULL|");
}

TEST_F(SqliteStudies, TablesOfOthersStay) {
  by_hand("CREATE TABLE mine (a); INSERT INTO mine VALUES (7)");

  make(path_)->create("study", 1);

  EXPECT_EQ(by_hand("SELECT a FROM mine"), "7|");
}

TEST_F(SqliteStudies, AnotherVersionIsRefused) {
  make(path_)->create("study", 1);
  by_hand("UPDATE treadle_schema SET version = 2");

  EXPECT_EQ(error(), path_ +
                         ": has studies of version 2, and this Treadle knows version 1; use the "
                         "Treadle that the study was begun with, or another location");
}

TEST_F(SqliteStudies, ARowThatLacksATextIsDamage) {
  const auto storage = make(path_);
  storage->create("study", 1);
  storage->claim("study", 0, "A", 100);
  storage->finish("study", 0, "A", 7);
  for (const char* column : {"worker", "result"}) {
    by_hand("UPDATE treadle_jobs SET " + std::string(column) + " = NULL");
    try {
      make(path_)->results("study", 0);
      FAIL() << column;
    } catch (const StorageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("lacks a name or a result"));
    }
  }
}

TEST_F(SqliteStudies, AnotherFileIsRefusedAndStays) {
  std::ofstream(path_) << std::string(5000, 'x');

  EXPECT_EQ(error(), path_ +
                         ": SQLite: file is not a database; the file is something else: choose "
                         "another location");
  EXPECT_EQ(std::filesystem::file_size(path_), 5000U);
}

TEST_F(SqliteStudies, ADamagedDatabaseIsAnErrorWithAWayOut) {
  {
    const auto storage = make(path_);
    storage->create("study", std::string(100'000, 'x'));
  }
  {
    std::fstream file(path_, std::ios::in | std::ios::out);
    file.seekp(4096);
    file << std::string(4096 * 4, '\xff');
  }

  EXPECT_THAT(error(), AllOf(StartsWith(path_ + ": SQLite: database disk image is malformed; "),
                             HasSubstr(".recover")));
}

TEST_F(SqliteStudies, LeasesOfAnotherBootHavePassed) {
  const auto storage = make(path_);
  storage->create("study", 1);
  ASSERT_TRUE(storage->claim("study", 0, "A", 1e6));
  ASSERT_FALSE(storage->claim("study", 0, "B", 1e6));

  by_hand("UPDATE treadle_jobs SET boot = '00000000-0000-0000-0000-000000000000'");

  EXPECT_TRUE(storage->claim("study", 0, "B", 1e6));
  EXPECT_FALSE(storage->finish("study", 0, "A", 1));
}

TEST_F(SqliteStudies, AResultThatWasChangedByHandIsNamed) {
  const auto storage = make(path_);
  storage->create("study", 1);
  by_hand("UPDATE treadle_studies SET description = '{'");

  EXPECT_THROW(storage->description("study"), StorageError);
}

}  // namespace
}  // namespace treadle::sqlite
