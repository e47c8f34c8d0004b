#include <treadle/base/time_text.h>

#include <limits>

#include <gtest/gtest.h>

namespace treadle {
namespace {

// date -u -d @1498608000; date -u -d @-1
TEST(TimeText, WritesDatesAsPeopleDo) {
  EXPECT_EQ(time_text(1498608000, true), "2017-06-28 00:00");
  EXPECT_EQ(time_text(1498608061.75, true), "2017-06-28 00:01:01");
  EXPECT_EQ(time_text(-1, true), "1969-12-31 23:59:59");
}

TEST(TimeText, WritesOtherTimesAsNumbers) {
  EXPECT_EQ(time_text(17.5, false), "17.5");
  EXPECT_EQ(time_text(1e300, true), "1e+300");
  EXPECT_EQ(time_text(std::numeric_limits<double>::quiet_NaN(), true), "nan");
}

}  // namespace
}  // namespace treadle
