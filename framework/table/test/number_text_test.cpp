#include <treadle/table/number_text.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <treadle/base/random.h>

namespace treadle::table {
namespace {

// What read_number() makes of a text that is followed by a comma.
bool reads(const std::string& text, double& value) {
  const std::string padded = text + "," + std::string(kReadAhead, '\0');
  const char* const end = read_number(padded.data(), value);
  return end == padded.data() + text.size();
}

TEST(ReadNumber, EqualsStrtodForEveryFormAndLength) {
  RandomBits random(11);
  const char* const formats[] = {"%.0f", "%.3f", "%.8f", "%.9f", "%.17g", "%.15e", "%.6g", "%.19f"};
  for (int i = 0; i < 40000; ++i) {
    const double magnitude = std::pow(10, 40 * random.uniform() - 20);
    char text[512];
    std::snprintf(text, sizeof(text), formats[random.below(8)], random.normal() * magnitude);
    double value = 0;

    ASSERT_TRUE(reads(text, value)) << text;
    ASSERT_EQ(value, std::strtod(text, nullptr)) << text;
  }
}

TEST(ReadNumber, RoundsHardCasesCorrectly) {
  const char* const texts[] = {"0",
                               "-0.0",
                               "+7",
                               ".5",
                               "5.",
                               "1e22",
                               "1e23",
                               "9007199254740993",
                               "9007199254740992.5e-3",
                               "0.1",
                               "123456789012345678901234567890",
                               "0.000000000000000000000000000001",
                               "2.2250738585072011e-308",
                               "4.9e-324",
                               "1.7976931348623157e308",
                               "8.41e21",
                               "00000000000000000000001.5",
                               "1E5",
                               "1e+05",
                               "-12345678.12345678"};
  for (const char* text : texts) {
    double value = 42;
    EXPECT_TRUE(reads(text, value)) << text;
    EXPECT_EQ(value, std::strtod(text, nullptr)) << text;
    EXPECT_EQ(std::signbit(value), text[0] == '-') << text;
  }
}

TEST(ReadNumber, MakesInfinityOfWhatIsTooLargeAndZeroOfWhatIsTooSmall) {
  double value = 0;

  EXPECT_TRUE(reads("-1e400", value));
  EXPECT_EQ(value, -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(reads("0.001e999999999999", value));
  EXPECT_EQ(value, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(reads("12345e-400", value));
  EXPECT_EQ(value, 0);
}

TEST(ReadNumber, RefusesWhatIsNotANumber) {
  for (const char* text :
       {"",     "-",   "+",   ".",    "e5",    "1e",  "1e+", "abc", "nan", "inf",
        "-inf", "--1", "+-1", "0x10", "1.2.3", "1,5", "1 ",  " 1",  "12a", "1_000"}) {
    double value = 0;
    EXPECT_FALSE(reads(text, value)) << text;
    EXPECT_FALSE(read_whole_number(text, value)) << text;
  }
}

TEST(WriteNumber, ReadsBackAsTheSameNumberAndLooksAsPythonsDoes) {
  const auto written = [](double value) {
    char text[32];
    return std::string(text, write_number(text, value));
  };
  // python3 -c 'print([repr(x) for x in (0.1, -0.0006, 0.0001, 1e-5, 1e15, 1e16, -0.0, 5e-324)])',
  // without the ".0" of whole numbers.
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(-0.0006), "-0.0006");
  EXPECT_EQ(written(0.0001), "0.0001");
  EXPECT_EQ(written(1e-5), "1e-05");
  EXPECT_EQ(written(1e15), "1000000000000000");
  EXPECT_EQ(written(1e16), "1e+16");
  EXPECT_EQ(written(-0.0), "-0");
  EXPECT_EQ(written(5e-324), "5e-324");
  RandomBits random(5);
  for (int i = 0; i < 10'000; ++i) {
    const double value = random.normal() * std::pow(10, 40 * random.uniform() - 20);
    EXPECT_EQ(std::strtod(written(value).c_str(), nullptr), value);
  }
}

TEST(NormalizeInteger, TakesAFractionOfZerosAway) {
  const std::pair<const char*, const char*> integers[] = {
      {"3", "3"}, {"3.0", "3"}, {"-12.000", "-12"}, {"3.", "3"}, {"007", "007"}};
  for (const auto& [text, expected] : integers) {
    std::string_view view = text;
    EXPECT_TRUE(normalize_integer(view)) << text;
    EXPECT_EQ(view, expected);
  }
  for (const char* text : {"", "-", "3.5", "3.01", "a", "3a", "1e3", "+3"}) {
    std::string_view view = text;
    EXPECT_FALSE(normalize_integer(view)) << text;
    EXPECT_EQ(view, text);
  }
}

// Seconds made with: python3 -c 'from datetime import *;
// print(datetime.fromisoformat("…").timestamp())'
TEST(ReadTime, ReadsDatesAndTimesInEveryIsoForm) {
  const std::pair<const char*, double> times[] = {{"1970-01-01", 0},
                                                  {"2016-07-01", 1467331200},
                                                  {"2016-07-01 00:00:00", 1467331200},
                                                  {"2016-07-01T01:30", 1467336600},
                                                  {"2016-07-01T01:30:15.25Z", 1467336615.25},
                                                  {"2016-07-01T01:30:15,25+02:00", 1467329415.25},
                                                  {"2016-07-01T01:30:15-0930", 1467370815},
                                                  {"2016-07-01T01:30+02", 1467329400},
                                                  {"2000-02-29", 951782400},
                                                  {"1969-12-31T23:59:59", -1},
                                                  {"1900-03-01", -2203891200}};
  for (const auto& [text, expected] : times) {
    double seconds = 0;
    EXPECT_TRUE(read_time(text, seconds)) << text;
    EXPECT_DOUBLE_EQ(seconds, expected) << text;
  }
}

TEST(ReadTime, RefusesDaysAndTimesThatAreNot) {
  for (const char* text :
       {"", "2016", "2016-7-1", "2016-13-01", "2015-02-29", "1900-02-29", "2016-07-01 24:00",
        "2016-07-01 1:00", "2016-07-01T", "2016-07-01T10:00:00.", "2016-07-01T10:00+25:00",
        "2016-07-01T10:00 UTC", "01.07.2016", "2016-07-01x"}) {
    double seconds = 0;
    EXPECT_FALSE(read_time(text, seconds)) << text;
  }
}

}  // namespace
}  // namespace treadle::table
