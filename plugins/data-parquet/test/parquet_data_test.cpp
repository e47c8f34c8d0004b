#include "parquet_data.h"

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/data/row_reader.h>
#include <treadle/testing/data/data_contract.h>
#include <treadle/testing/data/stream_contract.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/source_path.h>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;

const PluginUnderTest& plugin() {
  static const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
  return plugin;
}

std::string file(const std::string& name) {
  return source_path(std::filesystem::path(TREADLE_PLUGIN_FOLDER) / "test/data" / name);
}

constexpr const char* kWithoutNulls = "duckdb-v2-snappy";
constexpr const char* kWithNulls = "duckdb-v1-zstd";

std::unique_ptr<DataProvider> make_data(const char* name, Json parameters) {
  parameters["path"] = file(std::string(name) + ".parquet");
  return plugin().make<DataProvider>("parquet", parameters);
}

/// A column of the values that the writer of the file has, as files.mjs prints them.
std::vector<std::string> written(const char* name, std::size_t column) {
  std::ifstream lines(file(std::string(name) + ".values"));
  std::vector<std::string> values;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string field;
    for (std::size_t i = 0; i <= column; ++i)
      std::getline(fields, field, '\t');
    values.push_back(field);
  }
  return values;
}

std::vector<double> values_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous();
  const double* const first = flat.data_ptr<double>();
  return {first, first + flat.numel()};
}

Batch all_rows(const DataProvider& data) {
  const RowReader& rows = *data.ask<RowReader>();
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows.rows()));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<std::int64_t>(i);
  Batch out;
  rows.gather(all, out);
  return out;
}

std::string error_of(const char* name, const Json& parameters) {
  try {
    make_data(name, parameters)->open({});
    return "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    return text.substr(text.find(name));
  }
}

TEST(ParquetData, HasTheNumbersOfTheFile) {
  const auto data =
      make_data(kWithoutNulls, {{"columns", {"integer", "few"}}, {"target", "rising"}});
  data->open({});

  const std::vector<double> features = values_of(all_rows(*data).inputs[0]);
  const std::vector<std::string> integers = written(kWithoutNulls, 3);
  const std::vector<std::string> few = written(kWithoutNulls, 10);
  ASSERT_EQ(features.size(), 2 * integers.size());
  for (std::size_t row = 0; row < integers.size(); ++row) {
    EXPECT_EQ(features[2 * row], std::stod(integers[row])) << row;
    EXPECT_EQ(features[2 * row + 1], std::stod(few[row])) << row;
  }
}

TEST(ParquetData, HasTextsAsClassesAndCategories) {
  const auto data = make_data(
      kWithoutNulls, {{"columns", {"word"}}, {"categorical", {"word"}}, {"target", "enumeration"}});
  data->open({});

  EXPECT_THAT(data->spec().targets[0].class_names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(data->spec().inputs[0].columns[0].categories,
              ElementsAre("blue", "green", "red", "sehr langes Wort"));
  const std::vector<double> numbers = values_of(all_rows(*data).inputs[0]);
  const std::vector<std::string> words = written(kWithoutNulls, 25);
  for (std::size_t row = 0; row < words.size(); ++row) {
    const std::string& category =
        data->spec().inputs[0].columns[0].categories.at(static_cast<std::size_t>(numbers.at(row)));
    EXPECT_EQ('"' + category + '"', words[row]);
  }
}

TEST(ParquetData, HasDatesAndTimestampsAsTimes) {
  const auto times = make_data(kWithoutNulls, {{"columns", {"date"}},
                                               {"dates", {"date"}},
                                               {"calendar", {"weekend"}},
                                               {"time", "timestamptz"},
                                               {"target", "rising"}});
  times->open({});

  const std::vector<double> features = values_of(all_rows(*times).inputs[0]);
  const std::vector<std::string> days = written(kWithoutNulls, 18);
  const std::vector<double> seconds = values_of(times->ask<RowReader>()->timestamps());
  const std::vector<std::string> nanoseconds = written(kWithoutNulls, 23);
  for (std::size_t row = 0; row < days.size(); ++row) {
    EXPECT_EQ(features[2 * row], std::stod(days[row]));
    EXPECT_EQ(seconds[row], std::stod(nanoseconds[row]) / 1e9);
  }
}

TEST(ParquetData, HasNullsAsMissingValues) {
  const std::vector<std::string> few = written(kWithNulls, 10);
  const auto data = make_data(kWithNulls, {{"columns", {"few"}},
                                           {"target", "enumeration"},
                                           {"missing", "nan"},
                                           {"missing_target", "drop_row"}});
  data->open({});

  std::size_t missing = 0;
  for (std::size_t row = 0; row < few.size(); ++row)
    missing += few[row] == "null" && written(kWithNulls, 26)[row] != "null" ? 1 : 0;
  std::size_t found = 0;
  for (const double value : values_of(all_rows(*data).inputs[0]))
    found += value != value ? 1 : 0;
  EXPECT_EQ(found, missing);
}

/// The first of them has no row, and others have nulls.
const std::vector<const char*> kOfDuckdb{"duckdb-no-row",  "duckdb-nulls-v2", "duckdb-v1-lz4_raw",
                                         "duckdb-v1-zstd", "duckdb-v2-gzip",  kWithoutNulls};
constexpr const char* kAllOfDuckdb = "duckdb-*";

std::vector<double> streamed(const DataProvider& data, std::int64_t chunk) {
  const auto stream = data.stream(chunk);
  std::vector<double> values;
  for (Batch batch; stream->next(batch);) {
    const std::vector<double> more = values_of(batch.inputs[0]);
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

TEST(ParquetData, HasTheRowsOfSeveralFilesInTheOrderOfTheirNames) {
  std::vector<std::string> expected;
  std::vector<std::string> places;
  for (const char* const name : kOfDuckdb) {
    std::size_t row = 0;
    for (const std::string& value : written(name, 3)) {
      expected.push_back(value);
      places.push_back(std::string(name) + ".parquet, row " + std::to_string(++row));
    }
  }
  const Json parameters{{"columns", {"integer"}},
                        {"target", "rising"},
                        {"missing", "nan"},
                        {"missing_target", "drop_row"}};
  const auto data = make_data(kAllOfDuckdb, parameters);
  data->open({});
  const RowReader& rows = *data->ask<RowReader>();

  const std::vector<double> features = values_of(all_rows(*data).inputs[0]);
  std::vector<double> kept;
  for (std::size_t row = 0; row < expected.size(); ++row) {
    if (rows.describe_row(static_cast<std::int64_t>(kept.size())).ends_with(places[row]))
      kept.push_back(expected[row] == "null" ? std::nan("") : std::stod(expected[row]));
  }
  ASSERT_EQ(kept.size(), features.size());
  EXPECT_GT(kept.size(), 180U);
  for (std::size_t row = 0; row < kept.size(); ++row)
    EXPECT_TRUE(kept[row] == features[row] ||
                (kept[row] != kept[row] && features[row] != features[row]))
        << row;
}

TEST(ParquetData, ReadsSeveralFilesInChunksAsInMemory) {
  Json parameters{{"columns", {"few"}}, {"target", "halves"}, {"missing", "drop_row"}};
  const auto whole = make_data(kAllOfDuckdb, parameters);
  whole->open({});
  parameters["in_memory"] = false;
  const auto data = make_data(kAllOfDuckdb, parameters);
  data->open({});

  for (const std::int64_t chunk : {7, 60, 1000})
    EXPECT_EQ(streamed(*data, chunk), values_of(all_rows(*whole).inputs[0])) << chunk;
}

TEST(ParquetData, NamesTheFileWithOtherColumns) {
  const auto data = plugin().make<DataProvider>(
      "parquet", {{"path", {file("duckdb-v2-gzip.parquet"), file("hyparquet-groups.parquet")}},
                  {"columns", {"integer"}},
                  {"target", "rising"},
                  {"missing", "nan"}});
  try {
    data->open({});
    FAIL() << "opened";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(),
                ::testing::ContainsRegex("hyparquet-groups.parquet: expected 28 columns as in "
                                         ".*duckdb-v2-gzip.parquet, got 20; all files"));
  }
}

TEST(ParquetData, NamesFileAndRow) {
  ASSERT_EQ(written(kWithNulls, 10)[0], "null");
  EXPECT_THAT(
      error_of(kWithNulls, {{"columns", {"few"}}, {"target", "rising"}}),
      ::testing::StartsWith("duckdb-v1-zstd.parquet, row 1: column \"rising\": the value is "
                            "missing"));
}

TEST(ParquetData, NamesColumnsThatAreNotThere) {
  EXPECT_THAT(error_of(kWithoutNulls, {{"columns", {"fw"}}, {"target", "rising"}}),
              ::testing::HasSubstr("few"));
}

DataCase parquet_case(std::string name, const Json& parameters) {
  return {std::move(name), [=] {
            Json complete = {{"missing", "nan"}};
            complete.update(parameters);
            return make_data(kWithoutNulls, complete);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Parquet, DataContract,
    ::testing::Values(parquet_case("Classes", {{"columns", {"float", "word", "boolean"}},
                                               {"categorical", {"word"}},
                                               {"target", "enumeration"}}),
                      parquet_case("Numbers",
                                   {{"columns", {"integer", "decimal_9"}}, {"target", "halves"}})),
    CaseName());

INSTANTIATE_TEST_SUITE_P(ParquetInChunks, StreamContract,
                         ::testing::Values(StreamCase{
                             "SeveralFiles",
                             [] {
                               return make_data(kAllOfDuckdb, {{"columns", {"few", "integer"}},
                                                               {"target", "rising"},
                                                               {"missing", "drop_row"},
                                                               {"in_memory", false}});
                             }}),
                         CaseName());

}  // namespace
}  // namespace treadle::testing
