#include <treadle/base/path_words.h>

#include <gtest/gtest.h>

namespace treadle {
namespace {

TEST(ShownPath, IsRelativeBelowTheWorkingDirectory) {
  const std::filesystem::path here = std::filesystem::current_path();

  EXPECT_EQ(shown_path(here / "data" / "iris.csv"), "data/iris.csv");
  EXPECT_EQ(shown_path(here.parent_path() / "iris.csv"),
            (here.parent_path() / "iris.csv").string());
  EXPECT_EQ(shown_path("/no/such/place.csv"), "/no/such/place.csv");
}

TEST(ShownPath, StaysAsItWasWrittenWhereItIsRelative) {
  EXPECT_EQ(shown_path("../data/iris.csv"), "../data/iris.csv");
  EXPECT_EQ(shown_path("iris.csv"), "iris.csv");
}

}  // namespace
}  // namespace treadle
