// Searches that are killed at random instants, and by other numbers of workers: the same studies.
//
// Each search is killed kQuickKills times; TREADLE_SEARCH_KILLS=50 sets another number.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include <treadle/base/random.h>

#include "app_process.h"
#include "workspace.h"

namespace treadle {
namespace {

using testing::AppProcess;
using testing::history_of;
using testing::read_file;
using testing::Workspace;
using Clock = AppProcess::Clock;
using Json = nlohmann::json;
using std::chrono::microseconds;
namespace fs = std::filesystem;

constexpr int kQuickKills = 3;
constexpr std::uint64_t kKillsARun = 5;
constexpr std::chrono::minutes kPatience{5};

int kills_of_each() {
  const char* const wanted = std::getenv("TREADLE_SEARCH_KILLS");
  return wanted != nullptr ? std::stoi(wanted) : kQuickKills;
}

/// The lines of a journal about each trial, without times, processes and what a resumed search
/// wrote again. Trials that run side by side mix their lines, so the order is compared within each
/// trial.
std::string trials_of(const fs::path& run) {
  std::map<std::int64_t, std::vector<std::string>> trials;
  std::int64_t begun = 0;
  std::istringstream journal(read_file(run / "search.journal"));
  for (std::string text; std::getline(journal, text);) {
    Json line = Json::parse(text);
    for (const char* changing : {"worker_id", "datetime_start", "datetime_complete"})
      line.erase(changing);
    if (line.contains("system_attr") && line["system_attr"].contains("treadle:job")) {
      line["system_attr"]["treadle:job"].erase("seconds");
      line["system_attr"]["treadle:job"].erase("elapsed");
    }
    const bool is_new_trial = line.at("op_code") == 4;
    std::vector<std::string>& lines =
        trials[is_new_trial ? begun++ : line.value("trial_id", std::int64_t{-1})];
    if (std::find(lines.begin(), lines.end(), line.dump()) == lines.end())
      lines.push_back(line.dump());
  }
  std::string all;
  for (const auto& [trial, lines] : trials) {
    for (const std::string& line : lines)
      all += line + '\n';
  }
  return all;
}

/// All that must be equal between equal searches, by its name.
std::map<std::string, std::string> study_of(const fs::path& run) {
  const Json result = Json::parse(read_file(run / "result.json"));
  return {{"search.journal", trials_of(run)},
          {"trials of result.json", result.at("search").dump(1)},
          {"history.csv", history_of(run)},
          {"model.safetensors", read_file(run / "model.safetensors")}};
}

void expect_same(const std::map<std::string, std::string>& found,
                 const std::map<std::string, std::string>& expected, const std::string& what) {
  for (const auto& [name, content] : expected)
    EXPECT_TRUE(found.at(name) == content) << what << ": another " << name;
}

struct Search {
  std::string name;
  Json search;  // keys of "search"
};
std::ostream& operator<<(std::ostream& out, const Search& search) {
  return out << search.name;
}

/// A search as its folder shows it while another process works on it.
class SearchRun {
 public:
  SearchRun(Json document, int workers, fs::path folder) : folder_(std::move(folder)) {
    document["resources"]["workers"] = workers;
    fs::create_directories(folder_);
    std::ofstream(document_of(folder_)) << document;
  }

  /// Begins it, or resumes it.
  std::unique_ptr<AppProcess> start() {
    const AppProcess::Options options{.output = log()};
    if (!fs::exists(run() / "workflow.json")) {
      fs::remove_all(runs());  // killed before there was anything to resume
      return std::make_unique<AppProcess>(
          std::vector<std::string>{testing::runner(), "tune", document_of(folder_).string(), "-q",
                                   "-o", runs().string()},
          options);
    }
    return std::make_unique<AppProcess>(
        std::vector<std::string>{testing::runner(), "resume", run().string(), "-q"}, options);
  }
  void finish(AppProcess& process) const {
    process.wait(kPatience);
    ASSERT_TRUE(process.ended()) << folder_;
    ASSERT_EQ(process.exit_code(), 0) << read_file(log());
  }

  fs::path run() const {
    std::error_code error;
    const fs::directory_iterator runs(this->runs(), error);
    return runs == fs::directory_iterator() ? this->runs() / "none" : runs->path();
  }
  std::uintmax_t journal_size() const {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(run() / "search.journal", error);
    return error ? 0 : size;
  }

 private:
  static fs::path document_of(const fs::path& folder) { return folder / "search.json"; }
  fs::path runs() const { return folder_ / "runs"; }
  fs::path log() const { return folder_ / "log"; }

  const fs::path folder_;
};

class KilledSearches : public ::testing::TestWithParam<Search> {
 protected:
  static Json document() {
    Json document = Json::parse(R"({
      "treadle": 1, "name": "killed", "seed": 11,
      "data": {"use": "moons", "rows": 128, "noise": 0.2},
      "transforms": ["standardize"],
      "model": {"use": "mlp", "hidden": [8], "dropout": 0.1},
      "optimizer": {"use": "adamw", "learning_rate": 0.01},
      "training": {"use": "standard", "epochs": 9, "batch_size": 8,
                   "checkpoint": {"every": "7st"}},
      "validation": {"use": "hold_out", "fraction": 0.25},
      "search": {
        "trials": 12, "keep": 2,
        "space": {
          "optimizer.learning_rate": {"log_uniform": [1e-4, 1e-1]},
          "model.dropout": {"uniform": [0, 0.5]}}}})");
    document["search"].update(GetParam().search);
    return document;
  }
  fs::path place(const std::string& name) const { return workspace_.folder() / name; }

  const Workspace workspace_;
};

TEST_P(KilledSearches, AreTheSameForAnyWorkersAndWheneverTheyWereKilled) {
  SearchRun whole(document(), 1, place("whole"));
  const auto begin = Clock::now();
  const std::unique_ptr<AppProcess> undisturbed = whole.start();
  undisturbed->wait(kPatience, [&] { return whole.journal_size() > 0; });
  const auto search_begun = Clock::now();
  whole.finish(*undisturbed);
  const auto starting = std::chrono::duration_cast<microseconds>(search_begun - begin);
  const auto searching = std::chrono::duration_cast<microseconds>(Clock::now() - search_begun);
  const auto expected = study_of(whole.run());

  for (const int workers : {2, 3, 8}) {
    SearchRun other(document(), workers, place(std::to_string(workers) + "-workers"));
    other.finish(*other.start());
    expect_same(study_of(other.run()), expected, std::to_string(workers) + " workers");
  }

  RandomBits random(2026);
  const auto up_to = [&](microseconds longest) {
    return microseconds(random.below(static_cast<std::uint64_t>(longest.count()) + 1));
  };
  const int most_kills = kills_of_each();
  int kills = 0;
  for (int round = 0; kills < most_kills && !HasFailure(); ++round) {
    ASSERT_LT(round, most_kills) << "searches end before they are killed: the test tests nothing";
    SearchRun run(document(), round % 3 + 1, place("killed-" + std::to_string(round)));
    std::unique_ptr<AppProcess> process = run.start();
    for (std::uint64_t i = 0; i < kKillsARun && kills < most_kills; ++i) {
      // One of five at any time from the start on, the others while it searches, on average a fifth
      // of it further each time.
      const std::uintmax_t before = run.journal_size();
      if (i == 1) {
        process->wait(up_to(starting));
      } else {
        process->wait(kPatience, [&] { return run.journal_size() > before; });
        process->wait(up_to(searching * 2 / static_cast<int>(kKillsARun)));
      }
      if (process->ended())
        break;
      process->kill_now();
      ++kills;
      process = run.start();
    }
    run.finish(*process);
    expect_same(study_of(run.run()), expected, "round " + std::to_string(round));
    fs::remove_all(place("killed-" + std::to_string(round)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Searches, KilledSearches,
    ::testing::Values(
        Search{"RandomAsha",
               {{"tuner", "random"}, {"pruner", {{"use", "asha"}, {"reduction_factor", 2}}}}},
        Search{"Tpe", {{"tuner", {{"use", "tpe"}, {"n_startup_trials", 4}}}}},
        Search{"PopulationBased",
               {{"tuner", "random"},
                {"pruner", {{"use", "population_based"}, {"population", 4}, {"interval", 2}}}}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace treadle
