// How much memory a run takes, measured on processes of its own.
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "command_fixture.h"
#include "npy_bytes.h"

namespace treadle {
namespace {

using nlohmann::json;

class MemoryOfARun : public CommandFixture {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer keeps memory of its own";
#endif
    CommandFixture::SetUp();
  }

  /// Bytes at the peak above what the process had before it read data.
  static double peak_above_baseline(const json& result) {
    const json& environment = result.at("environment");
    return environment.at("peak_memory_bytes").get<double>() -
           environment.at("baseline_memory_bytes").get<double>();
  }

  /// The most bytes a run had that no file backs, looked at every few milliseconds: RssAnon of
  /// proc(5).
  double peak_of_anonymous_memory(const std::string& document) {
    Running running = start({"run", document, "--json"});
    const std::string status = "/proc/" + std::to_string(running.process()) + "/status";
    std::atomic<bool> is_done = false;
    double peak = 0;  // of the thread until it is joined
    std::thread watching([&] {
      for (; !is_done; std::this_thread::sleep_for(std::chrono::milliseconds(3))) {
        std::ifstream file(status);
        for (std::string word; file >> word;) {
          if (double kibibytes = 0; word == "RssAnon:" && file >> kibibytes)
            peak = std::max(peak, 1024 * kibibytes);
        }
      }
    });
    const Finished done = running.wait();
    is_done = true;
    watching.join();
    EXPECT_EQ(done.code, 0) << done.err << done.out;
    return peak;
  }

  /// A series of `rows` rows of 8 float32, and a number to predict for each.
  void given_series(const std::string& name, std::int64_t rows) {
    for (const std::int64_t width : {8, 1}) {
      std::vector<float> numbers(static_cast<std::size_t>(rows * width));
      std::uint32_t state = 1;
      for (float& number : numbers) {
        state = state * 1664525u + 1013904223u;
        number = static_cast<float>(state >> 8) / (1 << 24);
      }
      std::ofstream(folder() / (name + (width == 8 ? "-x.npy" : "-y.npy")), std::ios::binary)
          << arrays::npy_of("(" + std::to_string(rows) + ", " + std::to_string(width) + ")",
                            numbers);
    }
  }

  /// A table of small numbers, `columns` of them, the last one the target.
  void given_table(std::int64_t rows, int columns) {
    std::ofstream file(folder() / "table.csv", std::ios::binary);
    std::string line;
    for (int c = 0; c < columns; ++c)
      line += (c == 0 ? "x" : ",x") + std::to_string(c);
    file << line << '\n';
    std::uint32_t state = 1;
    for (std::int64_t r = 0; r < rows; ++r) {
      line.clear();
      for (int c = 0; c < columns; ++c) {
        state = state * 1664525u + 1013904223u;
        char text[32];
        const auto end =
            std::to_chars(text, text + sizeof text, static_cast<double>(state >> 8) / (1 << 22),
                          std::chars_format::fixed, 6)
                .ptr;
        if (c > 0)
          line += ',';
        line.append(text, end);
      }
      line += '\n';
      file << line;
    }
  }
};

// Fractions, which no float32 holds, are held as float64.
TEST_F(MemoryOfARun, OnAMillionRowsIsAtMostOneAndAHalfTimesTheirSize) {
  given_table(1'000'000, 20);
  write("table.json", R"({"treadle": 1, "name": "table", "seed": 1,
    "data": {"use": "csv", "path": "table.csv", "target": "x19"},
    "transforms": [{"use": "standardize"}],
    "model": {"use": "mlp", "hidden": [16]},
    "training": {"use": "standard", "epochs": 2, "batch_size": 1024}})");

  const Finished done = run({"run", "table.json", "--json"});

  ASSERT_EQ(done.code, 0) << done.err << done.out;
  const double size = 1e6 * 20 * sizeof(double);
  const double peak = peak_above_baseline(done.json().at("result"));
  RecordProperty("peak_over_size", std::to_string(peak / size));
  EXPECT_LE(peak, 1.5 * size);
}

// What grew by the row or by the sample: the table and its targets would be 108 MB more, the
// numbers of the samples 24 MB.
TEST_F(MemoryOfARun, OnWindowsOfAMappedTableDoesNotGrowWithTheTable) {
  const auto peak_of = [&](std::int64_t rows, std::int64_t evaluation_stride) {
    given_series("series", rows);
    const json document{
        {"treadle", 1},
        {"name", "windows"},
        {"seed", 1},
        {"data",
         {{"use", "npy"},
          {"inputs", "series-x.npy"},
          {"target", "series-y.npy"},
          {"access", "mapped"}}},
        {"sequence",
         {{"use", "windows"},
          {"lookback", 96},
          {"horizon", 24},
          {"evaluation_stride", evaluation_stride}}},
        {"transforms", {{{"use", "standardize"}}}},
        {"model", {{"use", "linear"}}},
        {"training",
         {{"use", "standard"}, {"epochs", 1}, {"steps_per_epoch", 40}, {"batch_size", 64}}},
        {"validation", {{"use", "time_series"}, {"folds", 2}}}};
    write("windows.json", document.dump());
    return peak_of_anonymous_memory("windows.json");
  };

  const double small = peak_of(3'000, 10);
  const double large = peak_of(3'000'000, 10'000);

  RecordProperty("grew_by_bytes", std::to_string(large - small));
  EXPECT_GT(small, 0);
  EXPECT_LE(large - small, 32e6) << small / 1e6 << " MB, " << large / 1e6 << " MB";
}

TEST_F(MemoryOfARun, IsWithinAQuarterOfWhatADryRunSays) {
  const struct {
    const char* name;
    json changes;
  } kModels[] = {
      {"wide",
       {{"data", {{"use", "friedman1"}, {"rows", 4000}}},
        {"model", {{"use", "mlp"}, {"hidden", {2048, 2048}}}},
        {"training", {{"use", "standard"}, {"epochs", 2}, {"batch_size", 256}}}}},
      {"large-data",
       {{"data", {{"use", "friedman1"}, {"rows", 1000000}, {"features", 20}}},
        {"model", {{"use", "linear"}}},
        {"training", {{"use", "standard"}, {"epochs", 1}, {"batch_size", 4096}}}}},
      {"folds-at-once",
       {{"data", {{"use", "friedman1"}, {"rows", 100000}, {"features", 64}}},
        {"model", {{"use", "mlp"}, {"hidden", {256, 256}}}},
        {"training", {{"use", "standard"}, {"epochs", 1}, {"batch_size", 1024}}},
        {"validation", {{"use", "k_fold"}, {"folds", 3}}}}},
  };
  for (const auto& [name, changes] : kModels) {
    json document{{"treadle", 1}, {"name", name}, {"seed", 3}};
    document.update(changes);
    write("model.json", document.dump());

    const Finished dry = run({"check", "model.json", "--dry-run", "--json"});
    const Finished done = run({"run", "model.json", "--json"});

    ASSERT_EQ(dry.code, 0) << dry.out;
    ASSERT_EQ(done.code, 0) << done.out;
    const double estimated = dry.json().at("estimated_bytes").get<double>();
    const double measured = peak_above_baseline(done.json().at("result"));
    RecordProperty(std::string(name) + "_estimated_over_measured",
                   std::to_string(estimated / measured));
    EXPECT_NEAR(estimated / measured, 1, 0.25)
        << name << ": estimated " << estimated / 1e6 << " MB, measured " << measured / 1e6 << " MB";
  }
}

}  // namespace
}  // namespace treadle
