#include <treadle/table/source_files.h>

#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

namespace treadle::table {
namespace {

namespace fs = std::filesystem;

class SourceFiles : public ::testing::Test {
 protected:
  SourceFiles()
      : folder_(fs::temp_directory_path() / ("treadle-files-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_ / "part-3.csv");  // a folder, which is no file
  }
  ~SourceFiles() override { fs::remove_all(folder_); }

  void make(const std::string& name) const { std::ofstream(folder_ / name) << "x"; }

  /// The names of the files, or the message without the folder.
  std::vector<std::string> find(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (const std::string& name : names)
      paths.push_back((folder_ / name).string());
    std::vector<std::string> found;
    try {
      for (const fs::path& file : find_files(paths))
        found.push_back(file.filename().string());
    } catch (const DataError& error) {
      std::string text = error.what();
      for (std::size_t at; (at = text.find(folder_.string())) != std::string::npos;)
        text.erase(at, folder_.string().size() + (text[at + folder_.string().size()] == '/'));
      found = {text};
    }
    return found;
  }

 private:
  fs::path folder_;
};

using Names = std::vector<std::string>;

TEST_F(SourceFiles, ComeInOrderOfTheListAndOfTheirNames) {
  for (const char* name : {"part-10.csv", "part-2.csv", "part-B.csv", "part-a.csv", "other.csv",
                           ".part-0.csv", "part-1.txt"}) {
    make(name);
  }
  EXPECT_EQ(find({"part-*.csv"}), (Names{"part-10.csv", "part-2.csv", "part-B.csv", "part-a.csv"}));
  EXPECT_EQ(find({"other.csv", "part-?.csv"}),
            (Names{"other.csv", "part-2.csv", "part-B.csv", "part-a.csv"}));
  EXPECT_EQ(find({"part-[0-9]*"}), (Names{"part-1.txt", "part-10.csv", "part-2.csv"}));
  EXPECT_EQ(find({"missing.csv"}), Names{"missing.csv"});
  make("part-[0-9]*");
  EXPECT_EQ(find({"part-[0-9]*"}), Names{"part-[0-9]*"});
}

TEST_F(SourceFiles, SayWhatIsThereInstead) {
  EXPECT_EQ(find({"*.tsv"}), Names{"*.tsv: no file matches;  has part-3.csv/"});
  for (const char* name : {"a", "b", "c", "d", "e"})
    make(name);
  EXPECT_EQ(find({"*.tsv"}), Names{"*.tsv: no file matches;  has a, b, c, d, e and 1 more"});
  EXPECT_EQ(find({"none/*.csv"}),
            Names{"none/*.csv: no file matches; the folder none/ does not exist"});
  EXPECT_EQ(find({"a", "?"}), Names{"a: is among the files of \"path\" twice"});
}

TEST_F(SourceFiles, AreAPathOrAList) {
  EXPECT_EQ(paths_of(Config(nlohmann::json{{"path", "a"}}), "path"), Names{"a"});
  EXPECT_EQ(paths_of(Config(nlohmann::json{{"path", {"a", "b"}}}), "path"), (Names{"a", "b"}));
  EXPECT_THROW(paths_of(Config(nlohmann::json{{"path", nlohmann::json::array()}}), "path"), Error);
  EXPECT_THROW(paths_of(Config(nlohmann::json{{"path", {1}}}), "path"), Error);
  EXPECT_EQ(shown_files({"a", "b", "c"}), "a and 2 more files");
}

}  // namespace
}  // namespace treadle::table
