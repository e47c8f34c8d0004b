#include <treadle/host/catalog/plugin_cache.h>

#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "test/fake_library.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using testing::FakeLibrary;
using testing::TemporaryFolder;

std::string plugin_bytes(const std::string& id) {
  FakeLibrary library;
  library.manifest =
      R"({"manifest_version": 1, "id": ")" + id +
      R"(", "version": "1.0.0", "summary": "s", "license": "MIT", "components": [)"
      R"({"interface": "treadle.loss/0", "name": "l", "summary": "t", "schema": {}}]})";
  library.fingerprint = "libtorch=1\n";
  library.needed = {"libc.so.6"};
  return library.bytes();
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  return text.replace(text.find(what), what.size(), with);
}

class PluginCacheTest : public ::testing::Test {
 protected:
  fs::path cache_file() const { return folder_.path() / "cache/treadle/plugins.json"; }

  void remember(const fs::path& file) const {
    PluginCache cache(cache_file());
    cache.facts(file);
    cache.save();
  }

  TemporaryFolder folder_;
};

TEST_F(PluginCacheTest, TellsTheSameWithoutReadingTheFileAgain) {
  const fs::path file = folder_.write("a.so", plugin_bytes("org.example.a"));
  remember(file);
  // The same stamp over other bytes shows who is asked: only the cache still knows "a". A rename
  // would change the change time; so the cache is edited instead.
  std::string text = text_of(cache_file());
  text.replace(text.find("org.example.a"), 13, "org.example.b");
  std::ofstream(cache_file(), std::ios::trunc) << text;

  PluginCache cache(cache_file());
  const FileFacts* facts = cache.facts(file);

  ASSERT_NE(facts, nullptr);
  EXPECT_EQ(facts->manifest.id, "org.example.b");
  EXPECT_EQ(facts->manifest.version, "1.0.0");
  EXPECT_EQ(facts->manifest.components,
            (std::vector<ManifestComponent>{{"treadle.loss/0", "l", "t"}}));
  EXPECT_EQ(*facts->fingerprint, "libtorch=1\n");
  EXPECT_EQ(facts->needed, std::vector<std::string>{"libc.so.6"});
  EXPECT_EQ(facts->build_id, "01ab");
  EXPECT_EQ(facts->problem, "");
}

TEST_F(PluginCacheTest, ReadsAFileAgainThatWasReplaced) {
  const fs::path file = folder_.write("a.so", plugin_bytes("org.example.a"));
  remember(file);
  fs::rename(folder_.write("new", plugin_bytes("org.example.b")), file);

  PluginCache cache(cache_file());

  EXPECT_EQ(cache.facts(file)->manifest.id, "org.example.b");
}

TEST_F(PluginCacheTest, RemembersProblems) {
  const fs::path file = folder_.write("a.so", "text");
  remember(file);

  PluginCache cache(cache_file());

  EXPECT_NE(text_of(cache_file()).find("does not begin with an ELF header"), std::string::npos);
  EXPECT_EQ(cache.facts(file)->problem,
            "is not a shared library: it does not begin with an ELF header");
}

TEST_F(PluginCacheTest, HealsWhenItsFileIsDamaged) {
  const fs::path file = folder_.write("a.so", plugin_bytes("org.example.a"));
  remember(file);
  const std::string good = text_of(cache_file());

  for (const std::string& bad :
       {std::string(), std::string("["), good.substr(0, good.size() / 2), std::string("[]"),
        std::string(R"({"version": 1})"),
        std::string(R"({"version": 99, "fingerprints": [], "files": {}})"),
        std::string(R"({"version": 1, "fingerprints": [], "files": {"/a": {"stamp": 1}}})"),
        replaced(good, R"("stamp":[)", R"("stamp":[1e300,)"),
        replaced(good, R"("stamp":[)", R"("stamp":[-1,)"),
        replaced(good, R"("fingerprint":0)", R"("fingerprint":0.5)")}) {
    std::ofstream(cache_file(), std::ios::trunc) << bad;
    remember(file);
    EXPECT_EQ(text_of(cache_file()), good) << bad;
  }
}

TEST_F(PluginCacheTest, ForgetsFilesThatAreGone) {
  const fs::path gone = folder_.write("gone.so", plugin_bytes("org.example.gone"));
  remember(gone);
  fs::remove(gone);
  remember(folder_.write("a.so", plugin_bytes("org.example.a")));

  EXPECT_EQ(text_of(cache_file()).find("gone"), std::string::npos);
  EXPECT_EQ(PluginCache(cache_file()).facts(gone), nullptr);
}

TEST_F(PluginCacheTest, IsNotBelievedWhenEveryoneMayWriteIt) {
  const fs::path file = folder_.write("a.so", plugin_bytes("org.example.a"));
  remember(file);
  std::string text = text_of(cache_file());
  text.replace(text.find("org.example.a"), 13, "org.example.b");
  std::ofstream(cache_file(), std::ios::trunc) << text;
  fs::permissions(cache_file(), fs::perms::others_write, fs::perm_options::add);

  EXPECT_EQ(PluginCache(cache_file()).facts(file)->manifest.id, "org.example.a");
}

// Opening a pipe that nobody writes to would wait for ever.
TEST_F(PluginCacheTest, IsNotReadFromAPipe) {
  const fs::path file = folder_.write("a.so", plugin_bytes("org.example.a"));
  fs::create_directories(cache_file().parent_path());
  ASSERT_EQ(::mkfifo(cache_file().c_str(), 0600), 0);

  EXPECT_EQ(PluginCache(cache_file()).facts(file)->manifest.id, "org.example.a");
}

TEST_F(PluginCacheTest, WorksWithoutAPlaceToKeepIt) {
  const fs::path file = folder_.write("a.so", plugin_bytes("org.example.a"));
  folder_.write("in_the_way", "");

  for (const fs::path& place : {fs::path(), folder_.path() / "in_the_way/plugins.json"}) {
    PluginCache cache(place);
    EXPECT_EQ(cache.facts(file)->manifest.id, "org.example.a");
    EXPECT_NO_THROW(cache.save());
  }
}

}  // namespace
}  // namespace treadle
