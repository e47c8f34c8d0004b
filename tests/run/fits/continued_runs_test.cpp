// A run that is trained further is the run that would have trained so long at once.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <treadle/base/error.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Impatient;
using testing::moons;
using testing::read_file;
using testing::watching_runtime;
using testing::Workspace;
using Overrides = std::vector<std::string>;
namespace fs = std::filesystem;

/// history.csv without its last column, the seconds, and without the number of epochs that were
/// planned, which the first epochs of a run that goes on did not know.
std::string trained_history(const fs::path& run) {
  std::istringstream text(read_file(run / "history.csv"));
  std::string kept;
  for (std::string line; std::getline(text, line);) {
    std::istringstream fields(line.substr(0, line.rfind(',')));
    std::string field;
    for (int i = 0; std::getline(fields, field, ','); ++i)
      kept += i == 2 ? "" : field + ",";
    kept += "\n";
  }
  return kept;
}

std::string trained_bits(const fs::path& run) {
  return read_file(run / "model.safetensors") + trained_history(run);
}

class ContinuedRuns : public ::testing::TestWithParam<const char*> {
 protected:
  /// Everything random switched on; a rate that does not depend on the number of epochs.
  static nlohmann::json document(int epochs) {
    nlohmann::json document = moons();
    document["schedule"] = "constant";
    document["training"]["epochs"] = epochs;
    document["training"].erase("early_stopping");
    document.merge_patch(nlohmann::json::parse(GetParam()));
    return document;
  }

  RunOutcome train(const nlohmann::json& document) const {
    return run_workflow(runtime_, runtime_.resolve(document), workspace_.options());
  }
  RunOutcome go_on(const fs::path& from, const Overrides& overrides) const {
    return continue_run(runtime_, from, overrides, workspace_.options());
  }

  std::string refusal(const fs::path& from, const Overrides& overrides) const {
    try {
      go_on(from, overrides);
    } catch (const Error& error) {
      return error.what();
    }
    return "it went on";
  }

  const Runtime runtime_ = watching_runtime();
  const Workspace workspace_;
};

TEST_P(ContinuedRuns, HaveTheBitsOfAllEpochsAtOnce) {
  const fs::path whole = train(document(5)).folder;
  const fs::path first = train(document(3)).folder;
  const std::string before = trained_bits(first);

  const RunOutcome outcome = go_on(first, {"training.epochs=5"});

  EXPECT_EQ(trained_bits(outcome.folder), trained_bits(whole));
  EXPECT_EQ(trained_bits(first), before) << "the run that it went on from was changed";
  EXPECT_NE(outcome.folder, first);
  EXPECT_EQ(outcome.result.environment.at("from").at("run"), first.string());
  const auto at_once = nlohmann::json::parse(read_file(whole / "result.json"));
  for (const char* key : {"total_epochs", "best_epoch", "stop_reason", "metrics", "choices"})
    EXPECT_EQ(to_json(outcome.result).at(key), at_once.at(key)) << key;
}

/// Decisions due after the last epoch are taken there, not one epoch late.
TEST(ContinuedRun, TakesDecisionsInTheirEpochsWhereverItWasCut) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const auto train = [&](const nlohmann::json& document) {
    return run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
  };
  for (const char* const callback :
       {R"({"use": "scale_learning_rate", "when": {"after": "3ep"}, "factor": 0.1})",
        R"({"use": "scale_learning_rate", "when": {"monitor": "train_loss", "improving": 2},
            "factor": 0.5})",
        R"({"use": "freeze", "parameters": ["layers.0.*"], "until": {"after": "3ep"}})",
        R"({"use": "reduce_on_plateau", "patience": "1ep", "min_delta": 10, "factor": 0.5})"}) {
    nlohmann::json document = moons();
    document["schedule"] = "constant";
    document["validation"] = {{"use", "hold_out"}};
    document["training"].erase("early_stopping");
    document["training"]["callbacks"] = {nlohmann::json::parse(callback)};
    document["training"]["epochs"] = 5;
    const std::string whole = trained_bits(train(document));
    for (const int cut : {2, 3}) {
      document["training"]["epochs"] = cut;
      const fs::path first = train(document);

      const fs::path last =
          continue_run(runtime, first, Overrides{"training.epochs=5"}, workspace.options()).folder;

      EXPECT_EQ(trained_bits(last), whole) << callback << " cut after epoch " << cut;
    }
  }
}

/// Callbacks with drawn parameters, and when they act.
class DrawnCallbacks {
 public:
  explicit DrawnCallbacks(std::uint64_t seed) : random_(seed) {}

  std::int64_t one_of(std::int64_t count) {
    return std::uniform_int_distribution<std::int64_t>(0, count - 1)(random_);
  }
  /// One to three, of different kinds; one average of the weights at most.
  nlohmann::json callbacks() {
    std::vector<nlohmann::json> all = {
        {{"use", "scale_learning_rate"},
         {"when", condition()},
         {"factor", 0.5},
         {"times", 1 + one_of(3)}},
        {{"use", "freeze"}, {"parameters", {"layers.0.*"}}, {"until", condition()}},
        {{"use", "reduce_on_plateau"},
         {"patience", epochs()},
         {"min_delta", 0.01 * static_cast<double>(one_of(4))},
         {"factor", 0.5},
         {"cooldown", epochs()}},
        {{"use", "stop"}, {"when", condition()}},
        {{"use", "early_stopping"},
         {"patience", epochs()},
         {"min_delta", 0.02},
         {"restore_best_weights", one_of(2) == 0}},
        {{"use", "divergence_guard"}, {"growth", 1.2}, {"skip", one_of(5)}, {"baseline_steps", 2}},
        one_of(2) == 0 ? nlohmann::json{{"use", "ema"}, {"decay", 0.9}, {"start", epochs()}}
                       : nlohmann::json{{"use", "swa"}, {"start", epochs()}}};
    std::shuffle(all.begin(), all.end(), random_);
    all.resize(static_cast<std::size_t>(1 + one_of(3)));
    return all;
  }

 private:
  std::string epochs() { return std::to_string(1 + one_of(3)) + "ep"; }
  nlohmann::json condition() {
    switch (one_of(4)) {
      case 0:
        return {{"after", epochs()}};
      case 1:
        return {{"monitor", "train_loss"}, {"improving", 2 + one_of(2)}};
      case 2:
        return {{"monitor", "val_loss"}, {"stalled", {2, 0.05}}};
      default:
        return {{"monitor", "val_loss"}, {"below", 0.35 + 0.05 * static_cast<double>(one_of(6))}};
    }
  }
  std::mt19937_64 random_;
};

/// TREADLE_CUTS of them.
TEST(ContinuedRun, HasTheBitsOfOneTrainingWhateverActsAndWhereverItWasCut) {
  const char* const wanted = std::getenv("TREADLE_CUTS");
  const int cuts = wanted == nullptr ? 12 : std::stoi(wanted);
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  int continued = 0;
  for (int seed = 0; seed < cuts; ++seed) {
    DrawnCallbacks drawn(static_cast<std::uint64_t>(seed));
    nlohmann::json document = moons();
    document["schedule"] = "constant";
    document["optimizer"] = {{"use", "adamw"}, {"learning_rate", 0.02}};
    document["validation"] = {{"use", "hold_out"}};
    document["training"].erase("early_stopping");
    document["training"]["callbacks"] = drawn.callbacks();
    const auto train = [&](std::int64_t epochs) {
      document["training"]["epochs"] = epochs;
      return run_workflow(runtime, runtime.resolve(document), workspace.options());
    };
    const std::int64_t cut = 1 + drawn.one_of(5);
    const RunOutcome whole = train(6);
    const RunOutcome first = train(cut);
    fs::path last = first.folder;
    const auto ended = whole.result.training.total_epochs;
    if (ended > cut) {
      ++continued;
      last =
          continue_run(runtime, first.folder, Overrides{"training.epochs=6"}, workspace.options())
              .folder;
    }
    // One that ends with its epochs does not record that it would have been stopped there.
    const auto bits = [&](const fs::path& run) {
      return ended == cut ? read_file(run / "model.safetensors") : trained_bits(run);
    };
    EXPECT_EQ(bits(last), bits(whole.folder))
        << document.at("training").at("callbacks") << " cut after epoch " << cut << " of " << ended;
  }
  EXPECT_GT(continued, cuts / 3);
}

TEST_P(ContinuedRuns, CanThemselvesBeStoppedAndTrainedFurther) {
  const fs::path whole = train(document(6)).folder;
  const fs::path first = train(document(2)).folder;
  const fs::path second = go_on(first, {"training.epochs=4"}).folder;

  EXPECT_EQ(trained_bits(go_on(second, {"training.epochs=6"}).folder), trained_bits(whole));
}

TEST_P(ContinuedRuns, NeedTheEpochsThatAreNew) {
  const fs::path first = train(document(3)).folder;

  EXPECT_THAT(refusal(first, {}),
              AllOf(HasSubstr("has been trained for"), HasSubstr("--set training.epochs=")));
  EXPECT_THAT(refusal(first, {"training.epochs=2"}), HasSubstr("set it higher"));
  EXPECT_THAT(refusal(first, {"training.epochs=6", "training.max_steps=1"}),
              AllOf(HasSubstr("training.max_steps is 1"), HasSubstr("--set training.max_steps=")));
}

INSTANTIATE_TEST_SUITE_P(
    Documents, ContinuedRuns,
    ::testing::Values(
        R"({"validation": {"use": "hold_out", "folds": null}})",
        R"({"validation": {"use": "k_fold", "folds": 2}})",
        R"({"validation": {"use": "hold_out", "folds": null},
            "baselines": [{"use": "mlp", "hidden": [5]}]})",
        R"({"training": {"restore_best_weights": {}, "ema": {"decay": 0.9}}})",
        R"({"validation": {"use": "hold_out", "folds": null}, "optimizer": {"use": "sgd", "momentum": 0.9},
            "resources": {"shards": 2}})"),
    [](const auto& one) { return "Document" + std::to_string(one.index + 1); });

/// One document is enough to see what may change.
class ChangedContinuations : public ContinuedRuns {};

TEST_P(ChangedContinuations, MayChangeRatesAndConditions) {
  const fs::path first = train(document(3)).folder;

  const RunOutcome outcome =
      go_on(first, {"training.epochs=4", "optimizer.learning_rate=0.5", "schedule.use=linear",
                    "training.early_stopping.patience=9ep"});

  const std::string last = trained_history(outcome.folder);
  EXPECT_EQ(last.find(trained_history(first)), 0U) << "the first epochs were other ones";
  EXPECT_EQ(outcome.result.training.total_epochs, 4);
}

TEST_P(ChangedContinuations, RefuseAnotherTrainingAndNameWhatChanged) {
  const fs::path first = train(document(3)).folder;
  const std::pair<const char*, const char*> kRefused[] = {
      {"model.hidden=[16]", "/model/hidden"},
      {"seed=12", "/seed"},
      {"data.noise=0.3", "/data/noise"},
      {"precision=float64", "/precision"},
      {"training.batch_size=8", "/training/batch_size"},
      {"loss=bce_with_logits", "/loss"},
      {"validation.fraction=0.3", "/validation/fraction"},
      {"optimizer={\"use\": \"lion\"}", "/optimizer/use"},
      {"training.swa={}", "/training/swa"},
      {"training.gradients={\"use\": \"accumulate\", \"micro_batches\": 2}",
       "/training/gradients"}};
  for (const auto& [change, pointer] : kRefused) {
    EXPECT_THAT(refusal(first, {"training.epochs=5", change}),
                AllOf(HasSubstr(pointer), HasSubstr("start a new run: workflow-runner run")))
        << change;
  }
}

TEST_P(ChangedContinuations, RefuseAnOptimizerWithAnotherState) {
  nlohmann::json plain = document(3);
  plain["optimizer"] = {{"use", "sgd"}, {"learning_rate", 0.01}};
  const fs::path first = train(plain).folder;

  EXPECT_THAT(refusal(first, {"training.epochs=5", "optimizer.momentum=0.9"}),
              AllOf(HasSubstr("/optimizer/momentum"), HasSubstr("state")));
}

TEST_P(ChangedContinuations, LeaveNothingBehindWhereTheyAreRefused) {
  const fs::path first = train(document(3)).folder;
  refusal(first, {"seed=12"});

  const fs::path runs = workspace_.options().output;
  EXPECT_EQ(std::distance(fs::directory_iterator(runs), fs::directory_iterator()), 1);
}

INSTANTIATE_TEST_SUITE_P(Documents, ChangedContinuations,
                         ::testing::Values(R"({"validation": {"use": "hold_out", "folds": null},
                          "training": {"early_stopping": {"patience": "5ep"}}})"));

TEST(ContinuedRun, OfAStoppedRunGoesOnFromItsLastStep) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  auto document = testing::watched_moons(1);
  document["validation"] = {{"use", "hold_out"}};
  document["training"].erase("early_stopping");
  const auto whole = run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
  const Workspace stopped;
  RunOptions options = stopped.options();
  {
    const Impatient impatient(runtime, 17);
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), options), Interrupted);
  }
  const fs::path run = fs::directory_iterator(options.output)->path();

  const auto outcome = continue_run(runtime, run, {}, workspace.options());

  EXPECT_EQ(trained_bits(outcome.folder), trained_bits(whole));
}

TEST(ContinuedRun, IsResumedFromWhereItBegan) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  auto document = testing::watched_moons(1);
  document["training"]["epochs"] = 3;
  document["training"].erase("early_stopping");
  const auto first = run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
  const Overrides more{"training.epochs=5"};
  const auto expected = continue_run(runtime, first, more, workspace.options()).folder;
  for (const int steps : {1, 25}) {
    const Workspace stopped;
    RunOptions options = stopped.options();
    {
      const Impatient impatient(runtime, steps);
      options.stop = impatient.token();
      EXPECT_THROW(continue_run(runtime, first, more, options), Interrupted);
    }
    const fs::path run = fs::directory_iterator(options.output)->path();

    EXPECT_EQ(trained_bits(resume_run(runtime, run).folder), trained_bits(expected)) << steps;
  }
}

TEST(ContinuedRun, RefusesOtherData) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path data = workspace.folder() / "data.csv";
  std::ofstream(data) << "x,y\n1,2\n2,4\n3,6\n4,8\n5,10\n6,12\n";
  const nlohmann::json document = {{"treadle", 1},
                                   {"data", {{"use", "csv"}, {"path", data.string()}}},
                                   {"model", "linear"},
                                   {"training", {{"epochs", 2}, {"batch_size", 2}}}};
  const auto first = run_workflow(runtime, runtime.resolve(document), workspace.options()).folder;
  std::ofstream(data) << "x,y\n1,2\n2,4\n3,6\n4,8\n5,10\n6,13\n";
  RunOptions options = workspace.options();
  options.allow_differences = true;
  const Overrides more{"training.epochs=4"};

  try {
    continue_run(runtime, first, more, options);
    ADD_FAILURE() << "it went on";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("other data"), HasSubstr("data_hash")));
  }
}

}  // namespace
}  // namespace treadle
