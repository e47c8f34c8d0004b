#include "sqlite_data.h"

#include <sqlite3.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/abilities/source_hash.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>

#include "database_by_hand.h"

namespace treadle::sqlite {
namespace {

using ::testing::AllOf;
using testing::CaseName;
using testing::DataCase;
using testing::DataContract;
using ::testing::HasSubstr;
using testing::ScratchFolder;
using Json = nlohmann::json;

const testing::PluginUnderTest& plugin() {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

class SqliteRows : public ::testing::Test {
 protected:
  std::string by_hand(const std::string& sql) const { return run_by_hand(path_, sql); }

  std::unique_ptr<DataProvider> make(Json parameters) const {
    parameters["path"] = path_;
    return plugin().make<DataProvider>("sqlite", std::move(parameters));
  }
  std::unique_ptr<DataProvider> open(Json parameters, const OpenRequest& request = {}) const {
    auto data = make(std::move(parameters));
    data->open(request);
    return data;
  }
  std::string error_of(Json parameters) const {
    try {
      open(std::move(parameters));
    } catch (const DataError& error) {
      std::string text = error.what();
      for (std::size_t at = 0; (at = text.find(path_, at)) != text.npos;)
        text.replace(at, path_.size(), "DB");
      return text;
    }
    return "none";
  }

  static Batch batch(DataProvider& data) {
    const RowReader& rows = *data.ask<RowReader>();
    std::vector<std::int64_t> all(static_cast<std::size_t>(rows.rows()));
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<std::int64_t>(i);
    Batch out;
    rows.gather(all, out);
    return out;
  }
  static std::vector<double> values(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kDouble).contiguous();
    return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
  }
  static std::vector<double> features(DataProvider& data) {
    return values(batch(data).inputs[data.spec().input_index("features")]);
  }

  /// Houses whose keys are not in the order in which they were written.
  void given_houses() const {
    by_hand(
        "CREATE TABLE houses (id INTEGER PRIMARY KEY, area REAL, rooms INTEGER, town TEXT, sold "
        "TEXT, price REAL);"
        "INSERT INTO houses VALUES (3, 64, 2, 'Kiel', '2024-05-02', 162.5), (1, 88.25, 3, 'Ulm', "
        "'2024-01-31T12:00', 310), (2, NULL, 2, 'Bonn', NULL, 240)");
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_.path() / "house.db";
};

TEST_F(SqliteRows, ATableIsReadInTheOrderOfItsPrimaryKey) {
  given_houses();

  const auto data = open({{"table", "houses"},
                          {"columns", {"area", "rooms"}},
                          {"target", "price"},
                          {"missing", "nan"}});

  EXPECT_THAT(features(*data), ::testing::ElementsAre(88.25, 3, ::testing::IsNan(), 2, 64, 2));
  EXPECT_THAT(values(data->ask<RowReader>()->targets(0)), ::testing::ElementsAre(310, 240, 162.5));
}

TEST_F(SqliteRows, AKeyIsNoInputUnlessItIsNamed) {
  given_houses();
  const auto columns = [&](const Json& parameters) {
    std::string names;
    const auto data = open(parameters);
    for (const Column& column : data->spec().inputs[0].columns)
      names += column.name + " ";
    return names;
  };
  const std::string query = "SELECT id, area, rooms, price FROM houses WHERE area > ?1";

  EXPECT_EQ(columns({{"query", query}, {"parameters", {1}}, {"order_by", {"id"}}}), "area rooms ");
  EXPECT_EQ(columns({{"query", query},
                     {"parameters", {1}},
                     {"order_by", {"id"}},
                     {"columns", {"id", "area"}}}),
            "id area ");
}

TEST_F(SqliteRows, ATableWithoutAKeyIsReadByItsRowIds) {
  by_hand("CREATE TABLE t (a, b); INSERT INTO t (rowid, a, b) VALUES (9, 9, 0), (2, 2, 1)");

  EXPECT_THAT(features(*open({{"table", "t"}})), ::testing::ElementsAre(2, 9));
}

TEST_F(SqliteRows, CategoriesDatesAndClassesAreThoseOfOtherTables) {
  given_houses();

  const auto data = open({{"table", "houses"},
                          {"columns", {"town", "sold"}},
                          {"categorical", {"town"}},
                          {"dates", {"sold"}},
                          {"calendar", Json::array()},
                          {"target", "price"},
                          {"missing", "nan"}});

  EXPECT_THAT(values(batch(*data).inputs[data->spec().input_index("categories")]),
              ::testing::ElementsAre(2, 0, 1));
  // date -d 2024-01-31T12:00Z +%s, divided by 86400
  EXPECT_THAT(features(*data), ::testing::ElementsAre(19753.5, ::testing::IsNan(), 19845));
}

// Values that a text or a double would not keep.
TEST_F(SqliteRows, IntegersAndTextsAreExact) {
  by_hand(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, name, y);"
      "INSERT INTO t VALUES (1, 9007199254740993, 0), (2, 'a;DROP TABLE t', 1), (3, ' b ', 0)");

  const auto data = open({{"table", "t"}, {"columns", {"id"}}, {"target", "y"}});
  const SourceColumns* const texts = data->ask<SourceColumns>();

  ASSERT_NE(texts, nullptr);
  EXPECT_EQ(texts->texts({"name"})[0],
            (std::vector<std::string>{"9007199254740993", "a;DROP TABLE t", " b "}));
}

TEST_F(SqliteRows, ParametersAreBoundAndNeverPasted) {
  by_hand(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, s, y); INSERT INTO t VALUES (1, 'a', 5), (2, "
      "'x'' OR 1=1 --', 6), (3, NULL, 7)");
  const auto rows = [&](const Json& parameter) {
    return features(*open({{"query", "SELECT id, y FROM t WHERE s IS ?1 "},
                           {"parameters", {parameter}},
                           {"order_by", {"id"}},
                           {"columns", {"id"}}}));
  };

  EXPECT_THAT(rows("a"), ::testing::ElementsAre(1));
  EXPECT_THAT(rows("x' OR 1=1 --"), ::testing::ElementsAre(2));
  EXPECT_THAT(rows(nullptr), ::testing::ElementsAre(3));
}

TEST_F(SqliteRows, AnOrderThatIsNotCertainIsRefused) {
  by_hand("CREATE TABLE t (day, x, y); INSERT INTO t VALUES (1, 1, 1), (2, 2, 2), (2.0, 3, 3)");

  EXPECT_EQ(
      error_of({{"table", "t"}, {"order_by", {"day"}}}),
      "DB, table \"t\", row 3: has the same value of \"order_by\" (\"day\") as the row before "
      "it, so the order of the two is not certain; add columns to \"order_by\" until no two "
      "rows are the same in all of them");
  EXPECT_EQ(error_of({{"table", "t"}, {"order_by", {"day", "x"}}, {"columns", {"x"}}}), "none");
}

// Texts that a column's own collation takes for the same.
TEST_F(SqliteRows, KeysAreOrderedByTheirBytes) {
  by_hand(
      "CREATE TABLE t (k TEXT COLLATE NOCASE, y); INSERT INTO t VALUES ('a', 1), ('B', 2), "
      "('A', 3)");

  EXPECT_THAT(values(open({{"table", "t"}, {"order_by", {"k"}}, {"categorical", {"k"}}})
                         ->ask<RowReader>()
                         ->targets(0)),
              ::testing::ElementsAre(3, 2, 1));
}

TEST_F(SqliteRows, MistakesInAQueryAreErrorsInSqlitesWords) {
  given_houses();
  const auto query = [&](const std::string& sql, const Json& parameters = Json::array()) {
    return error_of({{"query", sql}, {"order_by", {"id"}}, {"parameters", parameters}});
  };

  EXPECT_EQ(error_of({{"table", "hauses"}}), "DB: SQLite: no such table: hauses");
  EXPECT_EQ(query("SELECT id FROM hauses"), "DB: SQLite: no such table: hauses");
  EXPECT_EQ(query("SELECT id FORM houses"),
            "DB: SQLite: near \"houses\": syntax error (at byte 15 of the statement)");
  EXPECT_EQ(query("SELECT id, price FROM houses WHERE price > ?1 AND area > ?2", {100}),
            "DB, the query: has 2 places for parameters (?1, ?2, …), and \"parameters\" has 1");
  EXPECT_EQ(query("SELECT area, price FROM houses"),
            "DB, the query: \"order_by\" names \"id\", which is no column of it (there are: "
            "\"area\", \"price\")");
  EXPECT_EQ(query("DELETE FROM houses RETURNING id"),
            "DB, the query: changes the database; write one SELECT");
  EXPECT_EQ(query("SELECT id, area, price FROM houses WHERE 0"),
            "DB, the query: no rows; look at the table, or at the conditions of the query");
  EXPECT_EQ(by_hand("SELECT count(*) FROM houses"), "3|");
}

TEST_F(SqliteRows, ABlobIsRefusedByColumnAndRow) {
  by_hand(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, x, y); INSERT INTO t VALUES (1, 2, 3), (2, "
      "x'00ff', 4)");

  EXPECT_THAT(error_of({{"table", "t"}}),
              HasSubstr("DB, table \"t\", row 2: column \"x\" is a blob; leave out the column, or "
                        "convert it in the query"));
  EXPECT_EQ(error_of({{"table", "t"}, {"columns", {"id"}}}), "none");
}

TEST_F(SqliteRows, AFileThatIsNoDatabaseIsNamed) {
  EXPECT_EQ(error_of({{"table", "t"}}), "DB: no such file; look at \"path\"");
  EXPECT_FALSE(std::filesystem::exists(path_)) << "reading makes no file";

  std::ofstream(path_) << std::string(5000, 'x');

  EXPECT_THAT(error_of({{"table", "t"}}), HasSubstr("DB: SQLite: file is not a database"));
}

TEST_F(SqliteRows, ATruncatedDatabaseIsAnErrorWithTheRow) {
  by_hand(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, x, y); WITH RECURSIVE n(i) AS (SELECT 1 UNION "
      "ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO t SELECT i, i, i FROM n");
  const auto size = std::filesystem::file_size(path_);
  std::filesystem::resize_file(path_, size / 2);

  EXPECT_THAT(error_of({{"table", "t"}}), HasSubstr("database disk image is malformed"));
}

// A page of a tree whose first child is another one's: SQLite alone would give its rows twice, and
// with more such pages without an end.
TEST_F(SqliteRows, PagesThatAreLinkedTwiceEndTheReading) {
  for (const std::string key : {"INTEGER PRIMARY KEY", "INT"}) {
    std::filesystem::remove(path_);
    by_hand("PRAGMA page_size = 512; CREATE TABLE t (id " + key +
            ", x, y); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)"
            " INSERT INTO t SELECT i, i, i FROM n");
    const long root = 512L * (std::stol(by_hand("SELECT rootpage FROM sqlite_master")) - 1);
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    const auto bytes = [&](long at, long count) {
      std::string read(static_cast<std::size_t>(count), ' ');
      file.seekg(at);
      file.read(read.data(), count);
      return read;
    };
    // "The Database File Format", 1.6: the pointers to the cells of an interior page begin at byte
    // 12, and a cell begins with the number of its child.
    const auto cell = [&](long number) {
      const std::string pointer = bytes(root + 12 + 2 * number, 2);
      return root + 256 * static_cast<unsigned char>(pointer[0]) +
             static_cast<unsigned char>(pointer[1]);
    };
    const std::string first = bytes(cell(0), 4);
    file.seekp(cell(1));
    file << first;
    file.close();

    EXPECT_THAT(error_of({{"table", "t"}}),
                HasSubstr("than the row before it, so the database or an index of it is damaged"));
  }
}

TEST_F(SqliteRows, ALockIsWaitedFor) {
  given_houses();
  sqlite3* writer = nullptr;
  sqlite3_open(path_.c_str(), &writer);
  ASSERT_EQ(sqlite3_exec(writer, "BEGIN EXCLUSIVE; DELETE FROM houses WHERE id = 3", nullptr,
                         nullptr, nullptr),
            SQLITE_OK);
  const std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    sqlite3_exec(writer, "COMMIT", nullptr, nullptr, nullptr);
  });

  EXPECT_EQ(open({{"table", "houses"}, {"columns", {"rooms"}}})->ask<RowReader>()->rows(), 2);
  sqlite3_close(writer);
}

TEST_F(SqliteRows, TheHashIsOfTheQueryAndItsRows) {
  by_hand(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, x, y); INSERT INTO t VALUES (1, 2, 3), (2, 3, 4)");
  const auto hash = [&](const std::string& query = "SELECT * FROM t") {
    return open({{"query", query}, {"order_by", {"id"}}})->ask<SourceHash>()->source_hash();
  };
  const std::string before = hash();

  EXPECT_EQ(hash(), before);
  EXPECT_NE(hash("SELECT * FROM t WHERE x > 0"), before);
  by_hand("UPDATE t SET x = '3' WHERE id = 2");
  EXPECT_NE(hash(), before) << "a text";
}

// As a writer that goes on while a training reads.
TEST_F(SqliteRows, RowsThatChangeUnderAReaderAreAnError) {
  by_hand(
      "CREATE TABLE t (id INTEGER PRIMARY KEY, x, y, name); INSERT INTO t VALUES (1, 2, 3, "
      "'a'), (2, 3, 4, 'b')");
  const auto data = open({{"table", "t"}, {"columns", {"x"}}, {"target", "y"}});
  const SourceColumns* const texts = data->ask<SourceColumns>();
  EXPECT_EQ(texts->texts({"name"})[0].size(), 2U);
  by_hand("INSERT INTO t VALUES (3, 4, 5, 'c')");

  try {
    texts->texts({"name"});
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("the rows changed while they were in use: 2 rows before, 3 now"));
  }
}

TEST_F(SqliteRows, AReaderHoldsNoLockWhenItHasReadAll) {
  given_houses();
  const auto data = open({{"table", "houses"}, {"columns", {"rooms"}}});

  EXPECT_EQ(by_hand("BEGIN EXCLUSIVE; DELETE FROM houses; COMMIT"), "");
}

TEST(SqliteDocument, NeedsATableOrAQueryWithAnOrder) {
  const auto refusal = [](const Json& parameters) -> std::string {
    try {
      Json complete = parameters;
      complete["path"] = "/nowhere/a.db";
      plugin().make<DataProvider>("sqlite", complete);
    } catch (const DocumentError& error) {
      return error.what();
    }
    return "none";
  };

  EXPECT_EQ(refusal(Json::object()), "none") << "refused when it is opened";
  EXPECT_THAT(refusal({{"query", "SELECT 1"}}), HasSubstr("needs \"order_by\", the columns"));
  EXPECT_THAT(refusal({{"query", "SELECT 1"}, {"table", "t"}}), HasSubstr("leave out one of them"));
  EXPECT_THAT(refusal({{"table", "t"}, {"parameters", {1}}}), HasSubstr("have no \"query\""));
}

/// A table with everything in it.
std::string contract_table() {
  static const ScratchFolder folder;
  const std::string path = folder.path() / "contract.db";
  if (!std::filesystem::exists(path))
    run_by_hand(path,
                "CREATE TABLE t (id INTEGER PRIMARY KEY, g, w, a, color, price, kind);"
                "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49)"
                " INSERT INTO t SELECT i, 'p' || (i % 7), '2020-01-' || (10 + i % 20),"
                " CASE WHEN i % 5 THEN i * 0.25 END, CASE i % 3 WHEN 0 THEN 'red' ELSE 'blue' END,"
                " i * 1.5, CASE i % 2 WHEN 0 THEN 'yes' ELSE 'no' END FROM n");
  return path;
}

DataCase contract_case(std::string name, const Json& parameters) {
  return {std::move(name), [=] {
            Json complete = {{"path", contract_table()},
                             {"table", "t"},
                             {"missing", "nan"},
                             {"categorical", {"color"}}};
            complete.update(parameters);
            return plugin().make<DataProvider>("sqlite", complete);
          }};
}

INSTANTIATE_TEST_SUITE_P(Sqlite, DataContract,
                         ::testing::Values(contract_case("Classes",
                                                         {{"columns", {"color", "a", "price"}}}),
                                           contract_case("Numbers", {{"columns", {"a", "color"}},
                                                                     {"target", "price"},
                                                                     {"group", "g"},
                                                                     {"time", "w"}})),
                         CaseName());

// Printed (README.md). Not run by default:
//   treadle-plugin-sqlite-tests --gtest_also_run_disabled_tests --gtest_filter='SqliteSpeed.*'
TEST(SqliteSpeed, DISABLED_RowsPerSecondBesideALoopByHand) {
  constexpr int kRows = 1'000'000;
  const ScratchFolder folder;
  const std::string path = folder.path() / "speed.db";
  run_by_hand(path,
              "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c, d, e, f, g, h, i);"
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
                  std::to_string(kRows) +
                  ") INSERT INTO t SELECT i, i * 0.1, i * 0.2, i * 0.3, i % 7, i * 1.5, i % "
                  "11, i * 0.7, i % 3, i * 0.9 FROM n");
  const auto seconds_of = [](auto&& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto loop = [&] {
    std::vector<float> values;
    sqlite3* database = nullptr;
    sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr);
    sqlite3_stmt* statement = nullptr;
    sqlite3_prepare_v2(database, "SELECT * FROM t ORDER BY id", -1, &statement, nullptr);
    while (sqlite3_step(statement) == SQLITE_ROW) {
      for (int i = 0; i < 10; ++i)
        values.push_back(static_cast<float>(sqlite3_column_double(statement, i)));
    }
    sqlite3_finalize(statement);
    sqlite3_close(database);
    EXPECT_EQ(values.size(), 10U * kRows);
  };
  const auto ours = [&] {
    const auto data = plugin().make<DataProvider>("sqlite", {{"path", path}, {"table", "t"}});
    data->open({});
    EXPECT_EQ(data->ask<RowReader>()->rows(), kRows);
  };
  for (int round = 0; round < 3; ++round)
    std::cout << "by hand " << kRows / seconds_of(loop) << " rows/s, sqlite "
              << kRows / seconds_of(ours) << " rows/s\n";
}

}  // namespace
}  // namespace treadle::sqlite
