#include <treadle/base/error.h>

#include <gmock/gmock.h>

namespace treadle {
namespace {

TEST(Error, KeepsTheDocumentedExitCodes) {
  EXPECT_EQ(ContractViolation("x").exit_code(), 1);
  EXPECT_EQ(UsageError("x").exit_code(), 2);
  EXPECT_EQ(PluginError("x").exit_code(), 4);
  EXPECT_EQ(DataError("x").exit_code(), 5);
  EXPECT_EQ(TrainingError("x").exit_code(), 6);
  EXPECT_EQ(StorageError("x").exit_code(), 7);
  EXPECT_EQ(Interrupted("x").exit_code(), 130);
}

TEST(Error, CanBeCaughtAsItsRootWithItsText) {
  try {
    throw DataError("iris.csv:3: expected 5 fields, got 4");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_STREQ(error.what(), "iris.csv:3: expected 5 fields, got 4");
  }
}

TEST(Expects, NamesThePromiseThatWasBroken) {
  const int rows = -1;
  try {
    TREADLE_EXPECTS(rows >= 0, "a batch has no fewer than 0 rows, got " + std::to_string(rows));
    FAIL() << "expected a ContractViolation";
  } catch (const ContractViolation& violation) {
    EXPECT_THAT(violation.what(),
                testing::MatchesRegex("error_test.cpp:[0-9]+: a batch has no fewer than 0 rows, "
                                      "got -1 \\(expected: rows >= 0\\)"));
  }
}

TEST(Expects, LooksAtTheExplanationOnlyWhenNeeded) {
  int explained = 0;
  const auto explain = [&] {
    ++explained;
    return std::string();
  };

  TREADLE_EXPECTS(true, explain());

  EXPECT_EQ(explained, 0);
}

}  // namespace
}  // namespace treadle
