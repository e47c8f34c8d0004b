// Windows over files that stay where they are: the same runs as over rows in memory.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "npy_bytes.h"
#include "watched_runs.h"

namespace treadle {
namespace {

using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

template <typename T>
void save_array(const fs::path& file, const std::string& shape, const std::vector<T>& values) {
  std::ofstream(file, std::ios::binary) << arrays::npy_of(shape, values);
}

/// Two series of 150 rows with three columns, a number to predict, weights and times.
void write_series_arrays(const fs::path& folder) {
  constexpr std::int64_t kRows = 300;
  std::vector<float> x;
  std::vector<float> y;
  std::vector<float> weights;
  std::vector<std::int64_t> groups;
  std::vector<double> times;
  std::uint32_t state = 7;
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (int column = 0; column < 4; ++column) {
      state = state * 1664525u + 1013904223u;
      (column < 3 ? x : y).push_back(static_cast<float>(state >> 8) / (1 << 24));
    }
    weights.push_back(static_cast<float>(1 + row % 3));
    groups.push_back(row / 150);
    times.push_back(static_cast<double>(row % 150));
  }
  save_array(folder / "x.npy", "(300, 3)", x);
  save_array(folder / "y.npy", "(300,)", y);
  save_array(folder / "weights.npy", "(300,)", weights);
  save_array(folder / "groups.npy", "(300,)", groups);
  save_array(folder / "times.npy", "(300,)", times);
}

struct WindowCase {
  const char* name;
  Json changes;
};

std::vector<WindowCase> window_cases() {
  const Json chronological = {{"use", "hold_out"},
                              {"strategy", "chronological"},
                              {"fraction", 0.2},
                              {"test_fraction", 0.2}};
  return {
      {"one series",
       {{"sequence", {{"use", "windows"}, {"lookback", 12}}}, {"validation", chronological}}},
      {"a horizon",
       {{"sequence",
         {{"use", "windows"}, {"lookback", 8}, {"horizon", 5}, {"gap", 2}, {"stride", 3}}},
        {"validation", {{"use", "time_series"}, {"folds", 3}}}}},
      {"past targets",
       {{"sequence", {{"use", "windows"}, {"lookback", 8}, {"include_targets", true}}},
        {"validation", chronological}}},
      {"apart",
       {{"sequence", {{"use", "windows"}, {"lookback", 4}, {"horizon", 2}, {"stride", 6}}},
        {"validation", {{"use", "k_fold"}, {"folds", 3}}}}},
      {"several series",
       {{"data", {{"groups", "groups.npy"}, {"times", "times.npy"}, {"weights", "weights.npy"}}},
        {"sequence", {{"use", "windows"}, {"lookback", 8}, {"horizon", 2}}},
        {"validation", chronological}}}};
}

TEST(MappedWindows, TrainTheSameBitsAsRowsInMemory) {
  const Workspace workspace;
  write_series_arrays(workspace.folder());
  const Runtime runtime = watching_runtime();
  for (const WindowCase& one : window_cases()) {
    SCOPED_TRACE(one.name);
    Json document = Json::parse(R"({
      "treadle": 1, "name": "windows", "seed": 4,
      "data": {"use": "npy", "inputs": "x.npy", "target": "y.npy"},
      "transforms": [{"use": "standardize"}],
      "model": {"use": "mlp", "hidden": [6]},
      "training": {"use": "standard", "epochs": 2, "batch_size": 16},
      "metrics": ["mae"]})");
    document.merge_patch(one.changes);
    for (const char* key : {"inputs", "target", "groups", "times", "weights"}) {
      if (Json& data = document["data"]; data.contains(key))
        data[key] = (workspace.folder() / data[key].get<std::string>()).string();
    }
    std::string bits;
    for (const char* access : {"memory", "mapped", "chunked"}) {
      SCOPED_TRACE(access);
      document["data"]["access"] = access;
      const Workspace runs;
      const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), runs.options());
      std::set<fs::path> models;  // of each fold
      for (const fs::directory_entry& entry : fs::recursive_directory_iterator(outcome.folder)) {
        if (entry.path().filename() == "model.safetensors")
          models.insert(entry.path());
      }
      EXPECT_FALSE(models.empty());
      std::string own = testing::history_of(outcome.folder);
      for (const fs::path& model : models)
        own += testing::read_file(model);
      if (bits.empty())
        bits = own;
      EXPECT_TRUE(own == bits);
    }
  }
}

}  // namespace
}  // namespace treadle
