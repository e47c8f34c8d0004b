#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include <treadle/host/run/workflow_run.h>

/// A temporary folder for runs, and what tests ask of a finished run.
namespace treadle::testing {

namespace fs = std::filesystem;

class Workspace {
 public:
  explicit Workspace(const fs::path& in = fs::temp_directory_path()) {
    std::string pattern = (in / "treadle-run-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Workspace() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  const fs::path& folder() const { return folder_; }
  RunOptions options() const {
    RunOptions options;
    options.output = folder_ / "runs";
    return options;
  }

 private:
  fs::path folder_;
};

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// history.csv without its last column, the seconds: all that must be equal between equal runs.
inline std::string history_of(const fs::path& run) {
  std::istringstream text(read_file(run / "history.csv"));
  std::string line;
  std::string kept;
  while (std::getline(text, line))
    kept += line.substr(0, line.rfind(',')) + "\n";
  return kept;
}

/// Weights and history of a run: equal for equal runs, bit for bit.
inline std::string bits_of(const fs::path& run) {
  return read_file(run / "model.safetensors") + history_of(run);
}

/// Where the repository lies.
inline fs::path source_folder() {
  return std::getenv("TREADLE_SOURCE");
}
inline fs::path build_folder() {
  return std::getenv("TREADLE_BUILD");
}
/// Plugins that stand within a run: `watched` and `faulty`.
inline fs::path test_plugins() {
  return build_folder() / "tests/run/plugins";
}

/// A cross-validated classifier with everything random switched on, small enough for a test.
inline nlohmann::json moons(int workers = 2) {
  return nlohmann::json::parse(R"({
    "treadle": 1, "name": "moons", "seed": 11,
    "data": {"use": "moons", "rows": 240, "noise": 0.2},
    "transforms": [{"use": "standardize"}],
    "model": {"use": "mlp", "hidden": [8], "dropout": 0.3},
    "optimizer": {"use": "adamw", "learning_rate": 0.01},
    "schedule": {"use": "cosine", "warmup": "10%"},
    "training": {"use": "standard", "epochs": 6, "batch_size": 16,
                 "early_stopping": {"patience": "3ep"}, "checkpoint": {"every": "5st"}},
    "validation": {"use": "k_fold", "folds": 3},
    "resources": {"workers": )" +
                               std::to_string(workers) + "}}");
}

}  // namespace treadle::testing
