#include "events/event_log.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace treadle::internal {
namespace {

namespace fs = std::filesystem;

class EventLogTest : public ::testing::Test {
 protected:
  EventLogTest() : path_(fs::path(::testing::TempDir()) / "events.jsonl") { fs::remove(path_); }
  ~EventLogTest() override { fs::remove(path_); }

  void given(const std::string& text) const { std::ofstream(path_) << text; }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const fs::path path_;
};

TEST_F(EventLogTest, WhatACrashCutOffIsNotContinued) {
  given("{\"event\":\"note\"}\n{\"event\":\"epo");

  EventLog log(path_);
  EXPECT_EQ(text(), "{\"event\":\"note\"}\n");

  static_cast<RunObserver&>(log).noted("on");
  EXPECT_NE(text().find("}\n{"), std::string::npos) << text();
}

TEST_F(EventLogTest, CutsBackOneFitAndDropsWhatIsNoEvent) {
  const std::string kept =
      "{\"epoch\":1,\"fit\":\"a\"}\n{\"epoch\":2,\"fit\":\"b\"}\n{\"event\":\"note\"}\n"
      "{\"epoch\":\"two\",\"fit\":\"a\"}\n{\"epoch\":2,\"fit\":7}\n";
  given("{\"epoch\":2,\"fit\":\"a\"}\n[1, 2]\n7\n\nnull\n" + kept);
  EventLog log(path_);

  log.cut_back("a", 1);

  EXPECT_EQ(text(), kept);
}

}  // namespace
}  // namespace treadle::internal
