// How much memory a run takes, measured on processes of its own.
#include <charconv>
#include <cmath>
#include <fstream>

#include <gmock/gmock.h>

#include "command_fixture.h"

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

TEST_F(MemoryOfARun, OnAMillionRowsIsAtMostTwoAndAHalfTimesTheirSize) {
  given_table(1'000'000, 20);
  write("table.json", R"({"treadle": 1, "name": "table", "seed": 1,
    "data": {"use": "csv", "path": "table.csv", "target": "x19"},
    "transforms": [{"use": "standardize"}],
    "model": {"use": "mlp", "hidden": [16]},
    "training": {"use": "standard", "epochs": 2, "batch_size": 1024}})");

  const Finished done = run({"run", "table.json", "--json"});

  ASSERT_EQ(done.code, 0) << done.err << done.out;
  const double size = 1e6 * 20 * sizeof(float);
  const double peak = peak_above_baseline(done.json().at("result"));
  RecordProperty("peak_over_size", std::to_string(peak / size));
  EXPECT_LE(peak, 2.5 * size);
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
