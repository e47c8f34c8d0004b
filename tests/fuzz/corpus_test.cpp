// The corpus, in every build: what a fuzzer found once stays mended.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "targets.h"

namespace treadle::fuzz {
namespace {

namespace fs = std::filesystem;

struct Input {
  Target target;
  fs::path file;
};

std::vector<Input> inputs() {
  std::vector<Input> all;
  for (const Target& target : targets()) {
    for (const fs::directory_entry& entry :
         fs::directory_iterator(fs::path(TREADLE_FUZZ_CORPUS) / target.name)) {
      all.push_back({target, entry.path()});
    }
  }
  std::sort(all.begin(), all.end(), [](const Input& a, const Input& b) { return a.file < b.file; });
  return all;
}

TEST(FuzzCorpus, HasInputsForEachTarget) {
  const std::vector<Input> all = inputs();

  for (const Target& target : targets()) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&target](const Input& input) {
      return input.target.name == target.name;
    })) << target.name;
  }
}

TEST(FuzzCorpus, BreaksNoPromise) {
  for (const Input& input : inputs()) {
    std::ifstream stream(input.file, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(stream), {});

    EXPECT_NO_THROW(input.target.run(bytes)) << input.file;
  }
}

// A target that lets everything pass would find nothing.
TEST(FuzzTargets, NoticeABrokenPromise) {
  EXPECT_THROW(promise(false, "two and two is five"), BrokenPromise);
  EXPECT_THROW(promise_readable("", 10), BrokenPromise);
  EXPECT_THROW(promise_readable("too long for this", 10), BrokenPromise);
  EXPECT_THROW(promise_readable("a\x1b[2Jb", 10), BrokenPromise);
  EXPECT_THROW(promise_readable("\xff", 10), BrokenPromise);
  EXPECT_NO_THROW(promise_readable("expected 5 µs", 20));
}

}  // namespace
}  // namespace treadle::fuzz
