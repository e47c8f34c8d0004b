// Within a library, rooms form layers, as libraries do among each other. The README of a library
// lists which rooms each room needs.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

/// A room that the README does not name: public headers without a source, for all rooms.
constexpr const char* kRoot = "";

fs::path source_tree() {
  return std::getenv("TREADLE_SOURCE");
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool is_source(const fs::path& file) {
  return file.extension() == ".h" || file.extension() == ".cpp";
}

std::vector<fs::path> sources_below(const fs::path& folder) {
  std::vector<fs::path> sources;
  if (!fs::exists(folder))
    return sources;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && is_source(entry.path()))
      sources.push_back(entry.path());
  }
  std::sort(sources.begin(), sources.end());
  return sources;
}

std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

/// A library by its folder: the needs that its README lists, and the includes of its sources.
class Library {
 public:
  explicit Library(fs::path folder) : folder_(std::move(folder)) {
    read_promises();
    for (const fs::path& file : sources_below(folder_ / "src"))
      place(file, first_folder(fs::relative(file, folder_ / "src")));
    for (const fs::path& header : sources_below(folder_ / "include"))
      place(header, room_of_public(header));
  }

  const std::map<std::string, std::set<std::string>>& promises() const { return promises_; }

  /// "a.cpp includes b.h: data needs model", for each need that the README does not list.
  std::vector<std::string> surprises() const {
    static const std::regex includes(R"(#include ["<]([^">]+)[">])");
    std::vector<std::string> surprises;
    for (const auto& [file, room] : rooms_) {
      for (const std::string& included : matches(text_of(folder_ / file), includes)) {
        const std::string target = room_of(included, file);
        if (target == kRoot || target == room)
          continue;
        const auto promise = promises_.find(room);
        if (promise == promises_.end() || !promise->second.contains(target))
          surprises.push_back(file + " includes " + included + ": " + room + " needs " + target);
      }
    }
    return surprises;
  }

  std::set<std::string> rooms() const {
    std::set<std::string> rooms;
    for (const auto& [file, room] : rooms_)
      rooms.insert(room);
    rooms.erase(kRoot);
    return rooms;
  }

 private:
  static std::string first_folder(const fs::path& path) {
    return path.has_parent_path() ? path.begin()->string() : kRoot;
  }

  /// "| `data` | batches, … | `components` |": the last column of tables whose heading ends with
  /// it.
  void read_promises() {
    static const std::regex row(R"(\| `(\w+)` \|.*\|([^|]*)\|\s*)");
    static const std::regex word("`(\\w+)`");
    std::istringstream lines(text_of(folder_ / "README.md"));
    bool is_table = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("| room "))
        is_table = line.ends_with("| needs |");
      is_table = is_table && line.starts_with("|");
      std::smatch cells;
      if (!is_table || !std::regex_match(line, cells, row))
        continue;
      const std::vector<std::string> needs = matches(cells[2], word);
      promises_[cells[1]] = {needs.begin(), needs.end()};
    }
  }

  std::string room_of_public(const fs::path& header) const {
    // include/treadle/core/data/batch.h: its folder; where they lie together, that of its source.
    const fs::path own = fs::relative(header, folder_ / "include");
    const fs::path library = fs::relative(folder_, source_tree() / "framework");
    const std::string room = first_folder(fs::relative(own, "treadle" / library));
    if (room != kRoot)
      return room;
    for (const auto& [file, its] : rooms_) {
      if (fs::path(file).extension() == ".cpp" && fs::path(file).stem() == header.stem())
        return its;
    }
    return kRoot;
  }

  /// Of a header by its path in src or include, or from the folder of `file`; none for
  /// headers of other libraries.
  std::string room_of(const std::string& included, const fs::path& file) const {
    auto found = by_name_.find(included);
    if (found == by_name_.end()) {
      const fs::path beside = (file.parent_path() / included).lexically_normal();
      found = by_name_.find(fs::relative(beside, *beside.begin()).string());
    }
    return found == by_name_.end() ? kRoot : found->second;
  }

  void place(const fs::path& file, const std::string& room) {
    const fs::path own = fs::relative(file, folder_);
    rooms_[own.string()] = room;
    by_name_[fs::relative(own, *own.begin()).string()] = room;  // as includes have it
  }

  fs::path folder_;
  std::map<std::string, std::set<std::string>> promises_;
  std::map<std::string, std::string> rooms_;    // by path in the library
  std::map<std::string, std::string> by_name_;  // by path in src or in include
};

class Rooms : public ::testing::TestWithParam<const char*> {
 protected:
  const Library library_{source_tree() / GetParam()};
};

TEST_P(Rooms, IncludeWhatTheirReadmeSaysTheyNeed) {
  EXPECT_THAT(library_.surprises(), IsEmpty());
}

TEST_P(Rooms, AreAllInTheReadme) {
  std::set<std::string> named;
  for (const auto& [room, needs] : library_.promises())
    named.insert(room);
  EXPECT_EQ(named, library_.rooms());
}

TEST_P(Rooms, NeedEachOtherInOneDirection) {
  std::map<std::string, std::set<std::string>> left = library_.promises();
  for (bool is_less = true; is_less;) {
    is_less =
        std::erase_if(left, [&](const auto& room) {
          return std::none_of(room.second.begin(), room.second.end(),
                              [&](const std::string& needed) { return left.contains(needed); });
        }) > 0;
  }
  std::vector<std::string> circle;
  for (const auto& [room, needs] : left)
    circle.push_back(room);
  EXPECT_THAT(circle, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, Rooms,
                         ::testing::Values("framework/base", "framework/core", "framework/engine",
                                           "framework/graph", "framework/host/launch",
                                           "framework/host/run"));

// A plugin's folder is a flat list of its components.
TEST(Folders, HoldAtMost25Sources) {
  std::map<std::string, int> counts;
  for (const char* const part : {"apps", "framework", "sdk", "tests"}) {
    for (const fs::path& file : sources_below(source_tree() / part))
      ++counts[fs::relative(file.parent_path(), source_tree()).string()];
  }
  std::vector<std::string> full;
  for (const auto& [folder, count] : counts) {
    if (count > 25)
      full.push_back(folder + " has " + std::to_string(count));
  }
  EXPECT_THAT(full, IsEmpty());
}

TEST(Search, IncludesOfCoreItsComponentsAlone) {
  static const std::regex includes("#include <treadle/core/(\\w+)/");
  std::set<std::string> rooms;
  for (const fs::path& file : sources_below(source_tree() / "framework/search")) {
    const std::vector<std::string> included = matches(text_of(file), includes);
    rooms.insert(included.begin(), included.end());
  }
  EXPECT_EQ(rooms, std::set<std::string>{"components"});
}

TEST(SdkHeader, HasWhateverOurPluginsInclude) {
  static const std::regex includes("#include <(treadle/(base|core|plan|search|tensor)/[^>]+)>");
  const std::vector<std::string> list =
      matches(text_of(source_tree() / "sdk/include/treadle/sdk.h"), includes);
  const std::set<std::string> has(list.begin(), list.end());
  std::set<std::string> missing;
  for (const fs::path& file : sources_below(source_tree() / "plugins")) {
    if (file.string().find("/test/") != std::string::npos)
      continue;
    for (const std::string& header : matches(text_of(file), includes)) {
      if (!has.contains(header))
        missing.insert(header);
    }
  }
  EXPECT_THAT(missing, IsEmpty());
}

}  // namespace
