#include "plugins/plugin_scaffold.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/interfaces.h>

namespace treadle::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// Starts in an empty folder of its own.
class PluginScaffold : public testing::Test {
 protected:
  PluginScaffold() : before_(fs::current_path()) {
    std::string path = (fs::temp_directory_path() / "treadle-scaffold-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr)
      throw std::runtime_error("no folder for the test");
    folder_ = path;
    fs::current_path(folder_);
  }
  ~PluginScaffold() override {
    fs::current_path(before_);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  static fs::path templates() { return fs::path(std::getenv("TREADLE_SOURCE")) / "sdk/templates"; }

  static std::string read(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file, std::ios::binary) << text;
  }

  template <typename Expected>
  static std::string complaint(const NewPlugin& plugin, const fs::path& from = templates()) {
    try {
      write_plugin_project(plugin, from);
    } catch (const Expected& error) {
      return error.what();
    }
    return "no complaint";
  }

  /// Everything in the test's folder.
  std::vector<std::string> left_behind() const {
    std::vector<std::string> paths;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder_))
      paths.push_back(entry.path().lexically_relative(folder_).string());
    return paths;
  }

  const fs::path& folder() const { return folder_; }

 private:
  fs::path before_;
  fs::path folder_;
};

TEST_F(PluginScaffold, EveryInterfaceHasATemplate) {
  std::set<std::string> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(templates()))
    folders.insert(entry.path().filename().string());
  std::set<std::string> words{"common"};
  for (const InterfaceName& interface : interface_names())
    words.emplace(interface.word);

  EXPECT_EQ(folders, words);
}

TEST_F(PluginScaffold, EveryInterfaceGetsAWholeProject) {
  for (const InterfaceName& interface : interface_names()) {
    SCOPED_TRACE(interface.word);
    const auto files =
        plugin_project_files({std::string(interface.word), "two_words", "", ""}, templates());

    for (const char* file :
         {".clang-format", ".gitignore", "CMakeLists.txt", "README.md", "example.json",
          "plugin.json", "two_words.cpp", "two_words.schema.json", "test/two_words_test.cpp"})
      EXPECT_TRUE(files.contains(file)) << file;
    EXPECT_THAT(files.at("two_words.cpp"), HasSubstr("registrar.add<TwoWords>(\"two_words\");"));
    EXPECT_THAT(files.at("test/two_words_test.cpp"), HasSubstr("INSTANTIATE_TEST_SUITE_P("));
    EXPECT_THAT(files.at("README.md"),
                HasSubstr("The " + std::string(interface.word) + " `two_words`"));
    const nlohmann::json schema = nlohmann::json::parse(files.at("two_words.schema.json"));
    EXPECT_EQ(schema["x-treadle-interface"], interface.word);
    EXPECT_EQ(nlohmann::json::parse(files.at("plugin.json"))["id"], "org.example.two-words");
    const nlohmann::json example = nlohmann::json::parse(files.at("example.json"));
    EXPECT_THAT(example.dump(), HasSubstr("\"two_words\""));
  }
}

TEST_F(PluginScaffold, NoPlaceholderAndNoStrangersNameIsLeft) {
  for (const InterfaceName& interface : interface_names()) {
    const auto files =
        plugin_project_files({std::string(interface.word), "mine", "", ""}, templates());
    for (const auto& [name, text] : files) {
      SCOPED_TRACE(std::string(interface.word) + " " + name);
      EXPECT_THAT(name, Not(HasSubstr("@")));
      for (const char* word : {"@name@", "@Name@", "@id@", "@interface@"})
        EXPECT_THAT(text, Not(HasSubstr(word)));
      EXPECT_THAT(text, EndsWith("\n"));
    }
  }
}

TEST_F(PluginScaffold, WritesWhatItSays) {
  const PluginProject project =
      write_plugin_project({"optimizer", "inverse_2nd", "com.example-2.x", ""}, templates());

  EXPECT_EQ(project.folder, "inverse-2nd");
  EXPECT_THAT(project.files,
              ElementsAre(".clang-format", ".gitignore", "CMakeLists.txt", "README.md",
                          "example.json", "inverse_2nd.cpp", "inverse_2nd.schema.json",
                          "plugin.json", "test/inverse_2nd_test.cpp"));
  const auto files =
      plugin_project_files({"optimizer", "inverse_2nd", "com.example-2.x", ""}, templates());
  for (const std::string& file : project.files)
    EXPECT_EQ(read(project.folder / file), files.at(file)) << file;
  EXPECT_THAT(read("inverse-2nd/plugin.json"), HasSubstr("\"id\": \"com.example-2.x\""));
  EXPECT_THAT(read("inverse-2nd/inverse_2nd.cpp"), HasSubstr("class Inverse2nd final"));
}

TEST_F(PluginScaffold, WritesIntoAnEmptyFolderAndMakesThoseAboveIt) {
  fs::create_directory("empty");

  write_plugin_project({"loss", "mine", "", "empty"}, templates());
  write_plugin_project({"loss", "mine", "", "a/b c/ü"}, templates());
  fs::create_directory("here");
  fs::current_path("here");
  write_plugin_project({"loss", "mine", "", "."}, templates());

  EXPECT_TRUE(fs::exists(folder() / "empty/mine.cpp"));
  EXPECT_TRUE(fs::exists(folder() / "a/b c/ü/test/mine_test.cpp"));
  EXPECT_TRUE(fs::exists(folder() / "here/mine.cpp"));
}

TEST_F(PluginScaffold, AnInterfacesFileWinsOverTheCommonOne) {
  write("templates/common/both.txt", "common @name@\n");
  write("templates/common/one.txt", "common\n");
  write("templates/loss/both.txt", "@interface@ @Name@ of @id@, me@example.org\n");

  const auto files = plugin_project_files({"loss", "my_own", "", ""}, "templates");

  EXPECT_EQ(files.size(), 2U);
  EXPECT_EQ(files.at("both.txt"), "loss MyOwn of org.example.my-own, me@example.org\n");
  EXPECT_EQ(files.at("one.txt"), "common\n");
}

TEST_F(PluginScaffold, RefusesAnInterfaceThatIsNone) {
  EXPECT_EQ(
      complaint<UsageError>({"optimiser", "lion", "", ""}),
      "there is no interface \"optimiser\"; did you mean \"optimizer\"?\n"
      "there are data, tokenizer, sequence, transform, validation, model, layer, graph, loss, "
      "gradients, optimizer, schedule, metric, output, training, sampler, callback, device, "
      "communicator, writer, observer, tuner, storage, pruner");
  EXPECT_THAT(complaint<UsageError>({"common", "lion", "", ""}),
              StartsWith("there is no interface \"common\"\n"));
  EXPECT_THAT(complaint<UsageError>({"../loss", "lion", "", ""}),
              StartsWith("there is no interface \"../loss\"\n"));
  EXPECT_THAT(left_behind(), IsEmpty());
}

TEST_F(PluginScaffold, RefusesNamesThatAreNotInSnakeCase) {
  for (const std::string name : {"", "Lion", "my-lion", "_lion", "lion_", "my__lion", "2lion",
                                 "löwe", "lion ", "a/b", "lion\n"}) {
    EXPECT_THAT(complaint<UsageError>({"loss", name, "", ""}),
                StartsWith("NAME must be in snake_case, lower case letters and digits, such as "
                           "\"inverse_sqrt\", got \""))
        << name;
  }
  EXPECT_EQ(complaint<UsageError>({"loss", "Lion", "", ""}),
            "NAME must be in snake_case, lower case letters and digits, such as \"inverse_sqrt\", "
            "got \"Lion\"");
  EXPECT_THAT(left_behind(), IsEmpty());
}

TEST_F(PluginScaffold, RefusesIdsThatAreNoReversedDomains) {
  for (const std::string id : {"lion", "org.Example.lion", ".lion", "org.", "org..lion",
                               "org.example.my_lion", "1org.example", "org.exämple"}) {
    EXPECT_THAT(complaint<UsageError>({"loss", "lion", id, ""}),
                StartsWith("--id must be a reversed domain name in lower case, such as "
                           "\"org.example.optimizers\", got \""))
        << id;
  }
  EXPECT_EQ(complaint<UsageError>({"loss", "lion", "lion", ""}),
            "--id must be a reversed domain name in lower case, such as "
            "\"org.example.optimizers\", got \"lion\"");
  EXPECT_THAT(left_behind(), IsEmpty());
}

TEST_F(PluginScaffold, RefusesAFolderWithSomethingInIt) {
  write("mine/.hidden", "");
  write("file", "");

  EXPECT_EQ(complaint<UsageError>({"loss", "mine", "", ""}),
            "mine: there is something in it; name a folder that is new or empty with --dir");
  EXPECT_EQ(complaint<UsageError>({"loss", "mine", "", "file"}),
            "file: is a file; name a folder that is new or empty with --dir");
  EXPECT_EQ(left_behind().size(), 3U);
}

TEST_F(PluginScaffold, SaysWhatIsMissingWhereThereAreNoTemplates) {
  EXPECT_EQ(complaint<PluginError>({"loss", "mine", "", ""}, "nowhere"),
            "nowhere/common: the templates for new plugins are not there (No such file or "
            "directory); they belong to the development files of Treadle: install its package "
            "treadle-dev");
  EXPECT_THAT(left_behind(), IsEmpty());
}

TEST_F(PluginScaffold, AnUnknownPlaceholderIsOurMistake) {
  write("templates/common/a.txt", "@name@ @nmae@\n");
  write("templates/loss/b.txt", "\n");

  EXPECT_THAT(complaint<ContractViolation>({"loss", "mine", "", ""}, "templates"),
              HasSubstr("templates/common/a.txt has an unknown placeholder: @nmae@"));
  EXPECT_FALSE(fs::exists("mine"));
}

TEST_F(PluginScaffold, LeavesNothingBehindWhenTheDiskRefuses) {
  write("templates/common/a.txt", "a\n");
  write("templates/common/sub/b.txt", "b\n");
  // No file system has names as long as this one.
  write("templates/loss/@name@@name@.txt", "c\n");
  const std::string name(200, 'n');

  EXPECT_THAT(complaint<StorageError>({"loss", name, "", "above/mine"}, "templates"),
              HasSubstr("above/mine/" + name + name + ".txt"));

  EXPECT_FALSE(fs::exists("above"));
}

TEST_F(PluginScaffold, LeavesAFolderThatWasThereWhenTheDiskRefuses) {
  write("templates/common/a.txt", "a\n");
  write("templates/loss/@name@@name@.txt", "c\n");
  fs::create_directory("mine");

  EXPECT_NE(complaint<StorageError>({"loss", std::string(200, 'n'), "", "mine"}, "templates"),
            "no complaint");

  EXPECT_TRUE(fs::is_empty("mine"));
}

TEST(PluginScaffoldText, SaysWhatToTypeNext) {
  const PluginProject plain{"my-lion", {"a.txt", "b/c.txt"}};
  const PluginProject odd{"it's mine", {}};

  EXPECT_THAT(next_commands(plain, ""),
              ElementsAre("cmake -S my-lion -B my-lion/build", "cmake --build my-lion/build",
                          "ctest --test-dir my-lion/build --output-on-failure"));
  EXPECT_THAT(next_commands(odd, "/opt/my treadle"),
              ElementsAre("cmake -S 'it'\\''s mine' -B 'it'\\''s mine/build' "
                          "-DCMAKE_PREFIX_PATH='/opt/my treadle'",
                          "cmake --build 'it'\\''s mine/build'",
                          "ctest --test-dir 'it'\\''s mine/build' --output-on-failure"));
  EXPECT_EQ(project_text(plain, {"one", "two"}),
            "Wrote my-lion:\n  a.txt\n  b/c.txt\n\nNext:\n  one\n  two\n\n"
            "README.md there describes its use.\n");
}

TEST(PluginScaffoldText, SaysTheSameToPrograms) {
  const PluginProject project{"/tmp/x/../my-lion", {"a.txt"}};

  EXPECT_EQ(project_json(project, {"one"}),
            (nlohmann::json{{"folder", "/tmp/my-lion"}, {"files", {"a.txt"}}, {"next", {"one"}}}));
}

}  // namespace
}  // namespace treadle::cli
