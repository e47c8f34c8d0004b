#include "number_notation.h"

#include <string>

#include <gtest/gtest.h>

namespace treadle::csv {
namespace {

std::string plain(const NumberNotation& notation, std::string_view text) {
  std::string written = "x";  // stays
  return notation.append_plain(text, written) ? written.substr(1) : written == "x" ? "none" : "?";
}

TEST(NumberNotations, AreWrittenPlainly) {
  const NumberNotation german{",", "."};
  EXPECT_EQ(plain(german, "1.234,56"), "1234.56");
  EXPECT_EQ(plain(german, "-12.345.678"), "-12345678");
  EXPECT_EQ(plain(german, "1234,5"), "1234.5");  // groups are optional
  EXPECT_EQ(plain(german, ",5"), ".5");
  EXPECT_EQ(plain(german, "5,"), "5.");
  EXPECT_EQ(plain(german, "+1,5e-3"), "+1.5e-3");
  EXPECT_EQ(plain(german, "7"), "7");
  EXPECT_EQ(plain({".", ","}, "1,234.5"), "1234.5");
  EXPECT_EQ(plain({",", "\xE2\x80\xAF"},
                  "1\xE2\x80\xAF"
                  "234,5"),
            "1234.5");  // a narrow space, as in French
  EXPECT_EQ(plain({".", "'"}, "1'000"), "1000");
}

TEST(NumberNotations, RefuseEverythingElse) {
  const NumberNotation german{",", "."};
  for (const char* text :
       {"1.5", "1.23,4", "1.2345", "1234.567", ".123", "1,5,5", "1,234.5", "", "-", ",", "1,5e",
        "1,5 ", "x", "1e5x", "NA", "inf", "1..234", "1.234.", "--1"}) {
    EXPECT_EQ(plain(german, text), "none") << text;
  }
  EXPECT_EQ(plain({",", ""}, "1.234"), "none");
}

NumberNotation guess(const std::vector<std::string_view>& texts) {
  NotationGuess guess;
  for (const std::string_view text : texts)
    guess.add(text);
  return guess.guess();
}

TEST(NumberNotations, AreGuessedWhereNothingSpeaksAgainst) {
  EXPECT_EQ(guess({"3,5", "x", "7"}).decimal, ",");
  EXPECT_EQ(guess({"3,5", "7"}).thousands, "");
  EXPECT_EQ(guess({"1.234,5", "1.234"}).thousands, ".");
  EXPECT_TRUE(guess({"3,5", "3.5"}).is_plain());
  EXPECT_TRUE(guess({"1.234", "7", "Ulm, Bonn"}).is_plain());
}

}  // namespace
}  // namespace treadle::csv
