#include <treadle/table/date_format.h>

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

namespace treadle::table {
namespace {

using ::testing::HasSubstr;

DateFormat make(const std::string& format, const std::string& zone = "UTC",
                Ambiguous ambiguous = Ambiguous::kError) {
  return DateFormat(format, TimeZone::load(zone), ambiguous);
}

bool reads(const std::string& format, const std::string& text) {
  DateFormat::Time time;
  return make(format).read(text, time);
}

struct Written {
  const char* format;
  const char* text;
  double seconds;
  double ahead;
};

// By Python: date_formats.py.
const std::vector<Written> kWritten{
    {"%d.%m.%Y", "31.12.2023", 1703980800.0, 0},
    {"%d.%m.%Y", "1.2.2023", 1675209600.0, 0},
    {"%m/%d/%Y %I:%M %p", "07/04/2024 12:05 AM", 1720051500.0, 0},
    {"%m/%d/%Y %I:%M %p", "7/4/2024 12:05 pm", 1720094700.0, 0},
    {"%m/%d/%y", "02/29/68", 3097699200.0, 0},
    {"%m/%d/%y", "02/28/69", -26524800.0, 0},
    {"%Y%m%d%H%M%S", "20240229235959", 1709251199.0, 0},
    {"%d %b %Y", "05 Mar 1999", 920592000.0, 0},
    {"%A, %B %d, %Y", "Thursday, February 29, 2024", 1709164800.0, 0},
    {"%Y-%j", "2024-366", 1735603200.0, 0},
    {"%d/%b/%Y:%H:%M:%S %z", "10/Oct/2000:13:55:36 -0700", 971211336.0, -25200.0},
    {"%Y-%m-%dT%H:%M:%S.%f%z", "1950-01-02T03:04:05.250+05:30", -631074354.75, 19800.0},
    {"%Y-%m", "1969-11", -5270400.0, 0},
    {"%Y", "1900", -2208988800.0, 0},
    {"100%% %Y", "100% 2000", 946684800.0, 0},
};

TEST(DateFormats, ReadWhatStrptimeReads) {
  for (const Written& written : kWritten) {
    DateFormat::Time time;
    ASSERT_TRUE(make(written.format).read(written.text, time)) << written.text;
    EXPECT_EQ(time.seconds, written.seconds) << written.text;
    EXPECT_EQ(time.ahead, written.ahead) << written.text;
  }
}

TEST(DateFormats, AreStrict) {
  for (const char* text : {"31.12.23", "31.12.2023 ", " 31.12.2023", "31-12-2023", "32.12.2023",
                           "31.13.2023", "0.1.2023", "29.2.2023", "", "31.12.", "31.12.20233"}) {
    EXPECT_FALSE(reads("%d.%m.%Y", text)) << text;
  }
  EXPECT_FALSE(reads("%Y%m%d", "2024112"));  // January 12 or November 2
  EXPECT_FALSE(reads("%A %F", "Friday 2024-02-29"));
  EXPECT_FALSE(reads("%F %H:%M", "2024-02-29 24:00"));
  EXPECT_FALSE(reads("%F %I:%M %p", "2024-02-29 00:30 AM"));
  EXPECT_FALSE(reads("%Y-%j", "2023-366"));
  EXPECT_FALSE(reads("%d %b %Y", "05 M\xC3\xA4r 1999"));  // whatever the locale
  EXPECT_FALSE(reads("%F %T%z", "2024-02-29 12:00:00"));
  EXPECT_FALSE(reads("%F %T%z", "2024-02-29 12:00:00+2"));
}

TEST(DateFormats, ReadNumbersAsTimes) {
  DateFormat::Time time;
  ASSERT_TRUE(make("unix").read("1709251140.5", time));
  EXPECT_EQ(time.seconds, 1709251140.5);
  ASSERT_TRUE(make("unix_ms").read("1709251140500", time));
  EXPECT_EQ(time.seconds, 1709251140.5);
  EXPECT_EQ(time.ahead, 0);
  ASSERT_TRUE(make("unix", "+02:00").read("1709251140", time));
  EXPECT_EQ(time.seconds, 1709251140);
  EXPECT_EQ(time.ahead, 7200);
  EXPECT_FALSE(reads("unix", "2024-02-29"));
  EXPECT_FALSE(reads("unix", "1e300"));
}

TEST(DateFormats, TakeTimesWithoutAnOffsetForThoseOfTheZone) {
  const std::string zone = "Europe/Berlin";
  DateFormat::Time time;
  ASSERT_TRUE(make("iso8601", "+01:00").read("2024-06-01T12:00", time));
  EXPECT_EQ(time.seconds, 1717239600);  // 11:00 UTC
  EXPECT_EQ(time.ahead, 3600);
  ASSERT_TRUE(make("iso8601", "+01:00").read("2024-06-01T12:00Z", time));
  EXPECT_EQ(time.seconds, 1717243200);
  EXPECT_EQ(time.ahead, 0);
  try {
    make("iso8601", zone);
  } catch (const Error&) {
    GTEST_SKIP() << "needs the package tzdata";
  }
  std::string problem;
  ASSERT_TRUE(make("%d.%m.%Y %H:%M", zone).read("01.06.2024 12:00", time));
  EXPECT_EQ(time.seconds, 1717236000);  // 10:00 UTC
  EXPECT_EQ(time.ahead, 7200);
  EXPECT_FALSE(make("iso8601", zone).read("2024-03-31 02:30", time, &problem));
  EXPECT_EQ(problem,
            "2024-03-31 02:30 does not exist in Europe/Berlin: clocks were set forward over it");
  EXPECT_FALSE(make("iso8601", zone).read("2024-10-27 02:30", time, &problem));
  EXPECT_EQ(problem,
            "2024-10-27 02:30 exists twice in Europe/Berlin, where clocks were set back; set "
            "\"ambiguous\" to \"earliest\" or \"latest\"");
  ASSERT_TRUE(make("iso8601", zone, Ambiguous::kEarliest).read("2024-10-27 02:30", time));
  EXPECT_EQ(time.seconds, 1729989000);  // 00:30 UTC
  ASSERT_TRUE(make("iso8601", zone, Ambiguous::kLatest).read("2024-10-27 02:30", time));
  EXPECT_EQ(time.seconds, 1729992600);  // 01:30 UTC
}

TEST(DateFormats, AreRefusedWhereTheyGiveNoTime) {
  const auto message = [](const std::string& format) -> std::string {
    try {
      make(format);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message("%d.%m."), HasSubstr("gives no year; add %Y or %y"));
  EXPECT_THAT(message("%Y %d"), HasSubstr("gives a day, but no month"));
  EXPECT_THAT(message("%F %I:%M"), HasSubstr("needs both %I"));
  EXPECT_THAT(message("%F %M"), HasSubstr("without the larger ones"));
  EXPECT_THAT(message("%Q"), HasSubstr("\"%Q\" has \"%Q\", which is none of"));
  EXPECT_THAT(message("%Y%"), HasSubstr("has \"%\", which is none of"));
  EXPECT_THAT(message("dd.MM.yyyy"), HasSubstr("gives no year"));
}

}  // namespace
}  // namespace treadle::table
