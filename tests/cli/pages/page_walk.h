#pragma once

#include <filesystem>
#include <string>

#include "command_fixture.h"
#include "guide_page.h"

namespace treadle {

/// Walks a page as a reader does, from top to bottom, in an empty home folder. The words behind a
/// fence select what happens to a fragment:
///
/// - `sh`: commands that must succeed; `cd` and `export` hold for the rest of the page.
/// - `sh repository`: typed in a checkout. Files are copied from it and Treadle is installed; other
///   lines have been run to build this test.
/// - `sh download`: `curl` of public data, which is copied from TREADLE_DATA. Without the file the
///   rest of the page is skipped.
/// - `console`: `$ command`, and below it the output. `console accuracy>=0.95`: the line of the
///   output that begins with `accuracy` has such a number; several bounds are separated by commas.
/// - `json FILE`, `csv FILE`, `cpp FILE`, `cmake FILE`: writes a file into the current folder.
/// - `json`, `cpp`, `cmake`: lines of a file that the page has written, or of the project that
///   `plugins new` has.
/// - `python`: not run; `reference/` has the scripts whose numbers the page shows.
///
/// In output, a line `…` stands for any number of lines, `…` at the end of a line for its rest,
/// numbers with two decimals or more, times and bars for any others, and /home/you for the home
/// folder. Runs of blanks are one. `runs/NAME-20300501-101500` in a command is the first run of
/// that name.
class PageWalk : public CommandFixture {
 protected:
  PageWalk();

  /// A page of docs/tutorials. Stops at the first command that fails.
  void walk(const std::string& page);
  /// As somebody whose home folder alone determines which plugins are used.
  void forget_fixture_folders();

  static std::filesystem::path source();

 private:
  void perform(const Fragment& fragment);
  void type_lines(const Fragment& fragment);
  void do_in_repository(const std::string& line);
  void download(const std::string& line);
  void compare(const ShownCommand& shown, const std::string& bounds);
  void remember_project(const std::string& command, const std::string& printed);
  std::string comparable(std::string text) const;
  Finished type(const std::string& line);

  std::string before_;             // `cd` and `export` so far
  std::filesystem::path here_;     // the current folder
  std::filesystem::path project_;  // written by `plugins new`
};

}  // namespace treadle
