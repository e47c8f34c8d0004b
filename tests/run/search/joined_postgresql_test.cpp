// Searches of several processes that meet at a PostgreSQL server, which the program starts; skipped
// where none is installed (scripts/setup --servers installs it).
#include <csignal>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "joined_searches.h"
#include "test_server.h"

namespace treadle::testing {
namespace {

using postgresql::SharedServer;
using postgresql::TestServer;

std::string reason_to_skip() {
  return TestServer::programs()
             ? ""
             : "PostgreSQL is not installed: scripts/setup --servers installs it";
}

INSTANTIATE_TEST_SUITE_P(OfAServer, JoinedSearches,
                         ::testing::Values(MeetingPlace{"postgresql",
                                                        [](const fs::path& folder) {
                                                          return SharedServer::server().place(
                                                              folder.filename());
                                                        },
                                                        reason_to_skip()}),
                         name_of_place);

/// At a server that the test may stop.
class SearchesAtARestartedServer : public SearchesAt {
 public:
  static std::string location(const fs::path&) {
    server_ = std::make_unique<TestServer>();
    return server_->location();
  }

 protected:
  void TearDown() override { server_.reset(); }

  static inline std::unique_ptr<TestServer> server_;
};

// SIGINT closes the connections, SIGQUIT is a crash. Beside it a process is killed, and another is
// frozen past its lease.
TEST_P(SearchesAtARestartedServer, LoseNothing) {
  write(shared_document());
  const std::string expected = outcome_alone(shared_document());
  AppProcess first(begin(), logged());
  wait_for_study();
  AppProcess frozen(join(), logged());
  wait_up_to(1);
  server_->stop(SIGINT);
  wait_up_to(1);
  server_->start();
  frozen.signal(SIGSTOP);
  AppProcess killed(join(), logged());
  wait_up_to(1);
  killed.kill_now();
  server_->stop(SIGQUIT);
  std::this_thread::sleep_for(Seconds(2.5));
  server_->start();
  frozen.signal(SIGCONT);

  EXPECT_EQ(first.join(), 0) << read_file(log());
  EXPECT_EQ(frozen.join(), 0) << read_file(log());

  EXPECT_EQ(outcome_of(run()), expected);
}

INSTANTIATE_TEST_SUITE_P(OfAServer, SearchesAtARestartedServer,
                         ::testing::Values(MeetingPlace{
                             "postgresql", SearchesAtARestartedServer::location, reason_to_skip()}),
                         name_of_place);

}  // namespace
}  // namespace treadle::testing
