// What docs/guide shows is done as it stands there. By the word behind the fence of a fragment:
//   json         a document, or a piece of one: checked with its data
//   json FILE    (csv FILE) a file the fragments after it may use; written, not checked
//   sh           commands that must succeed
//   console      `$ command`, and below it exactly what it prints
//   cpp, cmake   lines of examples/embed, which another test builds
// On a page that types `plugins new`, what follows are lines of that project: cpp, cmake and json
// are looked for there. So they are on a page with a comment `lines of FOLDER`. tests/consumer
// builds, tests and runs the same projects under other names. In commands
// `runs/NAME-20300501-101500` stands for the first run of that name.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>

#include <gmock/gmock.h>

#include "command_fixture.h"
#include "guide_page.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Guide : public CommandFixture {
 protected:
  Guide() {
    fs::copy(source() / "examples", folder() / "examples", fs::copy_options::recursive);
    set("PATH", fs::path(runner()).parent_path().string() + ":" + std::getenv("PATH"));
  }

  static fs::path source() { return std::getenv("TREADLE_SOURCE"); }

  /// Markdown files of a folder and below, sorted.
  static std::vector<fs::path> pages(const fs::path& root) {
    std::vector<fs::path> found;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
      if (entry.path().extension() == ".md")
        found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  static std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    const std::regex word("[a-z]+");
    for (std::sregex_iterator one(text.begin(), text.end(), word), end; one != end; ++one)
      words.push_back(one->str());
    return words;
  }

  /// A page begins: what another one showed is nothing to it.
  void turn_page(const std::string& text) {
    const std::string comment = "<!-- lines of ";
    const std::size_t at = text.find(comment);
    project_.clear();
    if (at != std::string::npos) {
      const std::size_t begin = at + comment.size();
      project_ = source() / text.substr(begin, text.find(" -->", begin) - begin);
    }
  }

  void perform(const Fragment& fragment) {
    static const std::set<std::string> files{"json", "csv"};
    static const std::set<std::string> excerpts{"cpp", "cmake", "json"};
    if (!fragment.word.empty()) {
      EXPECT_TRUE(files.contains(fragment.language))
          << "a fragment of \"" << fragment.language << " " << fragment.word
          << "\": nothing here tests such a one";
      write(fragment.word, fragment.text);
    } else if (!project_.empty() && excerpts.contains(fragment.language)) {
      EXPECT_TRUE(is_excerpt(fragment.text, project_))
          << "no file that `plugins new` wrote has these lines:\n"
          << fragment.text;
    } else if (fragment.language == "json") {
      check_document(fragment.text);
    } else if (fragment.language == "sh") {
      for (const std::string& line : lines_of(fragment.text)) {
        const Finished done = type(line);
        EXPECT_EQ(done.code, 0) << line << "\n" << done.err;
        remember_project(line, done.out);
      }
    } else if (fragment.language == "console") {
      compare(fragment.text);
    } else if (fragment.language == "cpp") {
      EXPECT_THAT(read(source() / "examples/embed/main.cpp"), testing::HasSubstr(fragment.text));
    } else if (fragment.language == "cmake") {
      EXPECT_THAT(read(source() / "examples/embed/CMakeLists.txt"),
                  testing::HasSubstr(fragment.text));
    } else {
      ADD_FAILURE() << "a fragment of \"" << fragment.language
                    << "\": nothing here tests such a one";
    }
  }

 private:
  Finished type(std::string line) {
    const std::string stand_in = "-20300501-101500";
    for (std::size_t at = line.find(stand_in); at != std::string::npos; at = line.find(stand_in)) {
      const std::size_t begin = line.rfind("runs/", at) + 5;
      line.replace(begin, at + stand_in.size() - begin, first_run(line.substr(begin, at - begin)));
    }
    return run_program({"sh", "-c", line});
  }

  std::string first_run(const std::string& name) const {
    std::set<std::string> runs;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder() / "runs")) {
      if (entry.path().filename().string().starts_with(name + "-"))
        runs.insert(entry.path().filename().string());
    }
    return runs.empty() ? "there-is-no-run-of-" + name : *runs.begin();
  }

  void check_document(const std::string& text) {
    if (text.starts_with("{")) {
      write("shown.json", text);
    } else {
      json document{{"treadle", 1}, {"data", "moons"}, {"model", "mlp"}};
      document.update(json::parse("{" + text + "}"));
      write("shown.json", document.dump(2));
    }

    const Finished done = run({"check", "shown.json", "--dry-run"});

    EXPECT_EQ(done.code, 0) << text << "\n" << done.err;
  }

  void compare(const std::string& text) {
    for (const auto& [command, expected] : commands_in(text)) {
      const Finished done = type(command);
      EXPECT_EQ(done.out + done.err, expected) << command;
    }
  }

  /// `plugins new` prints "Wrote FOLDER:" first.
  void remember_project(const std::string& command, const std::string& printed) {
    if (command.find("plugins new") == std::string::npos)
      return;
    const std::string first = printed.substr(0, printed.find(":\n"));
    ASSERT_TRUE(first.starts_with("Wrote ")) << printed;
    project_ = folder() / first.substr(6);
  }

  fs::path project_;  // where the lines are: what `plugins new` wrote last on this page
};

TEST_F(Guide, DoesWhatItShows) {
  for (const fs::path& page : pages(source() / "docs/guide")) {
    const std::string text = read(page);
    turn_page(text);
    for (const Fragment& fragment : fragments_of(text)) {
      SCOPED_TRACE(page.lexically_relative(source()).string() + ":" +
                   std::to_string(fragment.line));
      perform(fragment);
    }
  }
}

TEST_F(Guide, IndexNamesEveryPage) {
  const fs::path guide = source() / "docs/guide";
  for (const fs::path& page : pages(guide)) {
    const bool is_index = page.filename() == "README.md";
    if (page == guide / "README.md")
      continue;
    const fs::path folder = is_index ? page.parent_path().parent_path() : page.parent_path();

    EXPECT_THAT(links_in(read(folder / "README.md")),
                testing::Contains(page.lexically_relative(folder).string()));
  }
}

TEST_F(Guide, HasAPageForEachInterface) {
  const fs::path folder = source() / "docs/guide/plugins";
  for (const fs::directory_entry& entry : fs::directory_iterator(source() / "sdk/templates")) {
    const std::string interface_word = entry.path().filename().string();
    if (interface_word == "common")
      continue;
    const std::string page = read(folder / (interface_word + ".md"));

    std::vector<std::string> languages;
    for (const Fragment& fragment : fragments_of(page))
      languages.push_back(fragment.language);

    EXPECT_THAT(page, testing::HasSubstr("plugins new " + interface_word + " "));
    EXPECT_THAT(languages, testing::Contains("cpp")) << interface_word;
  }
}

TEST_F(Guide, LinksLeadSomewhere) {
  std::vector<fs::path> all{source() / "README.md", source() / "CONTRIBUTING.md"};
  for (const char* part : {"apps", "docs", "framework", "plugins", "sdk", "tests"}) {
    const std::vector<fs::path> some = pages(source() / part);
    all.insert(all.end(), some.begin(), some.end());
  }

  for (const fs::path& page : all) {
    for (const std::string& link : links_in(read(page)))
      EXPECT_TRUE(fs::exists(page.parent_path() / link)) << page << " links to " << link;
  }
}

TEST_F(Guide, DocumentsEveryOptionWhereItsCommandIs) {
  // What stands about each command: its rows of the first table, and the sections titled with it.
  const std::string page = "\n" + read(source() / "docs/guide/command-line.md");
  std::vector<std::string> sections;
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t next = page.find("\n## ", at + 1);
    sections.push_back(page.substr(at, next - at));
    at = next;
  }
  std::map<std::string, std::string> about;
  const std::regex row("\\| `([a-z]+( [a-z]+)?)[ `].*");
  for (const std::string& line : lines_of(sections.at(0))) {
    if (std::smatch found; std::regex_match(line, found, row))
      about[found[1]] += line + "\n";
  }
  ASSERT_EQ(sections.at(1).find("\n## Options that several commands have"), 0U);
  for (auto& [command, text] : about) {
    text += sections[1];
    const std::vector<std::string> words = words_of(command);
    for (const std::string& section : sections) {
      const std::vector<std::string> title = words_of(section.substr(1, section.find('\n', 1) - 1));
      if (std::all_of(words.begin(), words.end(), [&](const std::string& word) {
            return std::find(title.begin(), title.end(), word) != title.end();
          }))
        text += section;
    }
  }
  ASSERT_TRUE(about.contains("run") && about.contains("plugins new"));

  for (const auto& [command, text] : about) {
    std::vector<std::string> help = words_of(command);
    help.emplace_back("--help");
    const std::string options = run(help).out;
    const std::regex option("\n  (?:-., |    )(--[a-z-]+)");
    for (std::sregex_iterator one(options.begin(), options.end(), option), end; one != end; ++one) {
      const std::string name = (*one)[1];
      if (name != "--help") {
        EXPECT_TRUE(std::regex_search(text, std::regex(name + "[` ]"))) << command << " " << name;
      }
    }
  }
}

TEST_F(Guide, IndexOfTestsNamesEveryFolder) {
  const std::string index = read(source() / "tests/README.md");
  for (const fs::directory_entry& entry : fs::directory_iterator(source() / "tests")) {
    if (entry.is_directory()) {
      EXPECT_THAT(index, testing::HasSubstr("\n| `" + entry.path().filename().string() + "/` |"));
    }
  }
}

TEST_F(Guide, NamesEveryComponentAndNoOther) {
  std::set<std::string> named;
  std::string interface_word;
  for (const std::string& line : lines_of(read(source() / "docs/guide/components.md"))) {
    if (line.starts_with("## "))
      interface_word = line.substr(3);
    if (line.starts_with("| `"))
      named.insert(interface_word + " " + line.substr(3, line.find('`', 3) - 3));
  }

  std::set<std::string> offered;
  const json listing = run({"plugins", "list", "--json"}).json();
  for (const json& plugin : listing.at("plugins")) {
    for (const json& component : plugin.at("components")) {
      offered.insert(component.at("interface").get<std::string>() + " " +
                     component.at("name").get<std::string>());
    }
  }

  EXPECT_FALSE(offered.empty());
  // Not built under sanitizers, and where a library is missing.
  for (const char* optional :
       {"tokenizer sentencepiece", "communicator gloo", "communicator mpi",
        "model gradient_boosted_trees", "training boosting", "data sqlite", "writer sqlite",
        "storage sqlite", "data postgresql", "writer postgresql", "storage postgresql",
        "data parquet", "writer parquet", "data images", "data idx"}) {
    if (offered.count(optional) == 0)
      named.erase(optional);
  }
  EXPECT_EQ(named, offered);
}

}  // namespace
}  // namespace treadle
