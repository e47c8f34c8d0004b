// A run that is killed, not stopped: SIGKILL leaves no time to save anything.
#include <chrono>
#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>

#include <ATen/ops/rand.h>
#include <ATen/ops/sin.h>

#include <treadle/base/random.h>
#include <treadle/host/run/checkpoint_store.h>
#include <treadle/host/run/predictor.h>
#include <treadle/tensor/task_random.h>

#include "app_process.h"
#include "workspace.h"

namespace treadle {
namespace {

using testing::AppProcess;
using testing::bits_of;
using testing::runner;
using testing::Workspace;
namespace fs = std::filesystem;
using Clock = AppProcess::Clock;
using std::chrono::microseconds;

/// TREADLE_RUN_KILLS=50 kills each run so often.
int kills() {
  constexpr int kQuickKills = 10;
  const char* const wanted = std::getenv("TREADLE_RUN_KILLS");
  return wanted == nullptr ? kQuickKills : std::stoi(wanted);
}
constexpr std::uint64_t kKillsARun = 5;
constexpr std::chrono::minutes kPatience{5};

fs::path write_document(const fs::path& folder, const nlohmann::json& document) {
  const fs::path path = folder / "document.json";
  std::ofstream(path) << document;
  return path;
}

/// Many small steps, and checkpoints faster than a disk takes them.
nlohmann::json many_small_steps() {
  nlohmann::json document = testing::moons();
  document["data"]["rows"] = 2400;
  document["training"]["epochs"] = 25;
  document["training"]["checkpoint"] = {{"every", "7st"}};
  document["training"].erase("early_stopping");
  document["training"]["restore_best_weights"] = nlohmann::json::object();
  return document;
}

/// Folds that follow one another, each with the weights of the one before.
nlohmann::json walk_forward() {
  nlohmann::json document = many_small_steps();
  document["data"] = {{"use", "ar_series"}, {"length", 2000}, {"window", 5}};
  document["model"] = {{"use", "mlp"}, {"hidden", {8}}, {"dropout", 0.3}};
  document["training"]["epochs"] = 8;
  document["metrics"] = {"rmse"};
  document["validation"] = {{"use", "walk_forward"},
                            {"start", "40%"},
                            {"test_size", "20%"},
                            {"validation_size", "10%"},
                            {"warm_start", true}};
  return document;
}

/// Lines of a text of digits, several in a sample.
nlohmann::json packed_text(const fs::path& folder) {
  RandomBits bits(8);
  std::ofstream text(folder / "text.txt");
  for (int line = 0; line < 600; ++line)
    text << bits.below(1'000'000) << '\n';
  nlohmann::json document = many_small_steps();
  document.erase("transforms");
  document["data"] = {{"use", "text"},
                      {"path", (folder / "text.txt").string()},
                      {"format", "lines"},
                      {"tokenizer", {{"use", "characters"}, {"end_of_text", true}}}};
  document["sequence"] = {{"use", "packed"}, {"length", 16}};
  document["model"] =
      nlohmann::json::parse(R"({"use": "flow", "flow": [{"use": "graph", "builder": {
      "use": "gpt", "num_layers": 1, "num_heads": 2, "hidden_size": 8, "max_length": 16},
      "using": ["segments"]}]})");
  document["training"]["epochs"] = 12;
  document["training"]["batch_size"] = 4;
  document["metrics"] = {"perplexity"};
  return document;
}

/// Every batch is tested before it is trained on; windows and changes are part of the state.
nlohmann::json prequential() {
  nlohmann::json document = many_small_steps();
  document["data"] = {{"use", "sea"}, {"concept_rows", 10000}};
  document["training"] = {{"use", "prequential"},    {"window", 1000},
                          {"batch_size", 10},        {"changes", "groups"},
                          {"ema", {{"decay", 0.9}}}, {"checkpoint", {{"every", "37st"}}}};
  document["metrics"] = {"accuracy"};
  document.erase("validation");
  return document;
}

/// A generator without end, with what its place in the rows decides: windows that are shuffled,
/// transforms fitted to the first rows, an average of weights.
nlohmann::json endless() {
  return {{"treadle", 1},
          {"name", "endless"},
          {"seed", 3},
          {"data", {{"use", "friedman1"}, {"rows", "endless"}, {"noise", 0.5}}},
          {"transforms", {{{"use", "standardize"}, {"target", true}}}},
          {"model", {{"use", "mlp"}, {"hidden", {16}}, {"dropout", 0.02}}},
          {"optimizer", {{"use", "adamw"}, {"learning_rate", 0.003}}},
          {"training",
           {{"use", "standard"},
            {"steps_per_epoch", 1000},
            {"max_steps", 20000},
            {"batch_size", 32},
            {"shuffle_buffer", 1000},
            {"ema", {{"decay", 0.99}}},
            {"checkpoint", {{"every", "250st"}}}}},
          {"validation", {{"use", "hold_out"}, {"rows", 500}}},
          {"resources", {{"workers", 2}}}};
}

/// One run, as its folder shows it while another process works on it.
class KilledRun {
 public:
  KilledRun(std::string document, fs::path output)
      : document_(std::move(document)), output_(std::move(output)) {}

  /// Starts it, or goes on with it.
  std::unique_ptr<AppProcess> start() {
    if (!fs::exists(folder() / "workflow.json")) {
      fs::remove_all(output_);  // killed before there was anything to resume
      return std::make_unique<AppProcess>(std::vector<std::string>{
          runner(), "run", document_, "--quiet", "--output", output_.string()});
    }
    return std::make_unique<AppProcess>(
        std::vector<std::string>{runner(), "resume", folder().string(), "--quiet"});
  }

  fs::path folder() const {
    std::error_code error;
    const fs::directory_iterator runs(output_, error);
    return runs == fs::directory_iterator() ? output_ / "none" : runs->path();
  }

  std::uintmax_t events_size() const {
    std::error_code error;
    const std::uintmax_t size = fs::file_size(folder() / "events.jsonl", error);
    return error ? 0 : size;
  }

  /// Whether its one fit has a checkpoint of that step or of a later one.
  bool has_saved(const std::string& step) const {
    return CheckpointStore(folder() / "checkpoints" / "final").newest().filename() >= step;
  }

  /// Whether a checkpoint has been begun and is not in place yet.
  bool is_saving() const {
    std::error_code error;
    for (const auto& training : fs::directory_iterator(folder() / "checkpoints", error)) {
      for (const auto& entry : fs::directory_iterator(training.path(), error)) {
        if (entry.path().extension() == ".tmp")
          return true;
      }
    }
    return false;
  }

 private:
  std::string document_;
  fs::path output_;
};

/// Kills a run that often, at random instants, and compares what it comes to with one that was left
/// alone. Returns how often it was killed while it saved.
int kill_at_random(const nlohmann::json& workflow, int most_kills) {
  const Workspace workspace;
  const std::string document = write_document(workspace.folder(), workflow).string();
  KilledRun whole(document, workspace.folder() / "whole");
  const auto begin = Clock::now();
  Clock::time_point training_begun{};
  const std::unique_ptr<AppProcess> undisturbed = whole.start();
  undisturbed->wait(kPatience, [&] { return whole.events_size() > 0; });
  training_begun = Clock::now();
  undisturbed->wait(kPatience);
  EXPECT_EQ(undisturbed->exit_code(), 0);
  const auto starting = std::chrono::duration_cast<microseconds>(training_begun - begin);
  const auto training = std::chrono::duration_cast<microseconds>(Clock::now() - training_begun);
  const std::string expected = bits_of(whole.folder());

  RandomBits random(2026);
  const auto up_to = [&](microseconds longest) {
    return microseconds(random.below(static_cast<std::uint64_t>(longest.count()) + 1));
  };
  int kills = 0;
  int in_a_save = 0;
  for (int round = 0; kills < most_kills && !::testing::Test::HasFailure(); ++round) {
    EXPECT_LT(round, most_kills) << "runs end before they are killed: the test tests nothing";
    KilledRun run(document, workspace.folder() / ("run-" + std::to_string(round)));
    std::unique_ptr<AppProcess> process = run.start();
    for (std::uint64_t i = 0; i < kKillsARun && kills < most_kills; ++i) {
      // One of five at any time from the start on, one while it saves, the others while it trains,
      // on average a fifth of it further each time.
      const std::uintmax_t before = run.events_size();
      if (i == 1) {
        process->wait(up_to(starting));
      } else {
        process->wait(kPatience, [&] { return run.events_size() > before; });
        process->wait(up_to(training * 2 / static_cast<int>(kKillsARun)));
      }
      if (i == 3) {
        process->wait(std::chrono::seconds(1), [&] { return run.is_saving(); });
        process->wait(up_to(microseconds(5000)));
      }
      if (process->ended())
        break;
      process->kill_now();
      ++kills;
      in_a_save += run.is_saving() ? 1 : 0;
      process = run.start();
    }
    process->wait(kPatience);
    EXPECT_EQ(process->exit_code(), 0) << "round " << round;
    EXPECT_EQ(bits_of(run.folder()), expected) << "round " << round;
    fs::remove_all(run.folder());
  }
  return in_a_save;
}

TEST(KilledRun, ResumesToTheSameBitsAtWhicheverInstantsItWasKilled) {
  const int in_a_save = kill_at_random(many_small_steps(), kills());

  RecordProperty("kills_in_a_save", in_a_save);
  EXPECT_GE(in_a_save, kills() / 25);  // of few there may be none
}

TEST(KilledRun, InsideTheFoldsOfAWalkForwardResumesToTheSameBits) {
  kill_at_random(walk_forward(), kills() / 5);
}

TEST(KilledRun, BetweenTestingAndTrainingResumesToTheSameBits) {
  kill_at_random(prequential(), kills() / 5);
}

TEST(KilledRun, InsideAnEpochOfPackedTextResumesToTheSameBits) {
  const Workspace workspace;
  kill_at_random(packed_text(workspace.folder()), kills() / 5);
}

int count_of(const std::string& text, const std::string& words) {
  int count = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++count;
  return count;
}

TEST(KilledRun, OnAStreamWithoutEndResumesToTheSameBitsAndPredicts) {
  const Workspace workspace;
  const std::string document = write_document(workspace.folder(), endless()).string();
  KilledRun whole(document, workspace.folder() / "whole");
  const std::unique_ptr<AppProcess> undisturbed = whole.start();
  undisturbed->wait(kPatience);
  ASSERT_EQ(undisturbed->exit_code(), 0);

  KilledRun run(document, workspace.folder() / "killed");
  std::unique_ptr<AppProcess> process = run.start();
  // Within the first epoch, as one ends, and within later ones.
  for (const char* step :
       {"step-000000000500", "step-000000003000", "step-000000007250", "step-000000012750"}) {
    process->wait(kPatience, [&] { return run.has_saved(step); });
    ASSERT_FALSE(process->ended()) << "the run ended before it was killed";
    process->kill_now();
    ASSERT_FALSE(fs::exists(run.folder() / "result.json")) << step;
    process = run.start();
  }
  process->wait(kPatience);
  ASSERT_EQ(process->exit_code(), 0);

  const std::string events = testing::read_file(run.folder() / "events.jsonl");
  EXPECT_EQ(count_of(events, "\"run_started\""), 5);
  EXPECT_EQ(count_of(events, "step-000000000250\""), 1) << "it began again";
  EXPECT_EQ(bits_of(run.folder()), bits_of(whole.folder()));

  const TaskRandom random(1);
  const at::Tensor x = at::rand({500, 10});
  const auto column = [&](std::int64_t i) { return x.select(1, i); };
  const at::Tensor y = at::sin(column(0) * column(1) * 3.14159265358979).mul(10) +
                       (column(2) - 0.5).square().mul(20) + column(3).mul(10) + column(4).mul(5);
  const Runtime runtime;
  const at::Tensor predicted = Predictor::load(runtime, run.folder()).predict(x).values;
  ASSERT_EQ(predicted.sizes(), (std::vector<std::int64_t>{500, 1}));
  // A mean would have 4.9.
  EXPECT_LT(predicted.squeeze(1).sub(y).square().mean().sqrt().item<double>(), 0.8);
}

}  // namespace
}  // namespace treadle
