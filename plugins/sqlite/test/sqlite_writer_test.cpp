#include "sqlite_writer.h"

#include <sqlite3.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/forked_process.h>
#include <treadle/testing/support/scratch_folder.h>

#include "database_by_hand.h"

namespace treadle::sqlite {
namespace {

using Type = TableWriter::Column::Type;

class SqliteTable : public ::testing::Test {
 protected:
  std::unique_ptr<TableWriter> make(nlohmann::json parameters = nlohmann::json::object()) const {
    static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
    parameters["path"] = path_;
    return plugin.make<TableWriter>("sqlite", std::move(parameters));
  }
  static void open(TableWriter& writer) {
    writer.open({{"row", Type::kInteger},
                 {"score", Type::kFloat},
                 {"loss", Type::kDouble},
                 {"a \"name\"", Type::kText}});
  }
  static void write(TableWriter& writer, std::int64_t first, std::size_t rows = 2) {
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < rows; ++i)
      numbers.push_back(first + static_cast<std::int64_t>(i));
    writer.write({numbers, std::vector<float>(rows, 0.5F), std::vector<double>(rows, 0.1),
                  std::vector<std::string>(rows, "Köln")});
  }
  void write_table(const nlohmann::json& parameters, std::int64_t first = 1) const {
    const auto writer = make(parameters);
    open(*writer);
    write(*writer, first);
    writer->close();
  }
  std::string by_hand(const std::string& sql) const { return run_by_hand(path_, sql); }

  const testing::ScratchFolder folder_;
  const std::string path_ = folder_.path() / "out.db";
};

TEST_F(SqliteTable, ValuesHaveTheirTypes) {
  write_table({});

  EXPECT_EQ(by_hand("SELECT *, typeof(row), typeof(score), typeof(\"a \"\"name\"\"\") FROM "
                    "predictions"),
            "1|0.5|0.1|Köln|integer|real|text|2|0.5|0.1|Köln|integer|real|text|");
}

TEST_F(SqliteTable, NothingIsToBeSeenBeforeTheEnd) {
  by_hand("CREATE TABLE other (a)");
  const auto writer = make();
  open(*writer);
  write(*writer, 1);

  EXPECT_EQ(by_hand("SELECT name FROM sqlite_master"), "other|");
  writer->close();
  EXPECT_EQ(by_hand("SELECT row FROM predictions"), "1|2|");
}

TEST_F(SqliteTable, AWriterWithoutAnEndLeavesWhatWasThere) {
  {
    const auto writer = make();
    open(*writer);
    write(*writer, 1);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));

  write_table({});
  {
    const auto writer = make({{"if_exists", "replace"}});
    open(*writer);
    write(*writer, 7);
  }
  EXPECT_EQ(by_hand("SELECT row FROM predictions"), "1|2|");
}

// More rows than SQLite keeps in memory: they are in the file when the process dies.
TEST_F(SqliteTable, AKilledWriterLeavesWhatWasThere) {
  write_table({});
  testing::ForkedProcess killed([&] {
    const auto writer = make({{"if_exists", "append"}});
    open(*writer);
    write(*writer, 3, 200'000);
    std::raise(SIGKILL);
  });
  static_cast<void>(killed.join());

  EXPECT_EQ(by_hand("SELECT row FROM predictions"), "1|2|");
  EXPECT_EQ(by_hand("PRAGMA integrity_check"), "ok|");
}

TEST_F(SqliteTable, ATableThatExistsIsRefusedReplacedOrExtended) {
  write_table({});
  try {
    write_table({});
    FAIL() << "no error";
  } catch (const StorageError& error) {
    EXPECT_THAT(
        error.what(),
        ::testing::HasSubstr(path_ + ": has a table \"predictions\" already; name another "
                                     "one, or set \"if_exists\" to \"replace\" or \"append\""));
  }

  write_table({{"if_exists", "append"}}, 3);
  EXPECT_EQ(by_hand("SELECT row FROM predictions"), "1|2|3|4|");
  write_table({{"if_exists", "replace"}}, 5);
  EXPECT_EQ(by_hand("SELECT row FROM predictions"), "5|6|");
  write_table({{"table", "Weird \"name\""}}, 7);
  EXPECT_EQ(by_hand("SELECT row FROM \"Weird \"\"name\"\"\""), "7|8|");
}

TEST_F(SqliteTable, NumbersThatAreNoneAreNull) {
  const auto writer = make();
  writer->open({{"x", Type::kDouble}});
  writer->write({std::vector<double>{std::numeric_limits<double>::quiet_NaN(),
                                     std::numeric_limits<double>::infinity()}});
  writer->close();

  EXPECT_EQ(by_hand("SELECT x FROM predictions"), "NULL|Inf|");
}

TEST_F(SqliteTable, AFileThatIsNoDatabaseStays) {
  std::ofstream(path_) << std::string(5000, 'x');
  const auto writer = make();

  EXPECT_THROW(open(*writer), StorageError);
  EXPECT_EQ(std::filesystem::file_size(path_), 5000U);
}

}  // namespace
}  // namespace treadle::sqlite
