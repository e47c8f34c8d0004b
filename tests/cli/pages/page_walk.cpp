#include "page_walk.h"

#include <cstdlib>
#include <optional>
#include <regex>
#include <span>
#include <sstream>

#include <gmock/gmock.h>

namespace treadle {
namespace {

namespace fs = std::filesystem;
using Lines = std::span<const std::string>;

/// A shown line that ends with `…` is the beginning of one.
bool begins_alike(const std::string& shown, const std::string& printed) {
  const std::string more = "…";
  return shown.ends_with(more) ? printed.starts_with(shown.substr(0, shown.size() - more.size()))
                               : shown == printed;
}

bool matches(Lines shown, Lines printed) {
  if (shown.empty())
    return printed.empty();
  if (shown.front() != "…") {
    return !printed.empty() && begins_alike(shown.front(), printed.front()) &&
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

/// The first number of the last line whose first word is `name`.
std::optional<double> number_of(const std::string& printed, const std::string& name) {
  std::optional<double> found;
  for (const std::string& line : lines_of(printed)) {
    std::istringstream words(line);
    std::string word;
    double number = 0;
    if (words >> word && word == name && words >> number)
      found = number;
  }
  return found;
}

void expect_bounds(const std::string& bounds, const std::string& printed) {
  static const std::regex bound("([A-Za-z0-9_]+)(>=|<=)([0-9.]+)");
  std::istringstream all(bounds);
  for (std::string one; std::getline(all, one, ',');) {
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(one, parts, bound)) << one << " is no bound";
    const std::optional<double> number = number_of(printed, parts[1]);
    ASSERT_TRUE(number) << "no line begins with " << parts[1] << " and a number:\n" << printed;
    const double limit = std::stod(parts[3]);
    EXPECT_TRUE(parts[2] == ">=" ? *number >= limit : *number <= limit)
        << one << ", but the output has " << *number << "\n"
        << printed;
  }
}

std::optional<fs::path> public_data(const std::string& name) {
  const char* folder = std::getenv("TREADLE_DATA");
  if (folder == nullptr || !fs::is_directory(folder))
    return std::nullopt;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == name)
      return entry.path();
  }
  return std::nullopt;
}

}  // namespace

PageWalk::PageWalk() : here_(folder()) {
  set("PATH", fs::path(runner()).parent_path().string() + ":" + std::getenv("PATH"));
}

fs::path PageWalk::source() {
  return std::getenv("TREADLE_SOURCE");
}

void PageWalk::forget_fixture_folders() {
  set("PATH", std::getenv("PATH"));
  for (const char* variable : {"XDG_CACHE_HOME", "XDG_DATA_HOME", "TREADLE_PLUGIN_CACHE"})
    set(variable, "");
  for (const char* variable : {"CXX", "CMAKE_PREFIX_PATH"}) {
    if (const char* value = std::getenv(variable))
      set(variable, value);
  }
}

void PageWalk::walk(const std::string& page) {
  const std::string text = read(source() / "docs/tutorials" / page);
  ASSERT_NE(text, "");
  for (const Fragment& fragment : fragments_of(text)) {
    SCOPED_TRACE(page + ":" + std::to_string(fragment.line));
    perform(fragment);
    if (HasFatalFailure() || IsSkipped())
      return;  // later fragments depend on this one
  }
}

void PageWalk::perform(const Fragment& fragment) {
  const bool is_code = fragment.language == "cpp" || fragment.language == "json" ||
                       fragment.language == "cmake" || fragment.language == "csv";
  if (fragment.language == "sh") {
    type_lines(fragment);
  } else if (fragment.language == "console") {
    for (const ShownCommand& shown : commands_in(fragment.text))
      compare(shown, fragment.word);
  } else if (is_code && !fragment.word.empty()) {
    write((here_ / fragment.word).string(), fragment.text);
  } else if (is_code) {
    EXPECT_TRUE(is_excerpt(fragment.text, project_.empty() ? here_ : project_))
        << "no file of the project has these lines:\n"
        << fragment.text;
  } else if (fragment.language != "python") {
    ADD_FAILURE() << "a fragment of \"" << fragment.language << " " << fragment.word
                  << "\": nothing here tests such a one";
  }
}

void PageWalk::type_lines(const Fragment& fragment) {
  // A command goes on in the next line within quotes, a here-document or after a backslash.
  std::string command;
  for (const std::string& line : lines_of(fragment.text)) {
    command += (command.empty() ? "" : "\n") + line;
    const bool is_quoted = std::count(command.begin(), command.end(), '\'') % 2 == 1;
    const bool is_here_document = command.find("<<'END'") != std::string::npos && line != "END";
    if (is_quoted || is_here_document || line.ends_with("\\"))
      continue;
    if (fragment.word == "repository") {
      do_in_repository(command);
    } else if (fragment.word == "download") {
      download(command);
    } else {
      ASSERT_EQ(fragment.word, "");
      const Finished done = type(command);
      ASSERT_EQ(done.code, 0) << command << "\n" << done.out << done.err;
      remember_project(command, done.out);
    }
    if (HasFatalFailure() || IsSkipped())
      return;
    command.clear();
  }
}

void PageWalk::do_in_repository(const std::string& line) {
  const std::string preset = "--preset ";
  if (line.starts_with("scripts/")) {
    EXPECT_EQ(run_program({"test", "-x", (source() / line).string()}).code, 0) << line;
  } else if (const std::size_t at = line.find(preset); at != std::string::npos) {
    EXPECT_THAT(read(source() / "CMakePresets.json"),
                testing::HasSubstr("\"name\": \"" + line.substr(at + preset.size()) + "\""));
  } else if (line.starts_with("cp examples/")) {
    const Finished done = type("(cd '" + source().string() + "' && " + line + ")");
    ASSERT_EQ(done.code, 0) << line << "\n" << done.err;
  } else {
    const std::string build = "build/release";
    ASSERT_THAT(line, testing::StartsWith("cmake --install " + build + " "));
    const Finished done =
        type(replaced(line, build, "'" + std::string(std::getenv("TREADLE_BUILD")) + "'"));
    ASSERT_EQ(done.code, 0) << line << "\n" << done.err;
  }
}

void PageWalk::download(const std::string& line) {
  static const std::regex command("curl -L(?:O| -o (\\S+)) https://\\S+/([^/ ]+)");
  std::smatch words;
  ASSERT_TRUE(std::regex_match(line, words, command)) << line;
  const std::string name = words[1].matched ? words[1] : words[2];
  const std::optional<fs::path> file = public_data(name);
  if (!file)
    GTEST_SKIP() << name << " is not in TREADLE_DATA";
  fs::copy_file(*file, here_ / name);
}

void PageWalk::compare(const ShownCommand& shown, const std::string& bounds) {
  const Finished done = type(shown.command);
  remember_project(shown.command, done.out);
  const std::string expected = comparable(shown.output);
  const std::string printed = comparable(done.out + done.err);
  EXPECT_TRUE(matches(lines_of(expected), lines_of(printed)))
      << shown.command << "\nis shown to print\n"
      << expected << "but printed\n"
      << printed;
  if (!bounds.empty())
    expect_bounds(bounds, done.out);
}

/// `plugins new` prints "Wrote FOLDER:" first.
void PageWalk::remember_project(const std::string& command, const std::string& printed) {
  if (command.find("plugins new") == std::string::npos)
    return;
  const std::string first = printed.substr(0, printed.find(":\n"));
  ASSERT_TRUE(first.starts_with("Wrote ")) << printed;
  project_ = here_ / first.substr(6);
}

std::string PageWalk::comparable(std::string text) const {
  static const std::regex when("-[0-9]{8}-[0-9]{6}");
  static const std::regex decimals("-?[0-9]+[.][0-9]{2,}(e-[0-9]+)?");
  static const std::regex milliseconds("[0-9]+ ms");
  static const std::regex dots("[.]{3,}");
  static const std::regex bars(" *(█)+");
  static const std::regex blanks(" +");
  text = replaced(std::move(text), folder().string(), "/home/you");
  text = std::regex_replace(text, when, "-20300501-101500");
  text = std::regex_replace(text, decimals, "0.00");
  text = std::regex_replace(text, milliseconds, "0 ms");
  text = std::regex_replace(text, dots, "...");
  text = std::regex_replace(text, bars, "");
  return std::regex_replace(text, blanks, " ");
}

Finished PageWalk::type(const std::string& line) {
  static const std::regex run("runs/([A-Za-z0-9_.-]+)-20300501-101500");
  const std::string typed = std::regex_replace(line, run, "$$(ls -d runs/$1-2* | head -n 1)");
  const Finished done = run_program({"sh", "-c", before_ + typed});
  if (line.starts_with("cd ") || line.starts_with("export ")) {
    before_ += line + "\n";
    const std::string printed = run_program({"sh", "-c", before_ + "pwd"}).out;
    here_ = printed.substr(0, printed.find('\n'));
  }
  return done;
}

}  // namespace treadle
