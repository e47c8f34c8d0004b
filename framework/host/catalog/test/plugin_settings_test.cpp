#include <treadle/host/catalog/plugin_settings.h>

#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>

#include "test/fake_environment.h"
#include "test/fake_library.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::TemporaryFolder;

EnvironmentReader at_home(std::map<std::string, std::string> variables) {
  variables.emplace("HOME", "/home/me");
  return environment(std::move(variables));
}

std::string complaint(const PluginSettings& settings,
                      std::map<std::string, std::string> variables = {}) {
  try {
    catalog_options(settings, at_home(std::move(variables)));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(no complaint)";
}

TEST(PluginSettings, TryOutWhatChangedWhereNothingIsSaid) {
  const CatalogOptions options = catalog_options({}, at_home({}));

  EXPECT_EQ(options.probing, Probing::kChanged);
  EXPECT_EQ(options.probe.limit, std::chrono::seconds(10));
  EXPECT_EQ(options.probe.program.filename(), "treadle-probe");
  EXPECT_EQ(options.cache_file, "/home/me/.cache/treadle/plugins.json");
  EXPECT_FALSE(options.allow_writable);
  EXPECT_THAT(options.disabled, ElementsAre());
}

TEST(PluginSettings, AreReadFromTheEnvironment) {
  const CatalogOptions options =
      catalog_options({}, at_home({{"TREADLE_PLUGIN_SYSTEM_PATH", "/a:/b"},
                                   {"TREADLE_PLUGIN_DISABLE", "org.one,org.two"},
                                   {"TREADLE_PLUGIN_ALLOW", "org.three"},
                                   {"TREADLE_PLUGIN_CACHE", "off"},
                                   {"TREADLE_PLUGIN_PROBE", "never"},
                                   {"TREADLE_PLUGIN_PROBE_TIMEOUT_MS", "250"}}));

  ASSERT_EQ(options.folders.size(), 3u);
  EXPECT_EQ(options.folders[1].folder, "/a");
  EXPECT_EQ(options.folders[2].folder, "/b");
  EXPECT_EQ(options.folders[2].origin, "TREADLE_PLUGIN_SYSTEM_PATH");
  EXPECT_THAT(options.disabled, ElementsAre("org.one", "org.two"));
  EXPECT_THAT(options.only, ElementsAre("org.three"));
  EXPECT_EQ(options.cache_file, "");
  EXPECT_EQ(options.probing, Probing::kNever);
  EXPECT_EQ(options.probe.limit, std::chrono::milliseconds(250));
}

TEST(PluginSettings, GivenByTheCallerWin) {
  const TemporaryFolder folder;
  const fs::path file = folder.write("one.so", "");
  PluginSettings settings;
  settings.plugins = {file};
  settings.probing = "always";

  const CatalogOptions options =
      catalog_options(settings, at_home({{"TREADLE_PLUGIN_PROBE", "never"}}));

  EXPECT_EQ(options.probing, Probing::kAlways);
  EXPECT_THAT(options.files, ElementsAre(file));
}

TEST(PluginSettings, RefuseALockThatCannotBeRead) {
  const TemporaryFolder folder;
  for (const fs::path& file : {folder.path() / "no.lock", folder.write("damaged.lock", "{\"a"),
                               folder.write("other.lock", "{}")}) {
    PluginSettings settings;
    settings.lock_file = file;
    try {
      catalog_options(settings, at_home({}));
      ADD_FAILURE() << file << " was taken";
    } catch (const PluginError& error) {
      EXPECT_THAT(error.what(), ::testing::StartsWith("--locked " + file.string() + ":"));
    }
  }
}

TEST(PluginSettings, ComplainInOneSentence) {
  PluginSettings file;
  file.plugins = {"/no/such.so"};
  PluginSettings word;
  word.probing = "sometimes";

  EXPECT_EQ(complaint(file), "--plugin /no/such.so: there is no such file");
  const TemporaryFolder folder;
  PluginSettings whole_folder;
  whole_folder.plugins = {folder.path()};
  EXPECT_EQ(complaint(whole_folder),
            "--plugin " + folder.path().string() +
                ": is a folder; name a plugin in it, or all of them with --plugin-dir " +
                folder.path().string());
  EXPECT_EQ(complaint(word),
            "--probe: expected \"changed\", \"always\" or \"never\", got \"sometimes\"");
  EXPECT_EQ(complaint({}, {{"TREADLE_PLUGIN_PROBE", "often"}}),
            "TREADLE_PLUGIN_PROBE: expected \"changed\", \"always\" or \"never\", got \"often\"");
  EXPECT_EQ(complaint({}, {{"TREADLE_PLUGIN_PROBE_TIMEOUT_MS", "10s"}}),
            "TREADLE_PLUGIN_PROBE_TIMEOUT_MS: expected milliseconds between 1 and 3600000, got "
            "\"10s\"");
  EXPECT_EQ(complaint({}, {{"TREADLE_PLUGIN_CACHE", "here.json"}}),
            "TREADLE_PLUGIN_CACHE: expected an absolute path or \"off\", got \"here.json\"");
  EXPECT_EQ(complaint({}, {{"TREADLE_PLUGIN_SYSTEM_PATH", "/a:b"}}),
            "TREADLE_PLUGIN_SYSTEM_PATH: expected absolute folders between colons, got \"b\"");
}

}  // namespace
}  // namespace treadle
