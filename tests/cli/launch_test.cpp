// `launch`: a supervisor and the processes that it starts, as people use it. How groups end is
// tested in framework/host/launch, with processes that fail on purpose.
#include <signal.h>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Launch : public CommandFixture {
 protected:
  Launch() {
    given_points();
    given_document(3);
  }
};

TEST_F(Launch, OfOneProcessTrainsAsRunDoes) {
  const Finished done = run({"launch", "--processes", "1", "run", "points.json", "-o", "out"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("Report  out/points-"));
  EXPECT_THAT(done.err, IsEmpty());
}

TEST_F(Launch, TakesADocumentForRun) {
  EXPECT_EQ(run({"launch", "-n", "1", "points.json", "--quiet"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(only_run() / "result.json"));
}

TEST_F(Launch, LeavesJsonToTheCommand) {
  const Finished done = run({"launch", "-n", "1", "run", "points.json", "--json"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(done.json().contains("result"));
}

TEST_F(Launch, EndsWithTheMessageAndTheCodeOfItsCommand) {
  given_document(3, {{"lost", "hinge"}});

  const Finished done = run({"launch", "-n", "1", "points.json"});

  EXPECT_EQ(done.code, 3);
  EXPECT_THAT(done.err, AllOf(HasSubstr("/lost: unknown key"), Not(HasSubstr("rank"))));
}

TEST_F(Launch, RefusesAMistakeBeforeItStartsAnything) {
  const Finished done = run({"launch", "-n", "3", "run", "points.json", "--ouptut", "x"});

  EXPECT_EQ(done.code, 2);
  EXPECT_EQ(done.err,
            "workflow-runner: run has no option \"--ouptut\"; did you mean \"--output\"?\n");
}

TEST_F(Launch, StopsLikeItsCommand) {
  given_document(1'000'000);
  Running running = start({"launch", "-n", "1", "points.json"});
  ASSERT_TRUE(running.has_printed("1/1000000"));

  running.send(SIGUSR1);
  const Finished done = running.wait();

  EXPECT_EQ(done.code, 130);
  EXPECT_THAT(done.err, HasSubstr("workflow-runner resume runs/points-"));
}

TEST_F(Launch, ChecksAHostWithoutACommand) {
  const Finished done = run({"launch", "--check", "-n", "1", "--json"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.json().at("hosts").size(), 1U);
  EXPECT_EQ(done.json().at("problems"), json::array());
}

TEST_F(Launch, NamesTheOptionThatSeveralHostsLack) {
  EXPECT_THAT(run({"launch", "-n", "1", "--hosts", "2", "points.json"}).err,
              HasSubstr("--hosts needs --host NUMBER, from 0, and --at HOST:PORT"));
  EXPECT_THAT(run({"launch", "-n", "1", "--host", "1", "points.json"}).err,
              HasSubstr("add --hosts COUNT"));
  EXPECT_THAT(run({"launch", "-n", "1", "--timeout", "5ep", "points.json"}).err,
              HasSubstr("--timeout: expected a time from 0.1s to 7d such as 30s or 5min"));
}

}  // namespace
}  // namespace treadle
