#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/expect_problem.h>
#include <treadle/testing/support/scratch_folder.h>

#include "npy_bytes.h"
#include "npy_data.h"

namespace treadle::arrays {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Writes small arrays, opens them, and shows messages with "x.npy" for the file.
class ArrayFixture : public ::testing::Test {
 protected:
  using Json = nlohmann::json;
  using Purpose = OpenRequest::Purpose;

  std::filesystem::path file(std::string_view name = "x.npy") const {
    return folder_.path() / name;
  }
  std::string path(std::string_view name = "x.npy") const { return file(name).string(); }

  void write_bytes(std::string_view name, std::string_view bytes) const {
    std::filesystem::create_directories(file(name).parent_path());
    std::ofstream(file(name), std::ios::binary) << bytes;
  }

  template <typename T>
  void write(std::string_view name, const std::vector<std::int64_t>& shape,
             const std::vector<T>& values, int version = 1) const {
    const std::string_view data(reinterpret_cast<const char*>(values.data()),
                                values.size() * sizeof(T));
    const RawNpy raw{descr_of<T>(), false, version};
    write_bytes(name, npy_bytes(raw.header(shape_text(shape)), data, version));
  }

  /// `rows` rows of `width` numbers that are all different: row r begins with 100 r.
  template <typename T = float>
  void write_table(std::string_view name, std::int64_t rows, std::int64_t width = 3,
                   std::int64_t first_row = 0) const {
    std::vector<T> values;
    for (std::int64_t r = first_row; r < first_row + rows; ++r) {
      for (std::int64_t c = 0; c < width; ++c)
        values.push_back(static_cast<T>(100 * r + c));
    }
    write<T>(name, {rows, width}, values);
  }

  /// x.npy with 5 rows of 3 columns and y.npy with a number for each.
  void write_five() const {
    write_table("x.npy", 5);
    write<float>("y.npy", {5}, {0, 10, 20, 30, 40});
  }

  static const testing::PluginUnderTest& plugin() {
    static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
    return plugin;
  }

  std::unique_ptr<DataProvider> make(const Json& parameters = Json::object()) const {
    Json complete = {{"inputs", path("x.npy")}, {"target", path("y.npy")}};
    if (!parameters.is_null())
      complete.update(parameters);
    return plugin().make<DataProvider>("npy", complete);
  }

  std::unique_ptr<DataProvider> open(const Json& parameters = Json::object(),
                                     const OpenRequest& request = {}) const {
    auto data = make(parameters);
    data->open(request);
    return data;
  }

  std::unique_ptr<DataProvider> open_later(Purpose purpose, const DataProvider& training,
                                           const Json& parameters = Json::object()) const {
    auto data = make(parameters);
    data->load_state(training.state().snapshot());
    OpenRequest request;
    request.purpose = purpose;
    data->open(request);
    return data;
  }

  static OpenRequest wanting(Task task) {
    OpenRequest request;
    request.task = task;
    return request;
  }

  template <typename Action>
  std::string message_of(Action&& action) const {
    try {
      action();
    } catch (const Error& error) {
      std::string text = error.what();
      for (const std::string& prefix : {folder_.path().string() + "/", folder_.path().string()}) {
        for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix))
          text.erase(at, prefix.size());
      }
      return text;
    }
    return "no error";
  }

  std::string error(const Json& parameters = Json::object(),
                    const OpenRequest& request = {}) const {
    return message_of([&] { open(parameters, request); });
  }

  static const RowReader& rows(const DataProvider& data) { return *data.ask<RowReader>(); }
  static Batch batch(const DataProvider& data) {
    return testing::gathered(rows(data), 0, rows(data).rows());
  }
  /// All values of a tensor, row by row.
  static std::vector<double> values(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kDouble).contiguous();
    const double* const first = flat.data_ptr<double>();
    return {first, first + flat.numel()};
  }
  static std::vector<double> features(const DataProvider& data) {
    return values(batch(data).inputs[0]);
  }
  static std::vector<double> targets(const DataProvider& data, std::size_t target = 0) {
    return values(rows(data).targets(target));
  }

 private:
  testing::ScratchFolder folder_;
};

}  // namespace treadle::arrays
