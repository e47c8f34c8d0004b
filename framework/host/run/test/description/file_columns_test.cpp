#include "description/file_columns.h"

#include <gtest/gtest.h>

namespace treadle::internal {
namespace {

// Expected: date -u -d TEXT +%s
TEST(SecondsOfDate, AreThoseSince1970) {
  EXPECT_EQ(seconds_of_date("1970-01-01"), 0);
  EXPECT_EQ(seconds_of_date("2024-02-29"), 1709164800);
  EXPECT_EQ(seconds_of_date("2024-06-01T13:30"), 1717248600);
  EXPECT_EQ(seconds_of_date("2024-06-01 13:30:05.5"), 1717248605.5);
  EXPECT_EQ(seconds_of_date("2024-06-01T13:30:05Z"), 1717248605);
  EXPECT_EQ(seconds_of_date("2024-06-01T00:00+02:00"), 1717192800);
  EXPECT_EQ(seconds_of_date("2024-06-01T00:00-05:30"), 1717219800);
  EXPECT_EQ(seconds_of_date("1969-12-31T23:59:59"), -1);
}

TEST(SecondsOfDate, AreNothingForOtherTexts) {
  for (const char* const text :
       {"", "2024", "2024-6-1", "2024-02-30", "2024-13-01", "01.06.2024", "2024-06-01x",
        "2024-06-01T", "2024-06-01T1:30", "2024-06-01T13:30+2", "2024-06-01T13:30+02:00x"}) {
    EXPECT_EQ(seconds_of_date(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace treadle::internal
