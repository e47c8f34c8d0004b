#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/core/history/history.h>
#include <treadle/host/run/state_folder.h>

#include "fit/fit_runner.h"
#include "watched_runs.h"

/// Plans of fits other than cross-validation: a search by successive halving, a chain of warm
/// starts.
namespace treadle {
namespace {

using internal::CompletedFit;
using internal::FitPlanner;
using internal::FitRows;
using internal::FitRunner;
using internal::FitVerdict;
using internal::PlannedFit;
using internal::RunParts;
using internal::WarmStart;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Impatient;
using testing::watched_moons;
using testing::watching_runtime;
using testing::Workspace;
namespace fs = std::filesystem;

std::shared_ptr<const FitRows> some_rows() {
  RowList::Builder training;
  RowList::Builder validation;
  for (std::int64_t row = 0; row < 240; ++row)
    (row % 3 == 0 ? validation : training).add(row);
  auto rows = std::make_shared<FitRows>();
  rows->training = training.done();
  rows->validation = validation.done();
  return rows;
}

nlohmann::json document(int workers) {
  nlohmann::json document = watched_moons(workers);
  document["training"] = {
      {"use", "standard"}, {"epochs", 6}, {"batch_size", 16}, {"checkpoint", {{"every", "7st"}}}};
  return document;
}

std::shared_ptr<const ResolvedWorkflow> with_rate(const Runtime& runtime, double rate) {
  nlohmann::json changed = document(1);
  changed["optimizer"]["learning_rate"] = rate;
  return std::make_shared<const ResolvedWorkflow>(runtime.resolve(changed));
}

/// Runs a plan in a folder: a new one, or one that an earlier call was interrupted in.
class PlannedRun {
 public:
  PlannedRun(const Runtime& runtime, int workers) : runtime_(runtime), workers_(workers) {}

  const fs::path& folder() const { return folder_; }

  /// Throws what the plan throws. `meanwhile` gets the runner, before it begins.
  void run(FitPlanner& planner, std::stop_token stop = {},
           const std::function<void(FitRunner&)>& meanwhile = nullptr) {
    RunOptions options = workspace_.options();
    options.stop = std::move(stop);
    const bool is_new = folder_.empty();
    RunFolder folder =
        is_new ? RunFolder::create(options.output, "plan") : RunFolder::open(folder_);
    if (is_new) {
      folder_ = folder.path();
      const nlohmann::json resolved = runtime_.resolve(document(workers_)).resolved;
      write_file_atomically(folder.document(), write_workflow(resolved));
    }
    ResolvedWorkflow workflow = runtime_.read(folder.document());
    RunParts parts(runtime_, std::move(workflow), options, std::move(folder), !is_new);
    parts.budget.run([&] {
      parts.open_data([](internal::DocumentComponents&) {});
      FitRunner runner(parts, planner);
      if (meanwhile)
        meanwhile(runner);
      runner.run();
    });
    parts.log.drain();
    parts.log.dispatcher().settle();
  }

  /// Weights that a fit ended with, and its history: equal for equal fits.
  std::string bits_of(const std::string& fit) const {
    const RunFolder folder = RunFolder::open(folder_);
    std::string bits = testing::read_file(folder.fit_result(fit) / "weights.safetensors");
    std::istringstream history(testing::history_of(folder_));
    for (std::string line; std::getline(history, line);) {
      if (line.starts_with(fit + ","))
        bits += line + "\n";
    }
    return bits;
  }

 private:
  const Runtime& runtime_;
  const int workers_;
  const Workspace workspace_;
  fs::path folder_;
};

constexpr double kRates[] = {0.0003, 0.03, 0.001, 0.01};
constexpr std::int64_t kRungs[] = {2, 4};

std::string trial_name(std::size_t i) {
  return "trial-" + std::to_string(i + 1);
}

/// Successive halving: at a rung all pause, and the better half goes on when the last has come.
/// Then a fit that was not planned at the beginning continues from the winner's weights.
class Halving final : public FitPlanner {
 public:
  /// Without rungs nobody pauses.
  Halving(const Runtime& runtime, bool has_rungs) : runtime_(runtime), has_rungs_(has_rungs) {}

  Orders next() override {
    Orders orders;
    if (!is_begun_) {
      is_begun_ = true;
      for (std::size_t i = 0; i < std::size(kRates); ++i)
        orders.start.push_back(trial(i));
      return orders;
    }
    const std::size_t going = trials() >> rung_;
    if (has_rungs_ && rung_ < std::size(kRungs) && at_rung_[rung_].size() == going) {
      std::vector<std::pair<double, std::string>> ranking;
      for (const auto& [path, loss] : at_rung_[rung_])
        ranking.emplace_back(loss, path);
      std::sort(ranking.begin(), ranking.end());
      for (std::size_t i = 0; i < going / 2; ++i)
        orders.resume.push_back(ranking[i].second);
      ++rung_;
    }
    const std::size_t last = has_rungs_ ? trials() >> std::size(kRungs) : trials();
    if (completed_.size() == last && !is_polished_) {
      is_polished_ = true;
      PlannedFit polish{FitId("polished", 100, 1), some_rows()};
      polish.start = WarmStart{winner(), WarmStart::From::kWeights};
      polish.keeps_weights = true;
      orders.start.push_back(std::move(polish));
    }
    return orders;
  }

  FitVerdict reported(const FitId& fit, const EpochSummary& epoch) override {
    told_[fit.path()].push_back(epoch.epoch);
    const bool is_rung =
        std::find(std::begin(kRungs), std::end(kRungs), epoch.epoch) != std::end(kRungs);
    if (!has_rungs_ || !is_rung || fit.path() == "polished")
      return FitVerdict::kContinue;
    const std::size_t rung = epoch.epoch == kRungs[0] ? 0 : 1;
    waiting_[fit.path()] = {rung, find_value(epoch, "val_loss")->value};
    return FitVerdict::kPause;
  }
  void paused(const FitId& fit) override {
    const auto& [rung, loss] = waiting_.at(fit.path());
    at_rung_[rung][fit.path()] = loss;
  }
  void completed(const FitId& fit, CompletedFit result) override {
    results_[fit.path()] = std::move(result.result);
    if (fit.path() != "polished")
      completed_[fit.path()] = results_.at(fit.path()).final_loss;
  }

  std::string winner() const {
    return std::min_element(completed_.begin(), completed_.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }
  const std::map<std::string, double>& completed_trials() const { return completed_; }
  const std::map<std::string, std::vector<std::int64_t>>& told() const { return told_; }
  bool is_polished() const { return results_.count("polished") > 0; }
  /// All that it decided.
  std::string story() const {
    std::string text;
    for (const auto& rung : at_rung_) {
      for (const auto& [path, loss] : rung)
        text += path + " " + std::to_string(loss) + "; ";
    }
    return text + "winner " + winner();
  }

 private:
  static std::size_t trials() { return std::size(kRates); }

  PlannedFit trial(std::size_t i) const {
    PlannedFit fit{FitId(trial_name(i), static_cast<std::int64_t>(i), trials()), some_rows()};
    fit.workflow = with_rate(runtime_, kRates[i]);
    fit.keeps_weights = true;
    return fit;
  }

  const Runtime& runtime_;
  const bool has_rungs_;
  bool is_begun_ = false;
  bool is_polished_ = false;
  std::size_t rung_ = 0;
  std::map<std::string, std::pair<std::size_t, double>> waiting_;
  std::map<std::string, double> at_rung_[std::size(kRungs)];
  std::map<std::string, double> completed_;
  std::map<std::string, FitResult> results_;
  std::map<std::string, std::vector<std::int64_t>> told_;
};

TEST(Plans, PauseAndResumeFitsWithTheBitsOfThoseNeverPaused) {
  const Runtime runtime = watching_runtime();
  PlannedRun straight(runtime, 1);
  Halving all(runtime, /*has_rungs=*/false);
  straight.run(all);
  ASSERT_EQ(all.completed_trials().size(), std::size(kRates));

  for (const int workers : {1, 2}) {
    SCOPED_TRACE(workers);
    PlannedRun halved(runtime, workers);
    Halving some(runtime, /*has_rungs=*/true);
    halved.run(some);

    ASSERT_EQ(some.completed_trials().size(), 1U);
    const std::string winner = some.winner();
    EXPECT_EQ(halved.bits_of(winner), straight.bits_of(winner));
    EXPECT_TRUE(some.is_polished());
    EXPECT_THAT(some.told().at(winner), ElementsAre(1, 2, 3, 4, 5));
    int stayed_behind = 0;
    for (const auto& [path, epochs] : some.told())
      stayed_behind += epochs.back() == kRungs[0] ? 1 : 0;
    EXPECT_EQ(stayed_behind, 2);
  }
}

TEST(Plans, EndAlikeWhereverTheyWereInterrupted) {
  const Runtime runtime = watching_runtime();
  PlannedRun whole(runtime, 2);
  Halving expected(runtime, /*has_rungs=*/true);
  whole.run(expected);

  // In the first epochs, around the rungs (160 rows are 10 steps an epoch), in the last fit.
  for (const int steps : {5, 40, 80, 95, 121, 150}) {
    SCOPED_TRACE(steps);
    PlannedRun run(runtime, 2);
    {
      Halving first(runtime, /*has_rungs=*/true);
      const Impatient impatient(runtime, steps);
      EXPECT_THROW(run.run(first, impatient.token()), Interrupted);
    }
    Halving second(runtime, /*has_rungs=*/true);
    run.run(second);

    EXPECT_EQ(second.story(), expected.story());
    EXPECT_EQ(second.told(), expected.told());
    EXPECT_EQ(run.bits_of(second.winner()), whole.bits_of(second.winner()));
    EXPECT_EQ(run.bits_of("polished"), whole.bits_of("polished"));
  }
}

/// Fits as they are given, each once.
class Listed final : public FitPlanner {
 public:
  explicit Listed(std::vector<PlannedFit> fits) : fits_(std::move(fits)) {}

  std::map<std::string, FitResult> results;
  std::vector<std::string> stopped_fits;
  std::function<FitVerdict(const std::string&, const EpochSummary&)> verdict_on;

  Orders next() override { return {std::exchange(fits_, {}), {}}; }
  FitVerdict reported(const FitId& fit, const EpochSummary& epoch) override {
    return verdict_on ? verdict_on(fit.path(), epoch) : FitVerdict::kContinue;
  }
  void stopped(const FitId& fit) override { stopped_fits.push_back(fit.path()); }
  void completed(const FitId& fit, CompletedFit result) override {
    results[fit.path()] = std::move(result.result);
  }

 private:
  std::vector<PlannedFit> fits_;
};

TEST(Plans, StopOneFitAndLeaveTheOthersAsTheyWere) {
  const Runtime runtime = watching_runtime();
  const auto fits = [] {
    std::vector<PlannedFit> fits{{FitId("a", 0, 2), some_rows()}, {FitId("b", 1, 2), some_rows()}};
    fits[0].keeps_weights = fits[1].keeps_weights = true;
    return fits;
  };
  PlannedRun whole(runtime, 2);
  Listed both(fits());
  whole.run(both);

  PlannedRun by_verdict(runtime, 2);
  Listed stopping(fits());
  stopping.verdict_on = [](const std::string& fit, const EpochSummary& epoch) {
    return fit == "a" && epoch.epoch == 3 ? FitVerdict::kStop : FitVerdict::kContinue;
  };
  by_verdict.run(stopping);

  PlannedRun by_name(runtime, 2);
  Listed named(fits());
  by_name.run(named, {}, [&](FitRunner& runner) {
    named.verdict_on = [&](const std::string&, const EpochSummary& epoch) {
      if (epoch.epoch == 3)
        runner.stop("a");
      return FitVerdict::kContinue;
    };
  });

  for (const auto& [planner, run] :
       {std::pair(&stopping, &by_verdict), std::pair(&named, &by_name)}) {
    EXPECT_THAT(planner->stopped_fits, ElementsAre("a"));
    EXPECT_EQ(planner->results.count("a"), 0U);
    EXPECT_EQ(run->bits_of("b"), whole.bits_of("b"));
  }
}

TEST(Plans, KeepFitsOfATreeInFoldersOfTheirPaths) {
  const Runtime runtime = watching_runtime();
  PlannedRun run(runtime, 2);
  const FitId trial("trial-7", 7, 8);
  std::vector<PlannedFit> fits{{trial.child("fold-1", 0, 2), some_rows()},
                               {trial.child("fold-2", 1, 2), some_rows()}};
  fits[0].workflow = fits[1].workflow = with_rate(runtime, 0.02);
  Listed plan(std::move(fits));

  run.run(plan);

  EXPECT_EQ(plan.results.at("trial-7/fold-2").name, "trial-7/fold-2");
  EXPECT_NE(plan.results.at("trial-7/fold-1").final_loss,
            plan.results.at("trial-7/fold-2").final_loss);
  EXPECT_TRUE(fs::exists(run.folder() / "fits/trial-7/fold-1/state.json"));
  EXPECT_FALSE(fs::is_empty(run.folder() / "checkpoints/trial-7/fold-2"));
  EXPECT_THAT(testing::history_of(run.folder()), HasSubstr("trial-7/fold-2,6,6,"));
}

TEST(Plans, BeginWithTheWeightsOfAnotherFit) {
  const Runtime runtime = watching_runtime();
  PlannedRun run(runtime, 2);
  std::vector<PlannedFit> fits{{FitId("first", 0, 2), some_rows()},
                               {FitId("second", 1, 2), some_rows()}};
  fits[0].keeps_weights = true;
  fits[1].start = WarmStart{"first", WarmStart::From::kWeights};
  // Steps too small to change a float: it ends with the weights it began with.
  fits[1].workflow = with_rate(runtime, 1e-30);
  fits[1].keeps_weights = true;
  Listed plan(std::move(fits));

  run.run(plan);

  const RunFolder folder = RunFolder::open(run.folder());
  const StateDict first = read_state_folder(folder.fit_result("first")).part("model");
  const StateDict second = read_state_folder(folder.fit_result("second")).part("model");
  ASSERT_FALSE(first.tensors().empty());
  for (const auto& [name, tensor] : first.tensors())
    EXPECT_TRUE(at::equal(tensor, second.tensor(name))) << name;
}

/// "old" pauses after epoch 2; "copy" begins with its checkpoint; then "old" goes on.
class Exploiting final : public FitPlanner {
 public:
  Orders next() override {
    if (asked_++ == 0)
      return {{{FitId("old", 0, 2), some_rows()}}, {}};
    if (!is_paused_ || std::exchange(has_copied_, true))
      return {};
    PlannedFit copy{FitId("copy", 1, 2), some_rows()};
    copy.start = WarmStart{"old", WarmStart::From::kCheckpoint};
    return {{copy}, {"old"}};
  }
  FitVerdict reported(const FitId& fit, const EpochSummary& epoch) override {
    told[fit.path()].push_back(epoch.epoch);
    return fit.path() == "old" && epoch.epoch == 2 ? FitVerdict::kPause : FitVerdict::kContinue;
  }
  void paused(const FitId&) override { is_paused_ = true; }
  void completed(const FitId& fit, CompletedFit result) override {
    losses[fit.path()] = result.result.final_loss;
  }

  std::map<std::string, std::vector<std::int64_t>> told;
  std::map<std::string, double> losses;

 private:
  int asked_ = 0;
  bool is_paused_ = false;
  bool has_copied_ = false;
};

TEST(Plans, CopyAFitFromAnothersCheckpointAtTheSamePlaceAfterEveryInterruption) {
  const Runtime runtime = watching_runtime();
  PlannedRun whole(runtime, 2);
  Exploiting expected;
  whole.run(expected);
  EXPECT_THAT(expected.told.at("old"), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(expected.told.at("copy"), ElementsAre(3, 4, 5));
  EXPECT_NE(expected.losses.at("old"), expected.losses.at("copy"));

  for (const int steps : {15, 21, 30, 60, 95}) {
    SCOPED_TRACE(steps);
    PlannedRun run(runtime, 2);
    {
      Exploiting first;
      const Impatient impatient(runtime, steps);
      EXPECT_THROW(run.run(first, impatient.token()), Interrupted);
    }
    Exploiting second;
    run.run(second);
    EXPECT_EQ(second.losses, expected.losses);
    EXPECT_EQ(second.told, expected.told);
  }
}

TEST(Plans, HearOfEachEpochAlsoWhereNoneArePlanned) {
  const Runtime runtime = watching_runtime();
  nlohmann::json until_step = document(1);
  until_step["training"].erase("epochs");
  until_step["training"]["max_steps"] = 35;  // 10 an epoch
  PlannedFit fit{FitId("a", 0, 1), some_rows()};
  fit.workflow = std::make_shared<const ResolvedWorkflow>(runtime.resolve(until_step));
  PlannedRun run(runtime, 1);
  Listed plan({fit});
  std::vector<std::int64_t> told;
  plan.verdict_on = [&](const std::string&, const EpochSummary& epoch) {
    told.push_back(epoch.epoch);
    return epoch.epoch == 3 ? FitVerdict::kStop : FitVerdict::kContinue;
  };

  run.run(plan);

  EXPECT_THAT(told, ElementsAre(1, 2, 3));
  EXPECT_THAT(plan.stopped_fits, ElementsAre("a"));
}

/// "old" ends by early stopping; then "copy" begins with its checkpoint, and stops for nothing.
class Outliving final : public FitPlanner {
 public:
  explicit Outliving(const Runtime& runtime) {
    nlohmann::json stopping = document(1);
    stopping["training"]["callbacks"] = {
        {{"use", "early_stopping"}, {"patience", "1ep"}, {"min_delta", 1e9}}};
    old_ = {FitId("old", 0, 2), some_rows()};
    old_.workflow = std::make_shared<const ResolvedWorkflow>(runtime.resolve(stopping));
    stopping["training"]["callbacks"][0]["patience"] = "100ep";
    copy_ = {FitId("copy", 1, 2), some_rows()};
    copy_.workflow = std::make_shared<const ResolvedWorkflow>(runtime.resolve(stopping));
    copy_.start = WarmStart{"old", WarmStart::From::kCheckpoint};
  }

  std::map<std::string, FitResult> results;

  Orders next() override {
    if (!std::exchange(has_begun_, true))
      return {{old_}, {}};
    if (results.count("old") == 0 || std::exchange(has_copied_, true))
      return {};
    return {{copy_}, {}};
  }
  void completed(const FitId& fit, CompletedFit result) override {
    results[fit.path()] = std::move(result.result);
  }

 private:
  PlannedFit old_;
  PlannedFit copy_;
  bool has_begun_ = false;
  bool has_copied_ = false;
};

TEST(Plans, AFitThatIsCopiedFromOneThatEndedEndsForReasonsOfItsOwn) {
  const Runtime runtime = watching_runtime();
  PlannedRun run(runtime, 1);
  Outliving plan(runtime);

  run.run(plan);

  EXPECT_LT(plan.results.at("old").total_epochs, 6);
  EXPECT_EQ(plan.results.at("copy").total_epochs, 6);
}

template <typename Failure>
std::string refusal_of(const Runtime& runtime, std::vector<PlannedFit> fits) {
  PlannedRun run(runtime, 1);
  Listed plan(std::move(fits));
  try {
    run.run(plan);
  } catch (const Failure& error) {
    return error.what();
  }
  return "";
}

TEST(Plans, AreRefusedWhereFitsWouldShareFoldersOrStreams) {
  const Runtime runtime = watching_runtime();
  const FitId trial("trial-1", 0, 2);
  EXPECT_THAT(refusal_of<ContractViolation>(
                  runtime, {{trial, some_rows()}, {trial.child("fold-1", 0, 1), some_rows()}}),
              HasSubstr("trial-1/fold-1 cannot be planned: trial-1 is a fit, and no group"));
  EXPECT_THAT(refusal_of<ContractViolation>(
                  runtime, {{trial.child("fold-1", 0, 1), some_rows()}, {trial, some_rows()}}),
              HasSubstr("trial-1 cannot be planned: trial-1/fold-1 is below it"));
  EXPECT_THAT(refusal_of<ContractViolation>(
                  runtime, {{trial, some_rows()}, {FitId("other", 0, 2), some_rows()}}),
              HasSubstr("other cannot be planned: another one beside it has its number, 0"));
}

TEST(Plans, AreRefusedWhereAFitWantsOtherData) {
  const Runtime runtime = watching_runtime();
  nlohmann::json other = document(1);
  other["data"]["rows"] = 100;
  PlannedFit fit{FitId("a", 0, 1), some_rows()};
  fit.workflow = std::make_shared<const ResolvedWorkflow>(runtime.resolve(other));

  EXPECT_THAT(refusal_of<UsageError>(runtime, {fit}),
              AllOf(HasSubstr("/data is"), HasSubstr("\"rows\":100"), HasSubstr("opened once")));
}

TEST(Plans, NameTheFitThatFailed) {
  const Runtime runtime = watching_runtime();
  std::vector<PlannedFit> fits{{FitId("group", 0, 1).child("good", 0, 2), some_rows()},
                               {FitId("group", 0, 1).child("bad", 1, 2), some_rows()}};
  fits[1].workflow = with_rate(runtime, 1e30);

  EXPECT_THAT(refusal_of<TrainingError>(runtime, std::move(fits)),
              AllOf(HasSubstr("became NaN or infinite"), HasSubstr("(group/bad)")));
}

}  // namespace
}  // namespace treadle
