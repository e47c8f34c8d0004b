#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/error.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/batches.h>
#include <treadle/testing/support/scratch_folder.h>
#include <treadle/testing/support/source_path.h>

namespace treadle::images {

/// Lays images of data/ out in a folder of its own, and opens it.
class ImageFixture : public ::testing::Test {
 protected:
  using Json = nlohmann::json;
  using Purpose = OpenRequest::Purpose;

  std::filesystem::path file(std::string_view name) const { return folder_.path() / name; }

  /// A copy of an image in data/.
  void put(const std::string& made, std::string_view name) const {
    std::filesystem::create_directories(file(name).parent_path());
    std::filesystem::copy_file(testing::source_path(TREADLE_TEST_DATA) / made, file(name),
                               std::filesystem::copy_options::overwrite_existing);
  }
  void write(std::string_view name, std::string_view text) const {
    std::filesystem::create_directories(file(name).parent_path());
    std::ofstream(file(name), std::ios::binary) << text;
  }
  /// Two classes, three and two images of 31 x 23 pixels.
  void put_five(const std::string& folder = "set") const {
    put("rgb.png", folder + "/cats/b.png");
    put("gray.png", folder + "/cats/a.png");
    put("lossless.webp", folder + "/cats/c.WEBP");
    put("rgba.png", folder + "/dogs/x.png");
    put("turned1.jpg", folder + "/dogs/y.jpeg");
  }

  static const testing::PluginUnderTest& plugin() {
    static const testing::PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
    return plugin;
  }

  std::unique_ptr<DataProvider> make(const Json& parameters = Json::object()) const {
    Json complete = {{"path", file("set").string()}};
    complete.update(parameters);
    return plugin().make<DataProvider>("images", complete);
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
  Json list(std::string_view name = "list.csv") const { return {{"path", file(name).string()}}; }

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
  static std::vector<double> values(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.to(at::kDouble).contiguous();
    const double* const first = flat.data_ptr<double>();
    return {first, first + flat.numel()};
  }

 private:
  testing::ScratchFolder folder_;
};

}  // namespace treadle::images
