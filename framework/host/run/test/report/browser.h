#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <unistd.h>

namespace treadle::reading {

/// A page as a browser without a window shows it.
struct Shown {
  std::string dom;      ///< the body, after the scripts have run
  std::string console;  ///< what the page wrote to the console, its errors among it
};

/// The command that starts Chromium; empty where none is installed.
inline std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome", "chrome"}) {
    if (std::system(("command -v " + std::string(name) + " >/dev/null 2>&1").c_str()) == 0)
      return name;
  }
  return {};
}

inline std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  char part[4096];
  for (std::size_t read = 0; (read = std::fread(part, 1, sizeof part, pipe)) > 0;)
    output.append(part, read);
  ::pclose(pipe);
  return output;
}

/// Shows a page, and runs `probe` at its end, a script that reads and presses what is on it.
inline Shown show_page(std::string page, const std::string& probe = {}) {
  namespace fs = std::filesystem;
  const std::size_t begin = page.find("nonce-") + 6;
  const std::string nonce = page.substr(begin, page.find('\'', begin) - begin);
  page.insert(page.rfind("</body>"), "<script nonce=\"" + nonce + "\">" + probe + "</script>");
  std::string pattern = (fs::temp_directory_path() / "treadle-browser-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  std::ofstream(folder / "page.html") << page;
  const std::string command =
      browser() + " --headless --no-sandbox --disable-gpu --virtual-time-budget=3000" +
      " --window-size=1200,1000 --enable-logging=stderr --user-data-dir=" + folder.string() +
      "/profile --dump-dom file://" + folder.string() + "/page.html 2>" + folder.string() + "/log";
  std::string dom = output_of(command);
  dom.erase(0, std::min(dom.find("<body>"), dom.size()));
  Shown shown{std::move(dom), output_of("grep CONSOLE " + folder.string() + "/log")};
  fs::remove_all(folder);
  return shown;
}

}  // namespace treadle::reading
