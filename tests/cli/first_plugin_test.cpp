// docs/guide/your-first-plugin.md is done as it stands there, from top to bottom, by somebody who
// has installed Treadle into a new home. What a fragment is, the word behind its fence says:
//
// - sh repository: typed in a checkout. Only the installation is done; the rest has been, to build
//   this test.
// - sh: must succeed; `cd` and `export` hold for what comes after.
// - console: `$ command`, and below it what it prints.
// - cpp, json, cmake: lines of the project that is being written.
//
// In what is printed a line `…` stands for any number of lines, numbers with decimals and
// milliseconds for any, and /home/you for the home. Runs of blanks are one: columns are as wide as
// their numbers.
#include <cstdlib>
#include <regex>
#include <span>

#include <gmock/gmock.h>

#include "command_fixture.h"
#include "guide_page.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using Lines = std::span<const std::string>;

bool matches(Lines shown, Lines printed) {
  if (shown.empty())
    return printed.empty();
  if (shown.front() != "…") {
    return !printed.empty() && shown.front() == printed.front() &&
           matches(shown.subspan(1), printed.subspan(1));
  }
  for (std::size_t skipped = 0; skipped <= printed.size(); ++skipped) {
    if (matches(shown.subspan(1), printed.subspan(skipped)))
      return true;
  }
  return false;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

class FirstPlugin : public CommandFixture {
 protected:
  FirstPlugin() {
    // A user's: nothing but the home says where things are.
    for (const char* variable : {"XDG_CACHE_HOME", "XDG_DATA_HOME", "TREADLE_PLUGIN_CACHE"})
      set(variable, "");
    for (const char* variable : {"CXX", "CMAKE_PREFIX_PATH"}) {
      if (const char* value = std::getenv(variable))
        set(variable, value);
    }
  }

  static fs::path source() { return std::getenv("TREADLE_SOURCE"); }

  void perform(const Fragment& fragment) {
    if (fragment.language == "sh" && fragment.word == "repository") {
      for (const std::string& line : lines_of(fragment.text))
        do_in_repository(line);
    } else if (fragment.language == "sh" && fragment.word.empty()) {
      for (const std::string& line : lines_of(fragment.text)) {
        const Finished done = type(line);
        ASSERT_EQ(done.code, 0) << line << "\n" << done.out << done.err;
      }
    } else if (fragment.language == "console") {
      for (const ShownCommand& shown : commands_in(fragment.text))
        compare(shown);
    } else if (fragment.language == "cpp" || fragment.language == "json" ||
               fragment.language == "cmake") {
      EXPECT_TRUE(is_excerpt(fragment.text, folder() / "my-signum"))
          << "no file of the project has these lines:\n"
          << fragment.text;
    } else {
      ADD_FAILURE() << "a fragment of \"" << fragment.language << " " << fragment.word
                    << "\": nothing here tests such a one";
    }
  }

 private:
  Finished type(const std::string& line) {
    const Finished done = run_program({"sh", "-c", before_ + line});
    if (line.starts_with("cd ") || line.starts_with("export "))
      before_ += line + "\n";
    return done;
  }

  void do_in_repository(const std::string& line) {
    const std::string preset = "--preset ";
    if (line.starts_with("scripts/")) {
      EXPECT_EQ(run_program({"test", "-x", (source() / line).string()}).code, 0) << line;
    } else if (const std::size_t at = line.find(preset); at != std::string::npos) {
      EXPECT_THAT(read(source() / "CMakePresets.json"),
                  testing::HasSubstr("\"name\": \"" + line.substr(at + preset.size()) + "\""));
    } else {
      const std::string build = "build/release";
      ASSERT_THAT(line, testing::StartsWith("cmake --install " + build + " "));
      const Finished done =
          type(replaced(line, build, "'" + std::string(std::getenv("TREADLE_BUILD")) + "'"));
      ASSERT_EQ(done.code, 0) << line << "\n" << done.err;
    }
  }

  void compare(const ShownCommand& shown) {
    const Finished done = type(shown.command);
    const std::string expected = comparable(shown.output);
    const std::string printed = comparable(done.out + done.err);
    EXPECT_TRUE(matches(lines_of(expected), lines_of(printed)))
        << shown.command << "\nis shown to print\n"
        << expected << "but printed\n"
        << printed;
  }

  std::string comparable(std::string text) const {
    static const std::regex when("-[0-9]{8}-[0-9]{6}");
    static const std::regex decimals("-?[0-9]+[.][0-9]{2,}");
    static const std::regex milliseconds("[0-9]+ ms");
    static const std::regex dots("[.]{3,}");
    static const std::regex blanks(" +");
    text = replaced(std::move(text), folder().string(), "/home/you");
    text = std::regex_replace(text, when, "-20300501-101500");
    text = std::regex_replace(text, decimals, "0.00");
    text = std::regex_replace(text, milliseconds, "0 ms");
    text = std::regex_replace(text, dots, "...");
    return std::regex_replace(text, blanks, " ");
  }

  std::string before_;  // what `cd` and `export` have been typed
};

TEST_F(FirstPlugin, IsMadeAsTheGuideSays) {
  const std::string page = read(source() / "docs/guide/your-first-plugin.md");
  ASSERT_NE(page, "");

  for (const Fragment& fragment : fragments_of(page)) {
    SCOPED_TRACE("your-first-plugin.md:" + std::to_string(fragment.line));
    perform(fragment);
    if (HasFatalFailure())
      return;  // what comes after would only say so again
  }
}

}  // namespace
}  // namespace treadle
