// With a server of its own, which the program starts; skipped where PostgreSQL is not installed
// (scripts/setup --servers installs it).
#include "postgresql_writer.h"

#include <cmath>
#include <csignal>
#include <cstdint>
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

#include "test_server.h"

namespace treadle::postgresql {
namespace {

using Type = TableWriter::Column::Type;

class PostgresqlTable : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer::programs())
      GTEST_SKIP() << "PostgreSQL is not installed: scripts/setup --servers installs it";
    place_ = SharedServer::server().place(folder_.path().filename());
  }

  std::unique_ptr<TableWriter> make(nlohmann::json parameters = nlohmann::json::object()) const {
    static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
    parameters["connection"] = place_;
    return plugin.make<TableWriter>("postgresql", std::move(parameters));
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
  std::string by_hand(const std::string& sql) const {
    return SharedServer::server().by_hand(sql, place_);
  }

  const testing::ScratchFolder folder_;  // for its name
  std::string place_;
};

TEST_F(PostgresqlTable, ValuesHaveTheirTypes) {
  write_table(nlohmann::json::object(), -1);

  EXPECT_EQ(by_hand("SELECT *, pg_typeof(row), pg_typeof(score), pg_typeof(loss), pg_typeof(\"a "
                    "\"\"name\"\"\") FROM predictions ORDER BY row LIMIT 1"),
            "-1|0.5|0.1|Köln|bigint|real|double precision|text|");
  const auto writer = make({{"table", "more"}});
  writer->open({{"x", Type::kDouble}, {"y", Type::kFloat}, {"t", Type::kText}});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  writer->write({std::vector<double>{nan, -INFINITY}, std::vector<float>{INFINITY, 1e-30F},
                 std::vector<std::string>{"", "a\tb\\N\n"}});
  writer->close();
  EXPECT_EQ(by_hand("SELECT * FROM more"), "NaN|Infinity||-Infinity|1e-30|a\tb\\N\n|");
}

TEST_F(PostgresqlTable, NothingIsToBeSeenBeforeTheEnd) {
  const auto writer = make();
  open(*writer);
  write(*writer, 1, 30'000);

  EXPECT_EQ(by_hand("SELECT to_regclass('predictions')"), "NULL|");
  writer->close();
  EXPECT_EQ(by_hand("SELECT count(*), max(row) FROM predictions"), "30000|30000|");
}

TEST_F(PostgresqlTable, ATableThatIsReplacedIsReadableUntilTheEnd) {
  write_table(nlohmann::json::object());
  const auto writer = make({{"if_exists", "replace"}});
  open(*writer);
  write(*writer, 5);

  EXPECT_EQ(by_hand("SET lock_timeout = '1s'; SELECT row FROM predictions"), "1|2|");
  writer->close();
  EXPECT_EQ(by_hand("SELECT row FROM predictions"), "5|6|");
  EXPECT_EQ(by_hand("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"), "1|");
}

TEST_F(PostgresqlTable, AWriterWithoutAnEndAndAKilledOneLeaveWhatWasThere) {
  write_table(nlohmann::json::object());
  for (const char* how : {"replace", "append"}) {
    {
      const auto writer = make({{"if_exists", how}});
      open(*writer);
      write(*writer, 3, 30'000);
    }
    testing::ForkedProcess killed([&] {
      const auto writer = make({{"if_exists", how}});
      open(*writer);
      write(*writer, 3, 30'000);
      std::raise(SIGKILL);
    });
    static_cast<void>(killed.join());

    EXPECT_EQ(by_hand("SELECT row FROM predictions"), "1|2|") << how;
  }
}

TEST_F(PostgresqlTable, ATableThatExistsIsRefusedReplacedOrExtended) {
  write_table(nlohmann::json::object());
  try {
    write_table(nlohmann::json::object());
    FAIL() << "no error";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(
                                  ": has a table \"predictions\" already; name another one, or set "
                                  "\"if_exists\" to \"replace\" or \"append\""));
  }

  write_table({{"if_exists", "append"}}, 3);
  EXPECT_EQ(by_hand("SELECT row FROM predictions"), "1|2|3|4|");
  by_hand("CREATE SCHEMA IF NOT EXISTS results");
  write_table({{"table", "results.\"t"}, {"if_exists", "replace"}}, 5);
  write_table({{"table", "results.\"t"}, {"if_exists", "replace"}}, 7);
  EXPECT_EQ(by_hand("SELECT row FROM results.\"\"\"t\""), "7|8|");
}

TEST_F(PostgresqlTable, AServerThatStopsIsAnErrorAndNothingIsWritten) {
  TestServer server;
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  const auto writer = plugin.make<TableWriter>("postgresql", {{"connection", server.location()}});
  open(*writer);
  server.stop(SIGQUIT);
  const auto finish = [&] {
    write(*writer, 1, 100'000);
    writer->close();
  };

  EXPECT_THROW(finish(), StorageError);
  server.start();
  EXPECT_EQ(server.by_hand("SELECT to_regclass('predictions')"), "NULL|");
}

}  // namespace
}  // namespace treadle::postgresql
