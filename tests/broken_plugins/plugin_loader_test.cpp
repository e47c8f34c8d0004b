#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/catalog/elf_notes.h>
#include <treadle/host/run/plugin_loader.h>

namespace treadle {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kObserver = "treadle.observer/0";

fs::path library(const std::string& name) {
  return fs::path(std::getenv("TREADLE_BUILD")) / "tests/broken_plugins" / name / (name + ".so");
}

std::shared_ptr<const PluginCatalog> catalog_of(const fs::path& folder) {
  CatalogOptions options;
  options.folders = {{folder, "--plugin-dir"}};
  return PluginCatalog::scan(std::move(options));
}

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// What stands between `begin` and `end` in `text`.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

/// A folder for files that a test makes of the whole plugin.
class PluginFiles : public ::testing::Test {
 protected:
  PluginFiles() {
    std::string name = (fs::temp_directory_path() / "treadle-loading-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~PluginFiles() override { fs::remove_all(folder_); }

  /// Writes the file and returns what the catalog says of it.
  PluginFile verdict_on(const std::string& bytes) {
    file_ = folder_ / "made.so";
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bytes;
    const auto catalog = catalog_of(folder_);
    EXPECT_EQ(catalog->plugins().size(), 1u);
    return catalog->plugins().front();
  }

  fs::path folder_;
  fs::path file_;
};

/// How the whole plugin tells how often its entry ran.
struct Entries {
  static constexpr std::string_view kInterface = "treadle.test.entries/1";
};

/// The text of the PluginError that loading `listener` from the plugin `name` ends in.
std::string failure(const std::string& name) {
  const auto catalog = catalog_of(library(name).parent_path());
  PluginLoader loader(catalog);
  try {
    loader.load(loader.find(kObserver, "listener"));
  } catch (const PluginError& error) {
    return error.what();
  }
  return "(it loaded)";
}

/// "plugin org.treadle.test.whole 1.2.3 (/…/name/name.so)"
std::string subject(const std::string& name, const std::string& id = "whole") {
  return "plugin org.treadle.test." + id + " 1.2.3 (" + library(name).string() + ")";
}

TEST(PluginLoader, LoadsAPluginThatIsWhole) {
  const auto catalog = catalog_of(library("whole").parent_path());
  PluginLoader loader(catalog);

  const ComponentEntry entry = loader.find(kObserver, "listener");
  const std::unique_ptr<Component> component = loader.load(entry)(Config(), {});

  EXPECT_EQ(entry.plugin, "org.treadle.test.whole");
  EXPECT_EQ(entry.version, "1.2.3");
  EXPECT_EQ(entry.summary, "hears everything and says nothing");
  EXPECT_EQ(entry.schema["properties"]["patience"]["default"], 3);
  EXPECT_NE(component, nullptr);
}

TEST(PluginLoader, ListsNamesWithoutRunningAnything) {
  PluginLoader loader(catalog_of(library("thrower").parent_path()));

  EXPECT_THAT(loader.names(kObserver), ::testing::ElementsAre("listener"));
  EXPECT_THAT(loader.names("treadle.loss/0"), ::testing::IsEmpty());
}

TEST_F(PluginFiles, OfferAQualifiedNameWhereTwoPluginsHaveThePlainOne) {
  for (const char* name : {"whole", "same_name"})
    fs::copy_file(library(name), folder_ / (std::string(name) + ".so"));
  const PluginLoader loader(catalog_of(folder_));

  const std::vector<std::string> names = loader.names(kObserver);

  EXPECT_THAT(names, ::testing::UnorderedElementsAre("org.treadle.test.whole/listener",
                                                     "org.treadle.test.other/listener"));
  for (const std::string& name : names)
    EXPECT_EQ(loader.find(kObserver, name).qualified_name(), name);
}

TEST(PluginLoader, CallsAnEntryOnceHoweverManyThreadsAsk) {
  const auto catalog = catalog_of(library("whole").parent_path());
  PluginLoader loader(catalog);
  const ComponentEntry entry = loader.find(kObserver, "listener");
  const auto entries_so_far = [&] {
    const std::unique_ptr<Component> component = loader.load(entry)(Config(), {});
    return reinterpret_cast<std::atomic<int>*>(component->ask<Entries>())->load();
  };

  // Each loader calls it once; the library itself stays, with its memory.
  PluginLoader first(catalog);
  first.load(entry);
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  const int before = entries_so_far();
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) {
        if (!loader.load(entry))
          ++failures;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();

  EXPECT_EQ(failures, 0);
  EXPECT_EQ(entries_so_far(), before);
}

TEST(PluginLoader, RepeatsTheFailureWithoutRunningTheEntryAgain) {
  PluginLoader loader(catalog_of(library("thrower").parent_path()));
  const ComponentEntry entry = loader.find(kObserver, "listener");

  std::vector<std::string> texts;
  for (int i = 0; i < 2; ++i) {
    try {
      loader.load(entry);
    } catch (const PluginError& error) {
      texts.emplace_back(error.what());
    }
  }

  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0], texts[1]);
}

/// A plugin that cannot be loaded, and the rest of the sentence that says so.
struct Crime {
  std::string plugin;
  std::string sentence;
  std::string id = "whole";
};

const std::vector<Crime>& crimes() {
  static const std::vector<Crime> all{
      {"thrower", " failed in its entry: the license server is asleep"},
      // without libtorch's stack trace
      {"torch_thrower", " failed in its entry: no tensor core in sight"},
      {"odd_thrower",
       " failed in its entry: it threw something that is not derived from std::exception"},
      {"mute",
       " has no entry (treadle_plugin_entry_v1); one of its source files must say "
       "TREADLE_PLUGIN(registrar) { … }"},
      {"parasite", " has no entry of its own: the one found belongs to " +
                       library("whole").string() + ", which it is linked to"},
      {"smuggler",
       " registers the observer \"stowaway\", which its manifest does not list (add "
       "stowaway.schema.json beside its source)"},
      {"braggart",
       " does not register the observer \"singer\", which its manifest lists (add it to "
       "TREADLE_PLUGIN, or remove singer.schema.json)",
       "braggart"},
      {"stutterer", " failed in its entry: it registers the observer \"listener\" twice"},
      {"orphan",
       " cannot be loaded: libtreadle-broken-nowhere.so: cannot open shared object file: No such "
       "file or directory"}};
  return all;
}

TEST(PluginLoader, SaysWhyItCannotLoadAPlugin) {
  for (const Crime& crime : crimes())
    EXPECT_EQ(failure(crime.plugin), subject(crime.plugin, crime.id) + crime.sentence);
}

TEST(PluginLoader, NamesEveryDifferenceOfAForeignBuild) {
  const std::string host = catalog_of(library("whole").parent_path())->host().fingerprint;

  EXPECT_EQ(
      failure("stranger"),
      "no plugin offers the observer \"listener\"; org.treadle.test.whole 1.2.3 (" +
          library("stranger").string() +
          ") offers it but cannot be used: it was built for libtorch 99.1.0, this runner uses " +
          between(host, "libtorch=", "\n") +
          "; was built with debug containers on, this runner has them off; rebuild it against this "
          "SDK");
}

TEST(PluginLoader, RefusesANoteThatIsTooLarge) {
  const auto catalog = catalog_of(library("talks_too_much").parent_path());

  ASSERT_EQ(catalog->plugins().size(), 1u);
  EXPECT_EQ(catalog->plugins()[0].verdict, Verdict::kInvalid);
  EXPECT_EQ(catalog->plugins()[0].reason, "has a note of 307200 bytes; at most 262144 are read");
}

TEST(PluginLoader, LeavesLibrariesThatAreNoPluginsAlone) {
  const auto catalog = catalog_of(library("bystander").parent_path());

  ASSERT_EQ(catalog->plugins().size(), 1u);
  EXPECT_EQ(catalog->plugins()[0].verdict, Verdict::kNotAPlugin);
  EXPECT_EQ(catalog->plugins()[0].reason, "is a shared library without a Treadle manifest");
}

TEST_F(PluginFiles, AreInvalidWhenTheyAreText) {
  const PluginFile plugin = verdict_on("INPUT(libwhole.so.1)\n");

  EXPECT_EQ(plugin.verdict, Verdict::kInvalid);
  EXPECT_EQ(plugin.reason, "is not a shared library: it does not begin with an ELF header");
}

TEST_F(PluginFiles, AreInvalidWhenTheyWereCutShort) {
  const std::string whole = bytes_of(library("whole"));

  const PluginFile half = verdict_on(whole.substr(0, whole.size() / 2));
  const PluginFile nearly_all = verdict_on(whole.substr(0, whole.size() - 1));
  const PluginFile nothing = verdict_on("");

  EXPECT_EQ(half.verdict, Verdict::kInvalid);
  EXPECT_THAT(half.reason,
              ::testing::MatchesRegex("is truncated: (a segment|its section header table) should "
                                      "end at byte [0-9]+, the file has [0-9]+"));
  EXPECT_EQ(nearly_all.verdict, Verdict::kInvalid);
  EXPECT_EQ(nearly_all.reason, "is truncated: its section header table should end at byte " +
                                   std::to_string(whole.size()) + ", the file has " +
                                   std::to_string(whole.size() - 1));
  EXPECT_EQ(nothing.reason, "is empty");
}

TEST_F(PluginFiles, AreIncompatibleWhenMadeFor32BitMachines) {
  std::string bytes = bytes_of(library("whole"));
  bytes[4] = 1;  // EI_CLASS: ELFCLASS32

  const PluginFile plugin = verdict_on(bytes);

  EXPECT_EQ(plugin.verdict, Verdict::kIncompatible);
  const std::string machine = between(plugin.reason, "(32-bit ", ";");
  EXPECT_EQ(plugin.reason, "is for another architecture (32-bit " + machine +
                               "; this runner is 64-bit " + machine +
                               "); build it for this machine");
}

TEST_F(PluginFiles, AreIncompatibleWhenMadeForANewerSdk) {
  const std::string whole = bytes_of(library("whole"));
  const std::string key = "sdk_abi=";
  const std::size_t at = whole.find(key) + key.size();
  const std::string ours = whole.substr(at, 3);
  const auto made_for = [&](const std::string& version) {
    std::string bytes = whole;
    return verdict_on(bytes.replace(at, version.size(), version));
  };

  const PluginFile minor = made_for("0.9");
  const PluginFile major = made_for("2.0");

  EXPECT_EQ(minor.verdict, Verdict::kIncompatible);
  EXPECT_EQ(minor.reason,
            "was built for SDK ABI 0.9, this runner has " + ours + "; rebuild it against this SDK");
  EXPECT_EQ(major.verdict, Verdict::kIncompatible);
  EXPECT_EQ(major.reason,
            "was built for SDK ABI 2.0, this runner has " + ours + "; rebuild it against this SDK");
}

TEST_F(PluginFiles, AreReadAgainJustBeforeTheyRun) {
  const std::string whole = bytes_of(library("whole"));
  verdict_on(whole);
  PluginLoader loader(catalog_of(folder_));
  const ComponentEntry entry = loader.find(kObserver, "listener");
  fs::remove(file_);
  verdict_on(bytes_of(library("smuggler")));

  try {
    loader.load(entry);
    FAIL() << "it loaded";
  } catch (const PluginError& error) {
    EXPECT_EQ(std::string(error.what()), "plugin org.treadle.test.whole 1.2.3 (" + file_.string() +
                                             ") was replaced while this command ran; run it again");
  }
}

}  // namespace
}  // namespace treadle
