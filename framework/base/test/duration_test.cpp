#include <treadle/base/duration.h>

#include <stdexcept>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/random.h>

namespace treadle {
namespace {

using Unit = Duration::Unit;

std::string refused(std::string_view text) {
  try {
    Duration::parse(text);
  } catch (const std::invalid_argument& refused) {
    return refused.what();
  }
  return "accepted";
}

TEST(Duration, ReadsEveryUnit) {
  EXPECT_EQ(Duration::parse("5%"), (Duration{0.05, Unit::kFraction}));
  EXPECT_EQ(Duration::parse("0.1%"), (Duration{0.001, Unit::kFraction}));
  EXPECT_EQ(Duration::parse("100%"), (Duration{1, Unit::kFraction}));
  EXPECT_EQ(Duration::parse("2.5ep"), (Duration{2.5, Unit::kEpochs}));
  EXPECT_EQ(Duration::parse("500st"), (Duration{500, Unit::kSteps}));
  EXPECT_EQ(Duration::parse("2h"), (Duration{7200, Unit::kSeconds}));
  EXPECT_EQ(Duration::parse("30min"), (Duration{1800, Unit::kSeconds}));
  EXPECT_EQ(Duration::parse("30m"), (Duration{1800, Unit::kSeconds}));
  EXPECT_EQ(Duration::parse("45s"), (Duration{45, Unit::kSeconds}));
}

TEST(Duration, SaysWhichFormsThereAre) {
  const std::string forms =
      "expected a duration such as \"5%\", \"10ep\" (epochs), \"500st\" (steps), \"2h\", "
      "\"30min\" or \"45s\", got ";
  for (const std::string text : {"fast", "", "5", "-5%", "5 %", "1e3st", ".5ep", "5.ep", "1.2.3ep",
                                 "ep", "5%%", "10EP", "inf%", "nanep"}) {
    EXPECT_EQ(refused(text), forms + "\"" + text + "\"");
  }
  EXPECT_EQ(refused("101%"), "expected at most 100% of the training, got \"101%\"");
  EXPECT_EQ(refused("0.5st"), "expected a whole number of steps, got \"0.5st\"");
  EXPECT_EQ(refused("99999999999999999999st"),
            "expected a duration that fits a training, got \"99999999999999999999st\"");
  EXPECT_EQ(refused(std::string(400, '9') + "ep").substr(0, 42),
            "expected a duration that fits a training, ");
}

TEST(Duration, WritesTheShortestForm) {
  for (const char* text : {"5%", "7%", "0.1%", "12.5%", "100%", "0%", "33.3%", "10ep", "2.5ep",
                           "500st", "2h", "30min", "45s", "0s", "1.5s", "90min"}) {
    EXPECT_EQ(Duration::parse(text).text(), text);
  }
  EXPECT_EQ(Duration::parse("60min").text(), "1h");
}

TEST(Duration, ReadsBackWhatItWrote) {
  RandomBits bits(1);
  for (int i = 0; i < 2000; ++i) {
    const double part = bits.uniform();
    for (const Duration& duration :
         {Duration{part, Unit::kFraction}, Duration{part * 1000, Unit::kEpochs},
          Duration{part * 1e5, Unit::kSeconds}, Duration{part * 1e-9, Unit::kFraction}}) {
      EXPECT_EQ(Duration::parse(duration.text()), duration) << duration.text();
    }
  }
}

TEST(Duration, CountsSteps) {
  EXPECT_EQ(Duration::parse("5%").steps(10, 600), 30);
  EXPECT_EQ(Duration::parse("2.5ep").steps(7, 600), 18);  // 17.5, to the nearest
  EXPECT_EQ(Duration::parse("500st").steps(7, 600), 500);
  EXPECT_EQ(Duration::parse("5%").steps(1, 0), 0);
  EXPECT_THROW(Duration::parse("2h").steps(10, 600), ContractViolation);
  EXPECT_THROW(Duration::parse("5%").steps(0, 600), ContractViolation);
}

}  // namespace
}  // namespace treadle
