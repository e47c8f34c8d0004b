// With a server of its own, which the program starts; skipped where PostgreSQL is not installed
// (scripts/setup --servers installs it).
#include "postgresql_data.h"

#include <chrono>
#include <csignal>
#include <cstdint>
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
#include <treadle/core/data/row_reader.h>
#include <treadle/core/data/table_writer.h>
#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>

#include "test_server.h"

namespace treadle::postgresql {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
using Json = nlohmann::json;

const testing::PluginUnderTest& data_plugin() {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

class PostgresqlRows : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer::programs())
      GTEST_SKIP() << "PostgreSQL is not installed: scripts/setup --servers installs it";
    place_ = SharedServer::server().place(folder_.path().filename());
  }

  std::string by_hand(const std::string& sql) const {
    return SharedServer::server().by_hand(sql, place_);
  }
  std::unique_ptr<DataProvider> open(Json parameters) const {
    parameters["connection"] = place_;
    auto data = data_plugin().make<DataProvider>("postgresql", std::move(parameters));
    data->open({});
    return data;
  }
  std::string error_of(Json parameters) const {
    try {
      open(std::move(parameters));
    } catch (const DataError& error) {
      std::string text = error.what();
      const std::string server =
          "PostgreSQL \"postgres\" at " + SharedServer::server().folder().string();
      for (std::size_t at = 0; (at = text.find(server, at)) != text.npos;)
        text.replace(at, server.size(), "DB");
      return text;
    }
    return "none";
  }

  static std::vector<double> features(DataProvider& data) {
    const RowReader& rows = *data.ask<RowReader>();
    std::vector<std::int64_t> all(static_cast<std::size_t>(rows.rows()));
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<std::int64_t>(i);
    Batch out;
    rows.gather(all, out);
    const at::Tensor flat =
        out.inputs[data.spec().input_index("features")].to(at::kDouble).contiguous();
    return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
  }

  const testing::ScratchFolder folder_;  // for its name
  std::string place_;
};

TEST_F(PostgresqlRows, EveryTypeOfNumberIsReadInTheOrderOfThePrimaryKey) {
  by_hand(
      "CREATE TABLE t (b bool, i2 int2, i4 int4, f4 float4, f8 float8, n numeric(20, 3), id int8 "
      "PRIMARY KEY, y int);"
      "INSERT INTO t VALUES (true, -2, 70000, 0.5, -1e-3, 12345.125, 9, 0),"
      " (false, 32767, -1, -3.25, 1e100, -0.5, -5, 1), (NULL, NULL, NULL, 'nan', NULL, NULL, 2, "
      "1)");

  const auto data =
      open({{"table", "t"}, {"missing", "nan"}, {"columns", {"b", "i2", "i4", "f4", "n", "id"}}});

  EXPECT_THAT(features(*data), ElementsAre(0, 32767, -1, -3.25, -0.5, -5, IsNan(), IsNan(), IsNan(),
                                           IsNan(), IsNan(), 2, 1, -2, 70000, 0.5, 12345.125, 9));
}

TEST_F(PostgresqlRows, DatesAndTimestampsAreTimes) {
  by_hand(
      "CREATE TABLE t (id int PRIMARY KEY, d date, at timestamp, tz timestamptz, y int);"
      "INSERT INTO t VALUES (1, '2024-01-31', '2024-01-31 12:00', '2024-01-31 12:00+06', 0),"
      " (2, '1969-12-31', '1969-12-31 18:00', '1970-01-01 00:00+00', 1)");

  const auto data = open({{"table", "t"},
                          {"columns", {"d", "at", "tz"}},
                          {"dates", {"d", "at", "tz"}},
                          {"calendar", Json::array()}});

  // date -d 2024-01-31T12:00Z +%s, divided by 86400
  EXPECT_THAT(features(*data), ElementsAre(19753, 19753.5, 19753.25, -1, -0.25, 0));
}

TEST_F(PostgresqlRows, TextsEnumerationsAndIdentifiersAreTexts) {
  by_hand(
      "CREATE TYPE mood AS ENUM ('sad', 'ok');"
      "CREATE TABLE t (id int PRIMARY KEY, m mood, v varchar(9), c char(4), u uuid, j jsonb, big "
      "int8, y int);"
      "INSERT INTO t VALUES (1, 'ok', 'Köln', 'ab', '00000000-0000-0000-0000-000000000001', '{}', "
      "9007199254740993, 1), (2, 'sad', 'b', 'c', '00000000-0000-0000-0000-000000000002', '[]', 2, "
      "2)");

  const auto data = open({{"table", "t"}, {"columns", {"id"}}});
  const auto texts = data->ask<SourceColumns>()->texts({"m", "v", "c", "u", "j", "big"});

  using List = std::vector<std::string>;
  EXPECT_EQ(texts[0], (List{"ok", "sad"}));
  EXPECT_EQ(texts[1], (List{"Köln", "b"}));
  EXPECT_EQ(texts[2], (List{"ab", "c"}));
  EXPECT_EQ(texts[3][1], "00000000-0000-0000-0000-000000000002");
  EXPECT_EQ(texts[4], (List{"{}", "[]"}));
  EXPECT_EQ(texts[5], (List{"9007199254740993", "2"}));
}

TEST_F(PostgresqlRows, ParametersAreBoundAndNeverPasted) {
  by_hand(
      "CREATE TABLE t (id int PRIMARY KEY, s text, x float8, ok bool, y int);"
      "INSERT INTO t VALUES (1, 'a', 0.5, true, 5), (2, 'x'' OR 1=1 --', 2, true, 6)");
  const auto rows = [&](const Json& parameters) {
    return features(*open({{"query", "SELECT id, y FROM t WHERE s = $1 AND x < $2 AND ok = $3;"},
                           {"parameters", parameters},
                           {"order_by", {"id"}},
                           {"columns", {"id"}}}));
  };

  EXPECT_THAT(rows({"a", 0.75, true}), ElementsAre(1));
  EXPECT_THAT(rows({"x' OR 1=1 --", 3, true}), ElementsAre(2));
}

TEST_F(PostgresqlRows, MistakesInAQueryAreErrorsInTheServersWords) {
  by_hand(
      "CREATE TABLE t (id int PRIMARY KEY, x float8, y int, raw bytea, list int[]);"
      "CREATE TABLE keyless (x int, y int); INSERT INTO keyless VALUES (1, 1), (1, 2);"
      "INSERT INTO t VALUES (1, 2, 3, '\\x00', '{1}')");
  const auto query = [&](const std::string& sql, const Json& parameters = Json::array()) {
    return error_of({{"query", sql}, {"order_by", {"id"}}, {"parameters", parameters}});
  };

  EXPECT_EQ(error_of({{"table", "tt"}}),
            "DB: relation \"tt\" does not exist (at character 15 of the statement)");
  EXPECT_EQ(query("SELECT id FORM t"),
            "DB: syntax error at or near \"t\" (at character 16 of the statement)");
  EXPECT_EQ(query("SELECT id, y FROM t WHERE x = $1 AND y = $2", {1}),
            "DB, the query: has 2 places for parameters ($1, $2, …), and \"parameters\" has 1");
  EXPECT_EQ(query("SELECT id, x, y FROM t WHERE y = $1", {"seven"}),
            "DB: invalid input syntax for type integer: \"seven\"");
  EXPECT_EQ(query("SELECT x, y FROM t"),
            "DB, the query: \"order_by\" names \"id\", which is no column of it (there are: \"x\", "
            "\"y\")");
  EXPECT_THAT(query("DELETE FROM t RETURNING id, x, y"), HasSubstr("DB: syntax error"));
  EXPECT_THAT(error_of({{"table", "keyless"}}), HasSubstr("has no primary key"));
  EXPECT_THAT(error_of({{"table", "keyless"}, {"order_by", {"x"}}, {"columns", {"x"}}}),
              HasSubstr("row 2: has the same value of \"order_by\" (\"x\") as the row before it"));
  for (const std::string column : {"raw", "list"})
    EXPECT_THAT(error_of({{"table", "t"}, {"columns", {column}}, {"target", "y"}}),
                HasSubstr("row 1: column \"" + column + "\" has a type that no column of a table"));
  EXPECT_EQ(error_of({{"table", "t"}, {"columns", {"x"}}, {"target", "y"}}), "none");
  EXPECT_EQ(by_hand("SELECT count(*) FROM t"), "1|");
}

TEST_F(PostgresqlRows, RowsThatChangeUnderAReaderAreAnError) {
  by_hand(
      "CREATE TABLE t (id int PRIMARY KEY, x int, y int); INSERT INTO t VALUES (1, 2, 3), (2, "
      "3, 4)");
  const auto data = open({{"table", "t"}});
  by_hand("DELETE FROM t WHERE id = 2");

  try {
    data->ask<SourceColumns>()->texts({"id"});
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("the rows changed while they were in use: 2 rows before, 1 now"));
  }
}

/// Takes rows as text, and calls `work` before a row of that number.
class Rows final : public table::RowSink {
 public:
  explicit Rows(std::size_t columns) : RowSink(columns) {}
  std::string text;

 private:
  void do_begin_row() override {}
  void do_text(std::size_t, std::string_view value) override { text += std::string(value) + "|"; }
  void do_missing(std::size_t) override { text += "NULL|"; }
  void do_end_row() override {}
  void do_bad_row(const std::string& sentence) override { text += sentence; }
};

PostgresqlQuery series(const std::string& connection) {
  table::QueryOptions options;
  options.query = "SELECT i, i * 2 AS x FROM numbers";
  options.order_by = {"i"};
  return {connection, options};
}

TEST_F(PostgresqlRows, ReadingGoesOnAtABookmark) {
  by_hand("CREATE TABLE numbers AS SELECT generate_series(1, 10000) AS i");
  PostgresqlSource source(series(place_), nullptr);
  Rows all(source.columns().names.size());
  source.read(all);
  source.restart();
  Rows parts(2);
  EXPECT_TRUE(source.read(parts, 4097));
  const auto place = source.bookmark();
  PostgresqlSource other(series(place_), nullptr);
  other.columns();
  other.go_to(place);
  EXPECT_FALSE(other.read(parts, 100'000));

  EXPECT_EQ(parts.text, all.text);
  EXPECT_EQ(place.position, 4097);
  EXPECT_EQ(source.hash(), PostgresqlSource(series(place_), nullptr).hash());
}

// SIGINT closes the connections, SIGQUIT is a crash.
TEST_F(PostgresqlRows, AServerThatIsRestartedIsWaitedForAndTheRowsAreTheSame) {
  TestServer server;
  server.by_hand("CREATE TABLE numbers AS SELECT generate_series(1, 20000) AS i");
  PostgresqlSource source(series(server.location()), nullptr);
  Rows expected(source.columns().names.size());
  source.read(expected);
  const std::string hash = source.hash();
  for (const int how : {SIGINT, SIGQUIT}) {
    source.restart();
    Rows got(2);
    ASSERT_TRUE(source.read(got, 5000));
    server.stop(how);
    std::jthread reader([&] { source.read(got); });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    server.start();  // by this thread: the server ends with the one that has started it
    reader.join();

    EXPECT_EQ(got.text, expected.text);
    EXPECT_EQ(source.hash(), hash);
  }
}

TEST_F(PostgresqlRows, RowsThatChangedWhileTheServerWasAwayAreAnError) {
  TestServer server;
  server.by_hand("CREATE TABLE numbers AS SELECT generate_series(1, 20000) AS i");
  PostgresqlSource source(series(server.location()), nullptr);
  Rows got(source.columns().names.size());
  ASSERT_TRUE(source.read(got, 5000));
  server.stop(SIGINT);
  server.start();
  server.by_hand("DELETE FROM numbers WHERE i = 7");

  try {
    source.read(got);
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rows changed while the server was away; start again"));
  }
}

// The snapshot is that of the first row.
TEST_F(PostgresqlRows, AReadingSeesOneMomentOfTheTable) {
  by_hand("CREATE TABLE numbers AS SELECT generate_series(1, 10000) AS i");
  PostgresqlSource source(series(place_), nullptr);
  Rows got(source.columns().names.size());
  ASSERT_TRUE(source.read(got, 10));
  by_hand("INSERT INTO numbers VALUES (20000)");
  source.read(got);

  EXPECT_TRUE(got.text.ends_with("|10000|20000|")) << got.text.substr(got.text.size() - 40);
}

TEST(PostgresqlDocument, APasswordIsRefusedAndNotShown) {
  for (const char* component : {"data", "writer"}) {
    for (const std::string connection :
         {"postgresql://me:secret@db/houses", "host=db password=secret"}) {
      try {
        const Json parameters = {{"connection", connection}, {"table", "t"}};
        if (component == std::string("data"))
          data_plugin().make<DataProvider>("postgresql", parameters);
        else
          data_plugin().make<TableWriter>("postgresql", parameters);
        FAIL() << connection;
      } catch (const DocumentError& error) {
        EXPECT_THAT(error.what(), HasSubstr("put it into ~/.pgpass"));
        EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("secret")));
      }
    }
  }
}

TEST(PostgresqlDocument, TakesNoTextThatIsNoConnection) {
  try {
    data_plugin().make<DataProvider>("postgresql", {{"connection", "houses.db"}, {"table", "t"}});
    FAIL();
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("is no connection string"));
  }
}

// Printed (README.md). Not run by default:
//   treadle-plugin-postgresql-tests --gtest_also_run_disabled_tests --gtest_filter='*Speed*'
TEST_F(PostgresqlRows, DISABLED_SpeedOfTenColumns) {
  constexpr int kRows = 1'000'000;
  by_hand(
      "CREATE TABLE t AS SELECT i AS id, i * 0.1::float8 AS a, i * 0.2::float8 AS b, i * "
      "0.3::float8 AS c, i % 7 AS d, i * 1.5::float8 AS e, i % 11 AS f, i * 0.7::float8 AS g, "
      "i % 3 AS h, i * 0.9::float8 AS i FROM generate_series(1, " +
      std::to_string(kRows) + ") AS i; ALTER TABLE t ADD PRIMARY KEY (id); ANALYZE t");
  for (int round = 0; round < 3; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    open({{"table", "t"}});
    std::cout << "postgresql "
              << kRows /
                     std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()
              << " rows/s\n";
  }
}

}  // namespace
}  // namespace treadle::postgresql
