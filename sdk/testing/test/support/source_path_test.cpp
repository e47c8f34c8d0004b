#include <treadle/testing/support/source_path.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace treadle::testing {
namespace {

namespace fs = std::filesystem;

TEST(SourcePath, IsFoundAboveTheProgramThoughTheBuildHasAFolderOfThatName) {
  const fs::path source = std::getenv("TREADLE_SOURCE");
  const fs::path build = std::getenv("TREADLE_BUILD");
  if (*build.lexically_relative(source).begin() == "..")
    GTEST_SKIP() << "needs a build folder within the source tree";
  ASSERT_TRUE(fs::exists(build / "plugins/losses"));
  unsetenv("TREADLE_SOURCE");
  const fs::path found = source_path("plugins/losses");
  setenv("TREADLE_SOURCE", source.c_str(), 1);

  EXPECT_TRUE(fs::equivalent(found, source / "plugins/losses")) << found;
}

TEST(SourcePath, StaysWhatItIsWhereItIsAbsolute) {
  EXPECT_EQ(source_path("/nowhere/at/all"), "/nowhere/at/all");
}

}  // namespace
}  // namespace treadle::testing
