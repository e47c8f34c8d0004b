// docs/tutorials, walked as they stand there by a reader with an empty home folder: see PageWalk.
#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "page_walk.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;

using Tutorials = PageWalk;

TEST_F(Tutorials, OfATableIsDoneAsItStands) {
  walk("first-table.md");
}

TEST_F(Tutorials, OfImagesIsDoneAsItStands) {
  for (const char* source : {"idx", "images"}) {
    if (run({"plugins", "describe", "data", source}).code != 0)
      GTEST_SKIP() << "the data source " << source << " was not built";
  }
  walk("first-image.md");
}

TEST_F(Tutorials, OfASeriesIsDoneAsItStands) {
  walk("first-series.md");
}

TEST_F(Tutorials, OfATextIsDoneAsItStands) {
  walk("first-text.md");
}

TEST_F(Tutorials, ForUsersOfPyTorchIsDoneAsItStands) {
  walk("from-pytorch.md");
}

TEST_F(Tutorials, ForUsersOfScikitLearnIsDoneAsItStands) {
  walk("from-scikit-learn.md");
}

// With Treadle installed into the home folder, as README.md there describes.
TEST_F(Tutorials, OfAProgramAndAPluginAreDoneAsTheyStand) {
  forget_fixture_folders();
  walk("README.md");
  walk("first-program.md");
  walk("first-plugin.md");
}

TEST_F(Tutorials, IndexNamesEveryPage) {
  std::set<std::string> pages;
  for (const fs::directory_entry& entry : fs::directory_iterator(source() / "docs/tutorials")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".md" && name != "README.md")
      pages.insert(name);
  }

  const std::vector<std::string> links = links_in(read(source() / "docs/tutorials/README.md"));

  EXPECT_GE(pages.size(), 8U);
  for (const std::string& page : pages)
    EXPECT_THAT(links, testing::Contains(page));
}

}  // namespace
}  // namespace treadle
