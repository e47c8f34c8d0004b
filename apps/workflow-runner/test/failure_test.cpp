#include "command_line/failure.h"

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/problem.h>

namespace treadle::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

template <typename Exception>
Failure failure_of(Exception error) {
  return explain(std::make_exception_ptr(std::move(error)));
}

TEST(Failure, SaysOneLinePerProblemOfADocument) {
  const Failure failure = failure_of(DocumentError({
      Problem{{"my.json", 3, 5}, "/seed", "must be >= 0, got -1"},
      Problem{{"my.json", 4, 1}, "/modle", "unknown key; did you mean \"model\"?"},
  }));

  EXPECT_EQ(failure.exit_code(), 3);
  EXPECT_EQ(failure.text(),
            "workflow-runner: my.json:3: /seed: must be >= 0, got -1\n"
            "workflow-runner: my.json:4: /modle: unknown key; did you mean \"model\"?\n");
}

TEST(Failure, IsBrokenBetweenWordsWhereATerminalIsNarrow) {
  const Failure failure = failure_of(DocumentError(
      {Problem{{"my.json", 4, 1}, "/modle", "unknown key; did you mean \"model\"?"}}));

  EXPECT_EQ(failure.text(50),
            "workflow-runner: my.json:4: /modle: unknown key;\n"
            "                 did you mean \"model\"?\n");
  EXPECT_EQ(failure.text(80), failure.text());
}

TEST(Failure, GivesProgramsThePartsOfEveryProblem) {
  const nlohmann::json error =
      failure_of(DocumentError({Problem{{"my.json", 3, 5}, "/seed", "must be >= 0, got -1"}}))
          .json()
          .at("error");

  EXPECT_EQ(error["kind"], "document");
  EXPECT_EQ(error["exit_code"], 3);
  EXPECT_EQ(error["message"], "my.json:3: /seed: must be >= 0, got -1");
  EXPECT_EQ(error["problems"], nlohmann::json::parse(R"([{"file": "my.json", "line": 3, "column": 5,
      "pointer": "/seed", "message": "must be >= 0, got -1"}])"));
}

TEST(Failure, HasTheKindAndExitCodeOfTheError) {
  const struct {
    Failure failure;
    std::string word;
    int code;
  } kCases[] = {{failure_of(UsageError("x")), "usage", 2},
                {failure_of(PluginError("x")), "plugin", 4},
                {failure_of(DataError("x")), "data", 5},
                {failure_of(TrainingError("x")), "training", 6},
                {failure_of(StorageError("x")), "storage", 7},
                {failure_of(Interrupted("x")), "interrupted", 130},
                {failure_of(std::runtime_error("x")), "internal", 1}};
  for (const auto& [failure, word, code] : kCases) {
    EXPECT_EQ(kind_word(failure.kind), word);
    EXPECT_EQ(failure.exit_code(), code);
  }
}

TEST(Failure, AsksForAReportOfWhatOnlyWeCanRepair) {
  EXPECT_THAT(failure_of(std::runtime_error("odd")).lines,
              ElementsAre("odd", HasSubstr("please report it")));
  EXPECT_THAT(failure_of(DataError("odd")).lines, ElementsAre("odd"));
  EXPECT_THAT(explain(std::make_exception_ptr(7)).lines.back(), HasSubstr("please report it"));
}

TEST(Failure, LeavesOutTheStackTraceOfLibtorch) {
  const Failure failure = failure_of(std::runtime_error(
      "shapes do not match\nException raised from add at Add.cpp:1 (most recent call first):\n"
      "frame #0: 0x1234"));

  EXPECT_THAT(failure.text(), HasSubstr("workflow-runner: shapes do not match\n"));
  EXPECT_THAT(failure.text(), Not(HasSubstr("frame")));
}

TEST(Failure, SaysWhatHelpsAgainstTooLittleMemory) {
  const Failure failure = failure_of(std::bad_alloc());

  EXPECT_EQ(failure.exit_code(), 1);
  EXPECT_THAT(failure.text(), HasSubstr("smaller training.batch_size"));
}

TEST(Failure, OfALimitOfTheSystemNamesTheLimitAndAsksForNoReport) {
  const struct {
    int error;
    std::string remedy;
  } kCases[] = {{EMFILE, "ulimit -n"}, {EAGAIN, "ulimit -u"}, {ENOMEM, "resources.workers"}};
  for (const auto& [error, remedy] : kCases) {
    for (const std::error_category* category :
         {&std::generic_category(), &std::system_category()}) {
      const Failure failure = failure_of(std::system_error(error, *category, "cannot go on"));
      EXPECT_EQ(failure.exit_code(), 7);
      EXPECT_THAT(failure.lines, ElementsAre(HasSubstr(remedy)));
    }
  }
  EXPECT_EQ(failure_of(std::system_error(EDOM, std::generic_category())).exit_code(), 1);
}

}  // namespace
}  // namespace treadle::cli
