#pragma once

#include <chrono>
#include <fstream>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "app_process.h"
#include "watched_runs.h"

namespace treadle::testing {

/// Where the processes of a search meet.
struct MeetingPlace {
  std::string storage;  ///< "sqlite"
  /// Its location, for a test with that folder of its own.
  std::function<std::string(const fs::path&)> location;
  /// Why it is not here; empty: it is.
  std::string missing = {};
};
inline std::ostream& operator<<(std::ostream& out, const MeetingPlace& place) {
  return out << place.storage;
}

/// All that must be equal between equal searches; history.csv has the rows of one process alone.
inline std::string outcome_of(const fs::path& run) {
  const nlohmann::json result = nlohmann::json::parse(read_file(run / "result.json"));
  return result.at("search").dump() + read_file(run / "model.safetensors");
}

inline nlohmann::json shared_document() {
  return nlohmann::json::parse(R"({
    "treadle": 1, "name": "shared", "seed": 11,
    "data": {"use": "moons", "rows": 96, "noise": 0.2},
    "model": {"use": "mlp", "hidden": [4], "dropout": 0.1},
    "optimizer": {"use": "sgd", "learning_rate": 0.01},
    "training": {"use": "standard", "epochs": 60, "batch_size": 8,
      "checkpoint": {"every": "20st"}},
    "validation": {"use": "hold_out", "fraction": 0.25},
    "search": {
      "trials": 14, "parallel": 4, "pruner": {"use": "asha", "reduction_factor": 2,
        "min_resource": 4},
      "space": {
        "model.hidden": {"choice": [[4], [16], [8, 8]]},
        "optimizer.learning_rate": {"log_uniform": [1e-3, 1]}
      }},
    "resources": {"workers": 1}})");
}

/// Processes of a test that search together.
class SearchesAt : public ::testing::TestWithParam<MeetingPlace> {
 protected:
  using Seconds = std::chrono::duration<double>;
  static constexpr std::chrono::seconds kLease{2};

  void SetUp() override {
    if (std::getenv("TREADLE_RUNNER") == nullptr)
      GTEST_SKIP() << "TREADLE_RUNNER does not name the app";
    if (!GetParam().missing.empty())
      GTEST_SKIP() << GetParam().missing;
    if (Runtime().schemas().find("storage", GetParam().storage).schema == nullptr)
      GTEST_SKIP() << "the storage " << GetParam().storage << " was not built";
    location_ = GetParam().location(workspace_.folder());
  }

  /// The outcome of one undisturbed process.
  static std::string outcome_alone(const nlohmann::json& document) {
    const Runtime runtime = watching_runtime();
    const Workspace alone;
    return outcome_of(run_workflow(runtime, runtime.resolve(document), alone.options()).folder);
  }

  /// The search of the processes from now on.
  void write(nlohmann::json document) const {
    document["search"]["storage"] = {{"use", GetParam().storage}, {"location", location_}};
    document["search"]["lease"] = std::to_string(kLease.count()) + "s";
    std::ofstream(workspace_.folder() / "shared.json") << document;
  }

  std::vector<std::string> begin() const {
    return {app(), "tune",          (workspace_.folder() / "shared.json").string(),
            "-o",  runs().string(), "-q"};
  }
  std::vector<std::string> join() const {
    return {app(), "tune", "--join", GetParam().storage + ":" + location_, "--json"};
  }
  std::vector<std::string> resumed() const { return {app(), "resume", run().string(), "-q"}; }
  AppProcess::Options logged(std::vector<std::string> environment = {}) const {
    return {.output = log(), .environment = std::move(environment)};
  }

  fs::path run() const {
    std::error_code error;
    const fs::directory_iterator runs(this->runs(), error);
    return runs == fs::directory_iterator() ? this->runs() / "none" : runs->path();
  }
  fs::path log() const { return workspace_.folder() / "log"; }
  /// Until others can join.
  void wait_for_study() const {
    for (int i = 0; i < 1200 && !fs::exists(run() / "checkpoints/trials"); ++i)
      std::this_thread::sleep_for(Seconds(0.05));
  }
  /// Until a trial has begun that none had before, or for 15 seconds.
  void wait_for_more_trials() const {
    const auto trials = [&] {
      return std::distance(fs::directory_iterator(run() / "checkpoints/trials"),
                           fs::directory_iterator());
    };
    const auto before = trials();
    for (int i = 0; i < 300 && trials() <= before; ++i)
      std::this_thread::sleep_for(Seconds(0.05));
  }
  /// For up to so many seconds, at least 0.1.
  void wait_up_to(double seconds) {
    std::this_thread::sleep_for(
        Seconds(std::uniform_real_distribution<double>(0.1, seconds)(random_)));
  }

  const Workspace workspace_;
  std::string location_;

 private:
  static std::string app() { return std::getenv("TREADLE_RUNNER"); }
  fs::path runs() const { return workspace_.folder() / "runs"; }

  std::mt19937 random_{2026};
};

inline std::string name_of_place(const ::testing::TestParamInfo<MeetingPlace>& info) {
  return info.param.storage;
}

/// The suite of joined_search_test.cpp.
class JoinedSearches : public SearchesAt {};

}  // namespace treadle::testing
