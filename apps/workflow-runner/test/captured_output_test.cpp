#include "launch/captured_output.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace treadle::cli {
namespace {

TEST(CapturedOutput, HasWhatThisProcessAndOthersWrite) {
  CapturedOutput output;
  ASSERT_EQ(write(STDOUT_FILENO, "mine, ", 6), 6);
  ASSERT_EQ(std::system("printf theirs"), 0);

  EXPECT_EQ(output.finish(), "mine, theirs");
}

TEST(CapturedOutput, GivesTheStandardOutputBack) {
  CapturedOutput outer;
  {
    const CapturedOutput inner;
    ASSERT_EQ(std::system("printf inner"), 0);
  }
  ASSERT_EQ(std::system("printf outer"), 0);

  EXPECT_EQ(outer.finish(), "outer");
}

}  // namespace
}  // namespace treadle::cli
