// With a server of its own, which the program starts; skipped where PostgreSQL is not installed
// (scripts/setup --servers installs it).
#include "postgresql_storage.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/search/storage_contract.h>
#include <treadle/testing/search/wrong_system_calls.h>
#include <treadle/testing/support/forked_process.h>
#include <treadle/testing/support/scratch_folder.h>

#include "test_server.h"

namespace treadle::postgresql {
namespace {

using ::testing::AllOf;
using testing::CaseName;
using testing::ForkedProcess;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScratchFolder;
using ::testing::StartsWith;
using testing::StorageCase;
using testing::StorageContract;
using testing::WrongSystem;

constexpr double kLong = 1000;  // seconds: a lease that passes in no test

std::unique_ptr<StudyStorage> make_at(const std::string& location) {
  static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin.make<StudyStorage>("postgresql", {{"location", location}});
}

/// Cases there are where there is a server.
std::vector<StorageCase> contract_cases() {
  if (!TestServer::programs())
    return {};
  return {{"Postgresql", [](const std::filesystem::path& folder) {
             return make_at(SharedServer::server().place(folder.filename()));
           }}};
}

INSTANTIATE_TEST_SUITE_P(Server, StorageContract, ::testing::ValuesIn(contract_cases()),
                         CaseName());

class PostgresqlStudies : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer::programs())
      GTEST_SKIP() << "PostgreSQL is not installed: scripts/setup --servers installs it";
    place_ = SharedServer::server().place(folder_.path().filename());
  }

  std::unique_ptr<StudyStorage> make() const { return make_at(place_); }
  std::string by_hand(const std::string& sql) const {
    return SharedServer::server().by_hand(sql, place_);
  }
  static std::string error_of(const std::string& location, double patience = 0.3) {
    try {
      PostgresqlStorage(location, Patience::Duration(patience)).studies();
    } catch (const StorageError& error) {
      return error.what();
    }
    return "none";
  }

  const ScratchFolder folder_;  // for its name
  std::string place_;
};

TEST_F(PostgresqlStudies, TablesAreForAnyTool) {
  const auto storage = make();
  storage->create("iris", {{"trials", 3}});
  storage->claim("iris", 4, "A", 100);
  storage->finish("iris", 4, "A", {{"loss", 0.5}});
  storage->claim("iris", 5, "A", 100);

  EXPECT_EQ(by_hand("SELECT version FROM treadle_schema"), "1|");
  EXPECT_EQ(by_hand("SELECT name, description, ended, results FROM treadle_studies"),
            "iris|{\"trials\":3}|NULL|1|");
  EXPECT_EQ(by_hand("SELECT job, worker, sequence, result::json ->> 'loss' FROM treadle_jobs"
                    " ORDER BY job"),
            "4|A|1|0.5|5|A|NULL|NULL|");
  EXPECT_EQ(by_hand("SELECT round(extract(epoch FROM lease_until - now()) / 10) FROM treadle_jobs"
                    " WHERE job = 5"),
            "10|");
}

TEST_F(PostgresqlStudies, AnotherVersionIsRefused) {
  make()->create("study", 1);
  by_hand("UPDATE treadle_schema SET version = 2");

  EXPECT_EQ(error_of(place_), "PostgreSQL \"postgres\" at " +
                                  SharedServer::server().folder().string() +
                                  ": has studies of version 2, and this Treadle knows version 1; "
                                  "use the Treadle that the study was begun with, or another "
                                  "location");
}

TEST_F(PostgresqlStudies, WhoeverMayNotMakeTablesUsesThoseThatAreThere) {
  by_hand("DROP ROLE IF EXISTS worker; CREATE ROLE worker LOGIN");
  const std::string as_worker = place_ + " user=worker";
  EXPECT_THAT(error_of(as_worker), HasSubstr("grant it (GRANT"));

  make()->create("study", 1);
  by_hand("GRANT USAGE ON SCHEMA \"" + folder_.path().filename().string() +
          "\" TO worker; GRANT ALL ON ALL TABLES IN SCHEMA \"" +
          folder_.path().filename().string() + "\" TO worker");

  EXPECT_TRUE(make_at(as_worker)->claim("study", 0, "A", kLong));
  by_hand("DROP OWNED BY worker; DROP ROLE worker");
}

// Not after its patience: no waiting helps.
TEST_F(PostgresqlStudies, WhatTheServerRefusesIsAnErrorAtOnce) {
  const auto begin = std::chrono::steady_clock::now();

  EXPECT_THAT(
      error_of(SharedServer::server().location() + " dbname=missing password=secret", 30),
      AllOf(StartsWith("PostgreSQL \"missing\" at " + SharedServer::server().folder().string()),
            HasSubstr("database \"missing\" does not exist"),
            HasSubstr("; look at the user, the password (~/.pgpass), the database, and ")));

  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
}

TEST_F(PostgresqlStudies, NoMessageHasThePassword) {
  for (const std::string location :
       {"postgresql://me:secret@127.0.0.1:1/studies", "host=127.0.0.1 port=1 password=secret",
        "postgresql://me:secret@127.0.0.1:1/studies?what=secret", "password=secret secret",
        "postgresql://me:secret@[::1", "secret"}) {
    const std::string said = error_of(location);
    EXPECT_NE(said, "none") << location;
    EXPECT_THAT(said, Not(HasSubstr("secret"))) << location;
  }
  EXPECT_EQ(error_of("studies.db"),
            "the location of the storage \"postgresql\" is no connection string; write "
            "postgresql://user@host/database, or \"host=… dbname=…\"");
}

TEST_F(PostgresqlStudies, AServerThatIsNotThereIsWaitedForAndNamed) {
  EXPECT_THAT(error_of("postgresql://me@127.0.0.1:1/studies"),
              AllOf(StartsWith("PostgreSQL \"studies\" at 127.0.0.1:1: "), HasSubstr("refused"),
                    HasSubstr("; start the server, or look at the location (tried for 0.3 s)")));
}

TEST_F(PostgresqlStudies, AStudyThatWasDeletedIsNamedAsSuch) {
  const auto storage = make();
  storage->create("study", 1);
  storage->claim("study", 0, "A", kLong);
  by_hand("DELETE FROM treadle_jobs; DELETE FROM treadle_studies");
  try {
    storage->claim("study", 1, "A", kLong);
    FAIL() << "it was claimed";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("; the study was deleted while it was worked on"));
  }
}

// Somebody has a lock on the tables and does not let go.
TEST_F(PostgresqlStudies, ACallEndsThoughATableIsLocked) {
  make()->create("study", 1);
  PGconn* const holder = PQconnectdb(place_.c_str());
  PQclear(PQexec(holder, "BEGIN; LOCK TABLE treadle_studies"));

  EXPECT_THAT(error_of(place_), HasSubstr(": no answer within 0.3 s; somebody may have locked"));
  PQfinish(holder);
  EXPECT_EQ(error_of(place_, 10), "none");
}

// As the packets of a server that fails over: what was done is not done twice, nor taken for lost.
TEST_F(PostgresqlStudies, AnAnswerThatWasLostChangesNothing) {
  LossyProxy proxy(SharedServer::server());
  const std::string through = proxy.location() + place_.substr(place_.find(" options="));
  const auto storage = make_at(through);
  const auto with_loss = [&](auto&& call) {
    proxy.lose(1);
    const int before = proxy.lost();
    const auto got = call();
    EXPECT_EQ(proxy.lost(), before + 1);
    return got;
  };
  using nlohmann::json;

  EXPECT_EQ(with_loss([&] { return storage->create("study", 1); }), json(1));
  EXPECT_TRUE(with_loss([&] { return storage->claim("study", 0, "A", kLong); }));
  EXPECT_TRUE(with_loss([&] { return storage->renew("study", 0, "A", kLong); }));
  EXPECT_TRUE(with_loss([&] { return storage->finish("study", 0, "A", 7); }));
  EXPECT_FALSE(with_loss([&] { return storage->finish("study", 0, "A", 8); })) << "another attempt";
  EXPECT_EQ(with_loss([&] { return storage->results("study", 0).size(); }), 1U);
  EXPECT_EQ(with_loss([&] { return storage->end("study", "target"); }), json("target"));
  EXPECT_EQ(by_hand("SELECT results FROM treadle_studies"), "1|");
}

// Leases hold for a process whose wall clock is an hour ahead, and for one that is behind.
TEST_F(PostgresqlStudies, WallClocksOfWorkersDoNotMatter) {
  make()->create("study", 1);
  std::int64_t job = 0;
  for (const long offset : {3600L, -3600L}) {
    make()->claim("study", job, "right", kLong);
    ForkedProcess wrong([&] {
      WrongSystem::wall_clock_offset = offset;
      const auto storage = make();
      TREADLE_EXPECTS(!storage->claim("study", job, "wrong", kLong), "it has not passed");
      TREADLE_EXPECTS(storage->claim("study", job + 1, "wrong", kLong), "nobody has it");
      TREADLE_EXPECTS(storage->claim("study", job + 2, "wrong", 0.01), "nobody has it");
    });
    EXPECT_EQ(wrong.join(), "") << offset;

    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(make()->claim("study", job + 1, "right", kLong)) << offset;
    EXPECT_TRUE(make()->claim("study", job + 2, "right", kLong)) << offset;
    job += 3;
  }
}

// Each call is one statement: wherever a worker stops, it has no lock.
TEST_F(PostgresqlStudies, AWorkerThatFreezesLocksNobodyOut) {
  make()->create("study", 1);
  ForkedProcess frozen([&] {
    const auto storage = make();
    for (std::int64_t job = 0;; ++job) {
      storage->claim("study", job, "frozen", kLong);
      storage->finish("study", job, "frozen", 1);
    }
  });
  PostgresqlStorage other(place_, Patience::Duration(5));
  for (std::int64_t i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    frozen.freeze();
    EXPECT_TRUE(other.claim("study", 1'000'000 + i, "other", kLong));
    EXPECT_TRUE(other.finish("study", 1'000'000 + i, "other", 1));
    frozen.thaw();
  }
}

class RestartedServer : public PostgresqlStudies {};

TEST_F(RestartedServer, WorkersGoOnAndNothingIsLost) {
  constexpr std::int64_t kJobs = 200;
  TestServer server;
  const std::string location = server.location();
  make_at(location)->create("study", 1);
  std::vector<ForkedProcess> workers;
  for (int i = 0; i < 2; ++i) {
    workers.emplace_back([&, i] {
      const auto storage = make_at(location);
      const std::string worker = "worker " + std::to_string(i);
      for (std::int64_t job = 0; job < kJobs; ++job) {
        if (!storage->claim("study", job, worker, kLong))
          continue;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        TREADLE_EXPECTS(storage->finish("study", job, worker, worker), "it has the job");
      }
    });
  }

  for (const int how : {SIGINT, SIGQUIT}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    server.stop(how);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    server.start();
  }

  for (ForkedProcess& worker : workers)
    EXPECT_EQ(worker.join(), "");
  const auto results = make_at(location)->results("study", 0);
  std::set<std::int64_t> jobs;
  for (const StoredResult& result : results)
    jobs.insert(result.job);
  EXPECT_EQ(results.size(), static_cast<std::size_t>(kJobs));
  EXPECT_EQ(jobs.size(), results.size());
}

}  // namespace
}  // namespace treadle::postgresql
