#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/core/data/group_names.h>
#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/scratch_folder.h>

namespace treadle::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

const std::string kSales =
    "store,time,sales,price,kind\n"
    "ulm,2024-03-01T10:10,3,2.5,a\nbonn,2024-03-01T09:00,7,2.6,b\nulm,2024-03-01T09:20,4,2.4,a\n"
    "ulm,2024-03-01T12:00,5,2.5,b\nbonn,2024-03-01T10:59,8,2.6,a\nbonn,2024-03-01T10:01,6,2.5,b\n"
    "ulm,2024-03-01T11:00,2,2.3,a\n";

/// `series` of a file with the sales, and of what `more` says.
std::unique_ptr<DataProvider> sales(const Json& more, const Json& of_file = Json::object()) {
  static const ScratchFolder folder;
  const auto path = folder.path() / "sales.csv";
  std::ofstream(path, std::ios::binary) << kSales;
  Json parameters = {{"source",
                      {{"use", "csv"},
                       {"path", path.string()},
                       {"group", "store"},
                       {"time", "time"},
                       {"target", "sales"},
                       {"columns", {"sales", "price"}}}}};
  parameters["source"].update(of_file);
  parameters.update(more);
  return plugin().make<DataProvider>("series", std::move(parameters), {&plugin().registry()});
}

DataCase series_case(std::string name, const Json& more, const Json& of_file = Json::object()) {
  return {std::move(name), [=] { return sales(more, of_file); }};
}

INSTANTIATE_TEST_SUITE_P(
    Series, DataContract,
    ::testing::Values(
        series_case("Sorted", Json::object()),
        series_case("Hours", {{"frequency", "1h"}, {"calendar", {"hour"}}, {"fill", "linear"}}),
        series_case("Categories", {{"frequency", "30min"}, {"fill", "forward"}},
                    {{"columns", {"price", "kind"}}, {"categorical", {"kind"}}}),
        series_case("Classes", {{"frequency", "1h"}},
                    {{"target", "kind"}, {"columns", {"price"}}})),
    CaseName());

// ulm: hours 9, 10, 11, 12; bonn: hours 9 and 10, two rows in the latter.
TEST(SeriesData, KeepsTheNamesOfItsSeries) {
  const auto data = sales({{"frequency", "1h"}});
  data->open({});

  const auto* const rows = data->ask<RowReader>();
  ASSERT_EQ(rows->rows(), 6);
  EXPECT_EQ(data->ask<GroupNames>()->name_of(rows->groups()[0].item<std::int64_t>()), "ulm");
  EXPECT_EQ(data->ask<GroupNames>()->name_of(rows->groups()[5].item<std::int64_t>()), "bonn");
  EXPECT_EQ(rows->describe_time(5), "2024-03-01 10:00");
  EXPECT_FLOAT_EQ(rows->targets()[5].item<float>(), 7);
  EXPECT_THAT(rows->describe_row(5), HasSubstr("sales.csv:7")) << "the first row of the step";
}

TEST(SeriesData, NeedsTimes) {
  static const ScratchFolder folder;
  const auto path = folder.path() / "plain.csv";
  std::ofstream(path) << "x,y\n1,2\n3,4\n";
  const auto data = plugin().make<DataProvider>(
      "series", {{"source", {{"use", "csv"}, {"path", path.string()}}}}, {&plugin().registry()});
  try {
    data->open({});
    ADD_FAILURE() << "nobody knows which rows are earlier";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("times of its rows"));
  }
}

}  // namespace
}  // namespace treadle::testing
