#include <treadle/host/catalog/plugin_lock.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>

#include "test/fake_library.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

// printf abc | sha256sum
constexpr const char* kSha256OfAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class PluginLockTest : public ::testing::Test {
 protected:
  PluginFile given(const std::string& id, const std::string& bytes = "abc") {
    PluginFile plugin;
    plugin.file = folder_.write(id + ".so", bytes);
    plugin.manifest.id = id;
    plugin.manifest.version = "1.0.0";
    plugin.build_id = "cafe";
    return plugin;
  }

  std::string complaint(const PluginLock& lock, const PluginFile& plugin) {
    const PluginFile* plugins[] = {&plugin};
    try {
      lock.expect(plugins, "my.lock");
    } catch (const PluginError& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
};

TEST_F(PluginLockTest, ComesBackFromItsText) {
  const PluginFile one = given("org.one");
  const PluginFile two = given("org.two", "");
  const PluginFile* plugins[] = {&two, &one};
  const PluginLock lock = PluginLock::of(plugins);

  const PluginLock read = PluginLock::read(folder_.write("plugins.lock", lock.text()));

  ASSERT_EQ(read.entries().size(), 2u);
  EXPECT_EQ(read.entries()[0], (PluginLock::Entry{"org.one", "1.0.0", "cafe", kSha256OfAbc}));
  EXPECT_EQ(read.entries()[1].id, "org.two");
}

TEST_F(PluginLockTest, AcceptsWhatItNamesAndNothingElse) {
  const PluginFile one = given("org.one");
  const PluginFile* plugins[] = {&one};
  const PluginLock lock = PluginLock::of(plugins);
  PluginFile newer = one;
  newer.manifest.version = "1.0.1";
  newer.build_id = "beef";

  EXPECT_EQ(complaint(lock, one), "");
  EXPECT_EQ(complaint(lock, given("org.two")),
            "plugin org.two 1.0.0 (" + (folder_.path() / "org.two.so").string() +
                ") is not named in my.lock; restore that one, or run without --locked");
  EXPECT_EQ(
      complaint(lock, newer),
      "plugin org.one 1.0.1 (" + one.file.string() +
          ") is not the one my.lock names (version 1.0.0, here 1.0.1, build cafe, here beef); "
          "restore that one, or run without --locked");
}

TEST_F(PluginLockTest, NoticesOneOtherByte) {
  const PluginFile one = given("org.one");
  const PluginFile* plugins[] = {&one};
  const PluginLock lock = PluginLock::of(plugins);
  given("org.one", "abd");

  EXPECT_THAT(complaint(lock, one),
              ::testing::HasSubstr(std::string("(SHA-256 ") + kSha256OfAbc + ", here "));
}

TEST_F(PluginLockTest, SaysThatAFileIsNoLock) {
  const fs::path file = folder_.write("other.json", "{\"treadle\": 1}");

  try {
    PluginLock::read(file);
    FAIL() << "it was read";
  } catch (const DocumentError& error) {
    EXPECT_EQ(std::string(error.what()),
              file.string() +
                  ": is not a lock file; make one with `workflow-runner plugins lock`, or take "
                  "plugins.lock from a run's folder");
  }
}

}  // namespace
}  // namespace treadle
