#include <treadle/host/catalog/search_path.h>

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "test/fake_environment.h"
#include "test/fake_library.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;

std::vector<std::string> described(const std::vector<SearchFolder>& folders) {
  std::vector<std::string> texts;
  for (const SearchFolder& folder : folders) {
    texts.push_back(folder.origin + " " + folder.folder.string());
  }
  return texts;
}

TEST(SearchPath, BeginsWithTheCommandLineAndEndsWithTheInstalledFolder) {
  const TemporaryFolder folder;
  const fs::path given[] = {folder.path()};

  const auto path = search_path(
      given, "/usr/lib",
      environment(
          {{"TREADLE_PLUGIN_PATH", "/a:/b/"}, {"XDG_DATA_HOME", "/data"}, {"HOME", "/home/me"}}));

  EXPECT_THAT(
      described(path),
      ::testing::ElementsAre("--plugin-dir " + folder.path().string(), "TREADLE_PLUGIN_PATH /a",
                             "TREADLE_PLUGIN_PATH /b/", "user /data/treadle/plugins",
                             "installed /usr/lib/treadle/plugins/0"));
}

TEST(SearchPath, FollowsTheXdgRulesForTheUsersFolder) {
  EXPECT_THAT(described(search_path({}, "/l", environment({{"HOME", "/home/me"}}))),
              ::testing::Contains("user /home/me/.local/share/treadle/plugins"));
  EXPECT_THAT(described(search_path({}, "/l",
                                    environment({{"HOME", "/home/me"}, {"XDG_DATA_HOME", "rel"}}))),
              ::testing::Contains("user /home/me/.local/share/treadle/plugins"));
  EXPECT_EQ(search_path({}, "/l", environment({})).size(), 1u);
}

TEST(SearchPath, RefusesAPluginDirThatIsNotThere) {
  const fs::path given[] = {"/no/such/folder"};
  try {
    search_path(given, "/l", environment({}));
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--plugin-dir /no/such/folder: there is no such folder");
  }
}

TEST(SearchPath, RefusesEntriesOfTheVariableThatAreNotAbsolute) {
  for (const std::string entry : {"plugins", ""}) {
    try {
      search_path({}, "/l", environment({{"TREADLE_PLUGIN_PATH", entry + ":/a"}}));
      FAIL() << "accepted";
    } catch (const UsageError& error) {
      EXPECT_EQ(
          std::string(error.what()),
          "TREADLE_PLUGIN_PATH: expected absolute folders between colons, got \"" + entry + "\"");
    }
  }
}

TEST(SearchPath, PutsTheCacheWhereCachesBelong) {
  EXPECT_EQ(default_cache_file(environment({{"XDG_CACHE_HOME", "/c"}})), "/c/treadle/plugins.json");
  EXPECT_EQ(default_cache_file(environment({{"HOME", "/h"}})), "/h/.cache/treadle/plugins.json");
  EXPECT_EQ(default_cache_file(environment({})), "");
}

TEST(SearchPath, LooksOneFolderDeepAndIgnoresWhatIsHidden) {
  const TemporaryFolder folder;
  for (const char* name : {"b.so", "a.so", "bundle/c.so", "bundle/data/d.so", ".hidden.so",
                           ".git/e.so", "a.so.1", "readme.txt"}) {
    folder.write(name, "x");
  }
  fs::create_directory(folder.path() / "folder.so");
  const TemporaryFolder elsewhere;
  elsewhere.write("f.so", "x");
  fs::create_directory_symlink(elsewhere.path(), folder.path() / "linked");
  fs::create_symlink(elsewhere.path() / "f.so", folder.path() / "link.so");

  std::vector<std::string> names;
  for (const fs::path& file : plugin_files(folder.path())) {
    names.push_back(file.lexically_relative(folder.path()).string());
  }

  EXPECT_THAT(names, ::testing::ElementsAre("a.so", "b.so", "bundle/c.so", "link.so"));
  EXPECT_TRUE(plugin_files(folder.path() / "absent").empty());
}

TEST(SearchPath, DistrustsWhatEveryoneMayWrite) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("in/a.so", "x");
  const fs::path target = folder.write("open/b.so", "x");
  fs::create_symlink(target, folder.path() / "in/link.so");
  const auto open = [](const fs::path& path) {
    fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  };
  const auto remedy = [](const fs::path& path) {
    return "can be written by everyone (mode " +
           std::string(fs::is_directory(path) ? "0757" : "0646") + "); run `chmod o-w " +
           path.string() + "` or allow it with --allow-writable-plugins";
  };
  fs::permissions(folder.path() / "in", fs::perms(0755));
  fs::permissions(folder.path() / "open", fs::perms(0755));
  fs::permissions(file, fs::perms(0644));
  fs::permissions(target, fs::perms(0644));

  EXPECT_EQ(writable_by_others(file), "");
  EXPECT_EQ(writable_by_others(folder.path() / "in/link.so"), "");

  open(target);
  EXPECT_EQ(writable_by_others(folder.path() / "in/link.so"),
            "links to " + target.string() + ", which " + remedy(target));
  open(file);
  EXPECT_EQ(writable_by_others(file), remedy(file));
  fs::permissions(file, fs::perms(0644));
  open(folder.path() / "in");
  EXPECT_EQ(writable_by_others(file), "lies in " + (folder.path() / "in").string() + ", which " +
                                          remedy(folder.path() / "in"));
}

}  // namespace
}  // namespace treadle
