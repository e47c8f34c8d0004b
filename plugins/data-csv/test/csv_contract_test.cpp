#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/data/stream_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

/// A file with everything in it, gone at the end of the program.
class TableFile {
 public:
  TableFile() {
    std::ofstream file(path_);
    file << "id,when,a,color,w,price,kind\n";
    for (int row = 0; row < 50; ++row) {
      file << "p" << row % 7 << ",2020-01-" << 10 + row % 20 << ',';
      if (row % 5 != 0)
        file << row * 0.25;
      file << ',' << (row % 3 == 0 ? "red" : "blue") << ',' << 1 + row % 4 << ',' << row * 1.5
           << ',' << (row % 2 == 0 ? "yes" : "no") << '\n';
    }
  }
  ~TableFile() { std::filesystem::remove(path_); }

  std::string path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() /
                      ("treadle-csv-contract-" + std::to_string(::getpid()) + ".csv");
};

DataCase csv_case(std::string name, const Json& parameters) {
  return {std::move(name), [=] {
            static const TableFile file;
            Json complete = {{"path", file.path()}, {"missing", "nan"}, {"categorical", {"color"}}};
            complete.update(parameters);
            return plugin().make<DataProvider>("csv", complete);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Csv, DataContract,
    ::testing::Values(csv_case("SeveralTargets",
                               {{"inputs", {{"left", {"a"}}, {"right", {"color", "price"}}}},
                                {"target",
                                 {"kind", "price", {{"name", "both"}, {"columns", {"w"}}}}}}),
                      csv_case("Classes", {{"columns", {"color", "a", "price"}}}),
                      csv_case("Numbers", {{"columns", {"a", "color"}}, {"target", "price"}}),
                      csv_case("Weighted", {{"columns", {"a", "color", "price"}},
                                            {"weight", "w"},
                                            {"group", "id"},
                                            {"time", "when"}})),
    CaseName());

INSTANTIATE_TEST_SUITE_P(CsvInChunks, StreamContract,
                         ::testing::Values(StreamCase{
                             "Table",
                             [] {
                               return csv_case("", {{"columns", {"color", "a", "price"}},
                                                    {"weight", "w"},
                                                    {"in_memory", false}})
                                   .make();
                             }}),
                         CaseName());

TEST(CsvSchema, DefaultsAreThoseOfTheCode) {
  const Json completed = plugin().completed("csv", {{"path", "/tmp/x.csv"}});

  EXPECT_EQ(completed["header"], true);
  EXPECT_EQ(completed["separator"], ",");
  EXPECT_EQ(completed["quote"], "\"");
  EXPECT_EQ(completed["target"], -1);
  EXPECT_EQ(completed["missing"], "error");
  EXPECT_EQ(completed["missing_values"], Json::array({"", "NA", "NaN", "nan", "null", "?"}));
}

TEST(CsvSchema, TakesWhatTheReadmeShows) {
  EXPECT_NO_THROW(plugin().completed(
      "csv", {{"path", "data/iris.csv"}, {"target", "species"}, {"missing", "drop_row"}}));
  EXPECT_THROW(plugin().completed("csv", {{"path", "x"}, {"target", 1.5}}), DocumentError);
}

}  // namespace
}  // namespace treadle::testing
