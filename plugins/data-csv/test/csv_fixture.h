#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/data/abilities/local_times.h>
#include <treadle/core/data/abilities/source_columns.h>
#include <treadle/core/data/abilities/source_hash.h>
#include <treadle/core/data/column_origins.h>
#include <treadle/core/data/group_names.h>
#include <treadle/testing/support/expect_problem.h>

#include "csv_data.h"

namespace treadle::csv {

/// Writes small files, opens them, and shows messages with "x.csv" for the file.
class CsvFixture : public ::testing::Test {
 protected:
  using Json = nlohmann::json;
  using Purpose = OpenRequest::Purpose;

  CsvFixture() {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("treadle-csv-" + std::to_string(::getpid()) + "-" + test->name());
    std::filesystem::create_directories(folder_);
  }
  ~CsvFixture() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file(std::string_view name = "x.csv") const { return folder_ / name; }

  void write(std::string_view text, std::string_view name = "x.csv") const {
    std::ofstream(file(name), std::ios::binary) << text;
  }

  std::unique_ptr<CsvData> make(Json parameters = Json::object()) const {
    if (!parameters.contains("path"))
      parameters["path"] = file().string();
    return std::make_unique<CsvData>(Config(std::move(parameters)));
  }

  std::unique_ptr<CsvData> open(const Json& parameters = Json::object(),
                                const OpenRequest& request = {}) const {
    auto data = make(parameters);
    data->open(request);
    return data;
  }

  /// Opens `text` as data for a model that was trained on `training`.
  std::unique_ptr<CsvData> open_later(Purpose purpose, const CsvData& training,
                                      std::string_view text,
                                      const Json& parameters = Json::object()) const {
    write(text);
    auto data = make(parameters);
    data->load_state(training.state());
    OpenRequest request;
    request.purpose = purpose;
    data->open(request);
    return data;
  }

  template <typename Action>
  std::string message_of(Action&& action) const {
    try {
      action();
    } catch (const Error& error) {
      std::string text = error.what();
      const std::string folder = folder_.string() + "/";
      for (std::size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
        text.erase(at, folder.size());
      return text;
    }
    return "no error";
  }

  std::string error(std::string_view text, const Json& parameters = Json::object(),
                    const OpenRequest& request = {}) const {
    write(text);
    return message_of([&] { open(parameters, request); });
  }

  static const RowReader& rows(const CsvData& data) { return *data.ask<RowReader>(); }

  static Batch batch(const CsvData& data) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(rows(data).rows()));
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<std::int64_t>(i);
    Batch out;
    rows(data).gather(all, out);
    return out;
  }

  /// All values of a tensor, row by row.
  static std::vector<double> values(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kDouble).contiguous();
    const double* const first = flat.data_ptr<double>();
    return {first, first + flat.numel()};
  }
  static std::vector<double> features(const CsvData& data) { return input(data, "features"); }
  static std::vector<double> input(const CsvData& data, std::string_view name) {
    return values(batch(data).inputs[data.spec().input_index(name)]);
  }
  static std::vector<double> targets(const CsvData& data, std::size_t target = 0) {
    return values(rows(data).targets(target));
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace treadle::csv
