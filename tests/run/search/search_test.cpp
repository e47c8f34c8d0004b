// A search within a run: its trials, the model of the best, and what a document may not ask for.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/host/run/predictor.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using ::testing::AllOf;
using testing::bits_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Impatient;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::read_file;
using testing::StepWatch;
using testing::stopped_and_resumed;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

Json document_of(const std::string& tuner = "tpe") {
  Json document = Json::parse(R"({
    "treadle": 1, "name": "moons", "seed": 11,
    "data": {"use": "moons", "rows": 96, "noise": 0.2},
    "transforms": ["standardize"],
    "model": {"use": "mlp", "hidden": [4], "dropout": 0.1},
    "loss": "cross_entropy",
    "optimizer": {"use": "sgd", "learning_rate": 0.01},
    "schedule": "watched",
    "training": {"use": "standard", "epochs": 2, "batch_size": 16, "checkpoint": {"every": "3st"}},
    "validation": {"use": "hold_out", "fraction": 0.25},
    "search": {
      "trials": 9, "parallel": 3,
      "space": {
        "optimizer": {"choice": [{"use": "sgd", "learning_rate": 0.1}, {"use": "adamw"}]},
        "optimizer.momentum": {"uniform": [0, 0.9], "when": {"optimizer": [{"use": "sgd", "learning_rate": 0.1}]}},
        "model.hidden": {"choice": [[4], [16], [8, 8]]},
        "training.batch_size": {"log_int": [8, 32]}
      }},
    "resources": {"workers": 1}})");
  document["search"]["tuner"] = {{"use", tuner}};
  return document;
}

RunOutcome run(const Workspace& workspace, const Json& document) {
  const Runtime runtime = watching_runtime();
  return run_workflow(runtime, runtime.resolve(document), workspace.options());
}

double value_of(const Json& search, std::size_t trial, std::size_t objective = 0) {
  return search.at("trials").at(trial).at("values").at(objective).get<double>();
}

/// The notes of a run.
class NoteWatch final : public RunObserver {
 public:
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void do_noted(const std::string& text) override { notes_.push_back(text); }

  std::vector<std::string> notes_;
};

/// Trials of a journal whose last job to end has paused.
std::set<std::int64_t> paused_in(const fs::path& journal) {
  std::set<std::int64_t> paused;
  std::ifstream file(journal);
  for (std::string text; std::getline(file, text);) {
    const Json line = Json::parse(text);
    if (!line.contains("trial_id") || !line.contains("system_attr") ||
        !line.at("system_attr").contains("treadle:job"))
      continue;
    if (line.at("system_attr").at("treadle:job").at("paused"))
      paused.insert(line.at("trial_id").get<std::int64_t>());
    else
      paused.erase(line.at("trial_id").get<std::int64_t>());
  }
  return paused;
}

/// All that must be equal between equal searches.
std::string study_of(const RunOutcome& outcome) {
  return to_json(*outcome.result.search).dump() + bits_of(outcome.folder);
}

/// A whole point, and two of which some values are drawn.
const Json kInitial{{{"optimizer", {{"use", "adamw"}}},
                     {"model.hidden", {8, 8}},
                     {"training.batch_size", 9},
                     {"description", "as before"}},
                    {{"optimizer", {{"use", "sgd"}, {"learning_rate", 0.1}}},
                     {"optimizer.momentum", 0.45},
                     {"training.batch_size", 32}},
                    {{"model.hidden", {16}}}};

/// A search of a tuner, a pruner and folds whose bits are compared.
struct SearchCase {
  std::string name;
  Json search;  // keys of "search"
  int folds = 1;
};
std::ostream& operator<<(std::ostream& out, const SearchCase& search) {
  return out << search.name;
}
class SearchBits : public ::testing::TestWithParam<SearchCase> {};

TEST_P(SearchBits, AreTheSameForAnyWorkersAndAfterAnyStop) {
  const Runtime runtime = watching_runtime();
  Json document = document_of();
  document["search"].update(GetParam().search);
  if (GetParam().search.contains("pruner"))
    document["training"]["epochs"] = 5;
  if (GetParam().folds > 1)
    document["validation"] = {{"use", "k_fold"}, {"folds", GetParam().folds}};
  const Workspace one;
  const std::string expected = study_of(run(one, document));
  for (const int workers : {3}) {
    document["resources"]["workers"] = workers;
    const Workspace workspace;
    EXPECT_EQ(study_of(run(workspace, document)), expected) << workers << " workers";
  }
  for (const int steps : {37, 80}) {
    const Workspace workspace;
    EXPECT_EQ(study_of(stopped_and_resumed(runtime, workspace, document, steps)), expected)
        << "stopped after " << steps << " steps";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Searches, SearchBits,
    ::testing::Values(
        SearchCase{"Random", {{"tuner", "random"}}}, SearchCase{"Tpe", Json::object()},
        SearchCase{"Median", {{"pruner", {{"use", "median"}, {"n_startup_trials", 2}}}}},
        SearchCase{"Asha", {{"pruner", {{"use", "asha"}, {"reduction_factor", 2}}}}},
        SearchCase{"AshaOfFolds", {{"pruner", {{"use", "asha"}, {"reduction_factor", 2}}}}, 2},
        SearchCase{"Halving",
                   {{"pruner", {{"use", "successive_halving"}, {"reduction_factor", 3}}}}},
        SearchCase{"Population",
                   {{"pruner", {{"use", "population_based"}, {"population", 4}}},
                    {"trials", 10},
                    {"space",
                     {{"optimizer.learning_rate", {{"log_uniform", {1e-3, 1}}}},
                      {"model.dropout", {{"uniform", {0, 0.5}}}}}}}},
        SearchCase{"Initial", {{"initial", kInitial}}},
        SearchCase{"SeveralObjectives", {{"objective", {"val_loss", "parameter_count"}}}},
        SearchCase{"Latency", {{"objective", {"val_loss", "latency"}}}}),
    [](const auto& info) { return info.param.name; });

/// Of the trials of a record.
std::map<std::string, int> states_of(const Json& search) {
  std::map<std::string, int> states;
  for (const Json& trial : search.at("trials"))
    ++states[trial.at("state").get<std::string>()];
  return states;
}

// Each trial that was promoted has the values that it would have had without a pause.
TEST(Search, CallsTheHooksOfTheRunForEachKindOfEvent) {
  const Workspace workspace;
  const Runtime runtime = watching_runtime();
  Json document = document_of("random");
  document["search"].update({{"trials", 2}, {"parallel", 1}, {"asynchronous", true}});
  std::set<std::string> stepped;
  std::set<std::string> trained;
  std::map<std::string, std::int64_t> epochs;
  std::map<std::int64_t, std::string> states;
  std::string notes;
  RunOptions options = workspace.options();
  options.hooks.on_step = [&](const FitId& fit, const StepProgress&) {
    stepped.insert(fit.path());
  };
  options.hooks.on_epoch = [&](const FitId& fit, const EpochSummary& epoch) {
    epochs[fit.path()] = epoch.epoch;
  };
  options.hooks.on_fit = [&](const FitId& fit, const FitSummary& summary) {
    EXPECT_EQ(summary.epochs, 2);
    trained.insert(fit.path());
  };
  options.hooks.on_trial = [&](const TrialSummary& trial, const SearchProgress&) {
    states[trial.number] = trial.state;
  };
  options.hooks.on_note = [&](const std::string& text) { notes += text + "\n"; };

  run_workflow(runtime, runtime.resolve(document), options);

  const std::set<std::string> fits{"trials/0", "trials/1", "final"};
  EXPECT_EQ(trained, fits);
  EXPECT_FALSE(stepped.empty()) << "the newest step a few times a second";
  EXPECT_THAT(epochs, ::testing::UnorderedElementsAre(::testing::Pair("trials/0", 2),
                                                      ::testing::Pair("trials/1", 2),
                                                      ::testing::Pair("final", 2)));
  EXPECT_THAT(states, ::testing::ElementsAre(::testing::Pair(0, "complete"),
                                             ::testing::Pair(1, "complete")));
  EXPECT_THAT(notes, HasSubstr("asynchronous"));
}

TEST(Search, ACopyOfAnotherModelFailsATrialAndNotTheRun) {
  Json document = document_of("random");
  document["training"]["epochs"] = 5;
  document["search"]["trials"] = 10;
  document["search"]["pruner"] = {{"use", "population_based"}, {"population", 4}};
  document["search"]["space"] = {{"model.hidden", {{"choice", {{4}, {8}, {16}, {32}}}}},
                                 {"optimizer.learning_rate", {{"log_uniform", {1e-3, 1}}}}};
  const Workspace workspace;
  const RunOutcome outcome = run(workspace, document);
  std::string errors;
  const Json trials_of_search = to_json(*outcome.result.search).at("trials");
  for (const Json& trial : trials_of_search) {
    if (trial.at("state") == "failed")
      errors += trial.at("error").get<std::string>() + "\n";
  }
  EXPECT_THAT(errors, HasSubstr("which has another model"));
  EXPECT_THAT(errors, HasSubstr("out of search.space"));
}

TEST(Search, TrialsThatArePausedGoOnWithTheSameBits) {
  const Workspace paused;
  const Workspace whole;
  Json document = document_of("random");
  document["training"]["epochs"] = 6;
  const Json expected = to_json(*run(whole, document).result.search);
  document["search"]["pruner"] = {{"use", "asha"}, {"reduction_factor", 2}};

  const Json found = to_json(*run(paused, document).result.search);

  EXPECT_GT(states_of(found)["paused"], 0);
  EXPECT_GT(states_of(found)["complete"], 0);
  for (std::size_t i = 0; i < found.at("trials").size(); ++i) {
    const Json& trial = found.at("trials")[i];
    const Json& other = expected.at("trials")[i];
    if (trial.at("state") == "complete") {
      EXPECT_EQ(trial.at("values"), other.at("values")) << "trial " << i;
    }
    for (std::size_t value = 0; value < trial.at("intermediate").size(); ++value)
      EXPECT_EQ(trial.at("intermediate")[value], other.at("intermediate")[value]) << "trial " << i;
  }
}

Json params_of(const RunOutcome& outcome) {
  Json params = Json::array();
  const Json trials_of_search = to_json(*outcome.result.search).at("trials");
  for (const Json& trial : trials_of_search)
    params.push_back(trial.at("params"));
  return params;
}

/// As `params` without what readers see.
Json without_descriptions(Json points) {
  for (Json& point : points)
    point.erase("description");
  return points;
}

TEST(Search, BeginsWithItsInitialPointsAndGoesOnAsItWould) {
  Json document = document_of("random");
  const Workspace plain;
  const Json expected = params_of(run(plain, document));
  document["search"]["initial"] = kInitial;
  const Workspace workspace;
  const Json params = params_of(run(workspace, document));

  ASSERT_EQ(params.size(), 9);
  const Json given = without_descriptions(kInitial);
  for (std::size_t i = 0; i < given.size(); ++i) {
    for (const auto& [path, value] : given[i].items())
      EXPECT_EQ(params[i].at(path), value) << i << " " << path;
  }
  EXPECT_EQ(params[0], given[0]);
  EXPECT_TRUE(params[1].contains("model.hidden")) << "what is left out is drawn";
  for (std::size_t i = given.size(); i < params.size(); ++i)
    EXPECT_EQ(params[i], expected[i]) << i;
}

// The file may change or go once the run has begun.
TEST(Search, InitialPointsOfAFileAreAPartOfTheRun) {
  Json document = document_of();
  document["search"]["initial"] = kInitial;
  const Workspace inlined;
  const std::string expected = study_of(run(inlined, document));

  const Workspace workspace;
  const fs::path file = workspace.folder() / "points.json";
  std::ofstream(file) << kInitial;
  document["search"]["initial"] = "points.json";
  const Runtime runtime = watching_runtime();
  RunOptions options = workspace.options();
  {
    const Impatient impatient(runtime, 37);
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime, runtime.resolve(document, workspace.folder()), options),
                 Interrupted);
  }
  fs::remove(file);
  const RunOutcome outcome =
      resume_run(runtime, fs::directory_iterator(options.output)->path(), workspace.options());
  EXPECT_EQ(study_of(outcome), expected);
}

TEST(Search, APointsFileThatIsNoneIsRefusedByItsPlace) {
  const Workspace workspace;
  Json document = document_of();
  document["search"]["initial"] = "points.json";
  const Runtime runtime = watching_runtime();
  const auto mistake = [&](const char* text) -> std::string {
    std::ofstream(workspace.folder() / "points.json") << text;
    try {
      runtime.resolve(document, workspace.folder());
    } catch (const DocumentError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(mistake("[{},\n 7]"),
              HasSubstr("points.json:2: /1: expected an object with values by path, got 7"));
  EXPECT_THAT(mistake("{}"), HasSubstr("points.json:1: expected an array of points, such as"));
  EXPECT_THAT(mistake("[]"), HasSubstr("got an empty one"));
  EXPECT_THAT(mistake(R"([{"description": 7}])"),
              HasSubstr("points.json:1: /0/description: expected text, got 7"));
  EXPECT_EQ(mistake("[{}]"), "");
  fs::remove(workspace.folder() / "points.json");
  EXPECT_THROW(runtime.resolve(document, workspace.folder()), DocumentError);
}

TEST(Search, PointsThatWereWrittenAreThoseOfTheSearch) {
  const Runtime runtime = watching_runtime();
  Json document = document_of("random");
  const Json points = search_points(runtime, runtime.resolve(document));
  const Workspace workspace;

  EXPECT_EQ(without_descriptions(points), params_of(run(workspace, document)));
  document["search"]["tuner"] = "tpe";
  document["search"]["initial"] = points;
  const Workspace again;
  EXPECT_EQ(params_of(run(again, document)), without_descriptions(points));
  EXPECT_EQ(search_points(runtime, runtime.resolve(document)), points);
}

TEST(Search, WrittenPointsAreDescribedForReaders) {
  const Runtime runtime = watching_runtime();
  Json document = document_of("grid");
  document["search"]["trials"] = 1;
  document["search"]["space"] = Json::parse(R"({
    "model": {"choice": [{"use": "mlp", "dropout": 0.25, "hidden": []}]},
    "model.hidden.0": {"choice": [16]},
    "optimizer": {"choice": ["adamw"]},
    "optimizer.learning_rate": {"choice": [0.012345678]},
    "transforms": {"choice": [["standardize"]]}})");

  const Json points = search_points(runtime, runtime.resolve(document));

  EXPECT_EQ(points.at(0).at("description"),
            "model=mlp(dropout=0.25), hidden.0=16, optimizer=adamw, learning_rate=0.01235, "
            "transforms=[standardize]");
}

// Indices of one and two digits, each appended to what is there.
TEST(Search, FillsAListElementByElement) {
  const Workspace workspace;
  Json document = document_of("random");
  document["search"]["trials"] = 1;
  document["search"]["space"] = Json::parse(R"({
    "model.hidden": {"choice": [[]]},
    "model.hidden.{0..8}": {"choice": [3]},
    "model.hidden.{9..11}": {"choice": [4], "when": {"model.hidden": [[]]}}})");
  const RunOutcome outcome = run(workspace, document);

  const Json best = Json::parse(read_file(outcome.folder / "best.json"));
  EXPECT_EQ(best.at("model").at("hidden"), Json({3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4}));
}

/// examples/random-architectures.json with so many trials.
ResolvedWorkflow random_architectures(const Runtime& runtime, int trials) {
  const fs::path examples = testing::source_folder() / "examples";
  Json document = Json::parse(read_file(examples / "random-architectures.json"));
  document["search"]["trials"] = trials;
  document["training"]["epochs"] = 2;
  return runtime.resolve(document, examples);
}

TEST(Search, RandomArchitecturesHaveACellOfEachPlaceByItsWeights) {
  const Runtime runtime = watching_runtime();
  const Json points = search_points(runtime, random_architectures(runtime, 400));

  const std::string builder = "model.flow.0.builder";
  std::map<std::string, double> shapes;
  std::map<std::string, double> kinds;
  std::map<std::string, double> combinations;
  double cells = 0;
  for (const Json& point : points) {
    const Json& hive = point.at(builder);
    const int count = hive.at("rows").get<int>() * hive.at("columns").get<int>();
    ++shapes[hive.dump()];
    ++combinations[point.at(builder + ".combine").get<std::string>()];
    for (int i = 0; i < count; ++i)
      ++kinds[point.at(builder + ".cells." + std::to_string(i)).get<std::string>()];
    EXPECT_FALSE(point.contains(builder + ".cells." + std::to_string(count)));
    cells += count;
  }
  const auto chi_square = [](std::map<std::string, double>& counts, double all,
                             const std::map<std::string, double>& shares) {
    double sum = 0;
    for (const auto& [name, share] : shares)
      sum += (counts[name] - share * all) * (counts[name] - share * all) / (share * all);
    return sum;
  };
  EXPECT_EQ(shapes.size(), 9U);
  EXPECT_LT(chi_square(kinds, cells,
                       {{"attention", 0.3},
                        {"lstm", 0.25},
                        {"rnn", 0.15},
                        {"dense", 0.15},
                        {"gated_feed_forward", 0.08},
                        {"norm_dense", 0.07}}),
            20.52);  // scipy.stats.chi2.ppf(0.999, 5)
  EXPECT_LT(chi_square(combinations, 400,
                       {{"mean", 0.35}, {"add", 0.3}, {"cat", 0.2}, {"grid_cat", 0.15}}),
            16.27);  // scipy.stats.chi2.ppf(0.999, 3)
}

TEST(Search, TrainsRandomArchitectures) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const RunOutcome outcome =
      run_workflow(runtime, random_architectures(runtime, 6), workspace.options());

  const Json trials_of_search = to_json(*outcome.result.search).at("trials");
  for (const Json& trial : trials_of_search)
    EXPECT_EQ(trial.at("state"), "complete") << trial;
}

TEST(Search, MoreTrialsAreThoseOfALargerSearch) {
  const Runtime runtime = watching_runtime();
  Json document = document_of();
  document["search"]["trials"] = 6;
  const Workspace workspace;
  const fs::path folder = run(workspace, document).folder;

  extend_search(runtime, folder, 3, "");
  const RunOutcome extended = resume_run(runtime, folder, workspace.options());

  document["search"]["trials"] = 9;
  const Workspace whole;
  EXPECT_EQ(study_of(extended), study_of(run(whole, document)));
}

TEST(Search, MoreTrialsNeedAJournalThatIsWhole) {
  const Runtime runtime = watching_runtime();
  Json document = document_of();
  document["search"]["trials"] = 6;
  const Workspace workspace;
  const fs::path folder = run(workspace, document).folder;
  const fs::path journal = folder / "search.journal";
  const std::string whole = read_file(journal);

  std::ofstream(journal) << whole.substr(0, whole.find('\n', whole.size() / 2) + 1) << "garbage\n";
  EXPECT_THROW(extend_search(runtime, folder, 1, ""), StorageError);
  EXPECT_TRUE(fs::exists(folder / "result.json")) << "nothing is changed";

  // A line that was cut by a crash is taken back, and trained again.
  std::ofstream(journal) << whole.substr(0, whole.find('\n', whole.size() / 2) - 5);
  extend_search(runtime, folder, 3, "");
  document["search"]["trials"] = 9;
  const Workspace other;
  EXPECT_EQ(study_of(resume_run(runtime, folder)), study_of(run(other, document)));
}

TEST(Search, ATimeBudgetLeavesABeginningOfTheUnlimitedSearch) {
  const Runtime runtime = watching_runtime();
  Json document = document_of("random");
  document["search"]["trials"] = 30;
  const Workspace unlimited;
  const Json whole = to_json(*run(unlimited, document).result.search).at("trials");
  document["search"]["budget"] = {{"time", "1s"}};
  const Workspace workspace;
  const StepWatch slow(runtime, [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  const auto begun = std::chrono::steady_clock::now();

  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());

  const Json search = to_json(*outcome.result.search);
  EXPECT_EQ(search.at("ended").at("reason"), "time");
  EXPECT_GT(search.at("trials").size(), 0U);
  EXPECT_LT(search.at("trials").size(), 30U);
  for (std::size_t i = 0; i < search.at("trials").size(); ++i)
    EXPECT_EQ(search.at("trials")[i], whole[i]) << "trial " << i;
  // Generous: this is a loaded machine's time, too. It only has to end.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
  // Resumed after its end it stays as it is, with more time it goes on.
  fs::remove(outcome.folder / "result.json");
  EXPECT_EQ(study_of(resume_run(runtime, outcome.folder)), study_of(outcome));
  extend_search(runtime, outcome.folder, 0, "1h");
  EXPECT_EQ(to_json(*resume_run(runtime, outcome.folder).result.search).at("trials"), whole);
}

TEST(Search, ATrialWithinTheConstraintsIsBetterThanAllOthers) {
  Json document = document_of("grid");
  document["search"]["space"] = {{"model.hidden", {{"choice", {{2}, {30}, {31}}}}}};
  document["search"]["constraints"] = {{"parameter_count", {{"max", 20}}}};
  const Workspace workspace;

  const Json search = to_json(*run(workspace, document).result.search);

  // 2 inputs, 2 hidden, 2 classes: 2 * 2 + 2 + 2 * 2 + 2 parameters.
  const Json& best = search.at("trials")[search.at("best_trial").get<std::size_t>()];
  EXPECT_EQ(best.at("params").at("model.hidden"), Json::array({2}));
  EXPECT_EQ(best.at("constraints"), Json::array({12.0 - 20}));
}

TEST(Search, SeveralObjectivesHaveAFrontOfTrials) {
  Json document = document_of("grid");
  document["training"]["epochs"] = 4;
  document["search"]["space"] = {{"model.hidden", {{"choice", {{1}, {3}, {20}}}}},
                                 {"optimizer.learning_rate", {{"choice", {1e-9, 0.5}}}}};
  document["search"]["objective"] = {"val_loss", "parameter_count"};
  const Workspace workspace;

  const Json search = to_json(*run(workspace, document).result.search);

  const auto& trials = search.at("trials");
  const auto beats = [&](const Json& a, const Json& b) {
    return a.at("values")[0] <= b.at("values")[0] && a.at("values")[1] <= b.at("values")[1] &&
           a.at("values") != b.at("values");
  };
  std::vector<std::int64_t> front;
  for (const Json& trial : trials) {
    if (std::none_of(trials.begin(), trials.end(),
                     [&](const Json& other) { return beats(other, trial); }))
      front.push_back(trial.at("number"));
  }
  EXPECT_EQ(search.at("pareto_trials").get<std::vector<std::int64_t>>(), front);
  EXPECT_EQ(search.at("objectives")[1],
            Json({{"name", "parameter_count"}, {"direction", "minimize"}}));
}

/// A flow whose steps are searched for, at their places in the list: `cheap` has fewer FLOPs than
/// `small`, which has fewer parameters, and `large` has more of both.
Json structures(const Json& tuner, int trials) {
  const Json small = Json::parse(R"({"use": "loop", "times": 3, "body": [
      {"use": "dense", "out_features": 1}, {"use": "dense", "out_features": 4}]})");
  const Json cheap = {{"use", "dense"}, {"out_features", 4}};
  const Json large = Json::parse(R"({"use": "flow", "flow": [
      {"use": "dense", "out_features": 8}, {"use": "dense", "out_features": 4}]})");
  Json document = document_of();
  document["model"] = {{"use", "flow"}, {"flow", {cheap, cheap, cheap, cheap, "head"}}};
  document["training"] = {{"use", "standard"}, {"epochs", 1}, {"batch_size", 64}};
  document["search"] = {{"tuner", tuner}, {"trials", trials}};
  document["search"]["objective"] = {"parameter_count", "flops"};
  for (const char* place : {"model.flow.1", "model.flow.2", "model.flow.3"})
    document["search"]["space"][place] = {{"choice", {large, cheap, small}}};
  return document;
}

std::set<std::vector<double>> front_of(const Json& search) {
  std::set<std::vector<double>> front;
  for (const Json& number : search.at("pareto_trials"))
    front.insert(search.at("trials").at(number.get<std::size_t>()).at("values"));
  return front;
}

// All 27 structures, by the grid; of them NSGA-II has to find those with k of one kind and 3 - k of
// the other.
TEST(Search, OfStructuresByNsgaIIFindsTheFrontOfAllOfThem) {
  const Workspace all;
  const Workspace some;
  const Json grid = to_json(*run(all, structures("grid", 27)).result.search);

  const Json found = to_json(
      *run(some, structures({{"use", "nsga_ii"}, {"population_size", 6}}, 60)).result.search);

  ASSERT_EQ(grid.at("trials").size(), 27U);
  // Around them: dense 4 of 2 inputs and a head of 2, which have 12 + 10 parameters and
  // 16 + 16 FLOPs. `cheap` has 20 and 32, `small` 5 + 8 and 3 * (8 + 8).
  const std::set<std::vector<double>> front{{22 + 3 * 13, 32 + 3 * 48},
                                            {22 + 2 * 13 + 20, 32 + 2 * 48 + 32},
                                            {22 + 13 + 2 * 20, 32 + 48 + 2 * 32},
                                            {22 + 3 * 20, 32 + 3 * 32}};
  EXPECT_EQ(front_of(grid), front);
  EXPECT_EQ(front_of(found), front);
}

TEST(Search, ByLatencyHasThatOfTheMachine) {
  Json document = structures("grid", 27);
  document["search"]["objective"] = {"flops", "latency"};
  document["search"]["latency"] = {{"alpha", 2}, {"beta", 0}, {"bias", 1e-3}, {"peak_gflops", 1}};
  document["search"]["constraints"] = {{"flops", {{"max", 150}}}};
  const Workspace workspace;

  const RunOutcome outcome = run(workspace, document);

  const Json search = to_json(*outcome.result.search);
  for (std::size_t trial = 0; trial < 27; ++trial) {
    const double flops = value_of(search, trial, 0);
    const double calls = (value_of(search, trial, 1) - 2 * flops / 1e9) / 1e-3;
    EXPECT_NEAR(calls, std::round(calls), 1e-6);
    EXPECT_GE(calls, 5);
    EXPECT_EQ(search.at("trials")[trial].at("constraints"), Json::array({flops - 150}));
  }
  const Json saved = Json::parse(testing::read_file(outcome.folder / "workflow.json"));
  EXPECT_EQ(saved.at("search").at("latency").at("bandwidth_gbs"), 200);
}

TEST(Search, KeepsTheWeightsOfAsManyTrialsAsItIsTold) {
  Json document = document_of("random");
  document["search"]["keep"] = 2;
  const Workspace workspace;

  const RunOutcome outcome = run(workspace, document);

  std::vector<std::pair<double, std::string>> values;
  const Json trials = to_json(*outcome.result.search).at("trials");
  for (std::size_t i = 0; i < trials.size(); ++i)
    values.emplace_back(trials[i].at("values")[0], std::to_string(i));
  std::sort(values.begin(), values.end());
  std::set<std::string> kept;
  for (const fs::directory_entry& entry : fs::directory_iterator(outcome.folder / "fits/trials"))
    kept.insert(entry.path().filename().string());
  EXPECT_EQ(kept, (std::set<std::string>{values[0].second, values[1].second}));
  EXPECT_TRUE(fs::is_empty(outcome.folder / "checkpoints/trials"));
}

// Decisions wait for the first trial, whose training takes longer than the budget.
TEST(Search, WhoseFirstTrialIsTooSlowEndsWithAnotherOne) {
  const Runtime runtime = watching_runtime();
  Json document = document_of("grid");
  document["search"].erase("space");
  document["search"]["space"]["training.epochs"] = {{"choice", {100000, 2}}};
  document["search"]["parallel"] = 2;
  document["search"]["trials"] = 2;
  document["search"]["budget"] = {{"time", "2s"}};
  document["resources"]["workers"] = 2;
  const Workspace workspace;

  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());

  const Json search = to_json(*outcome.result.search);
  EXPECT_EQ(search.at("ended").at("reason"), "time");
  EXPECT_EQ(search.at("best_trial"), 1);
  EXPECT_EQ(search.at("trials")[0].at("state"), "failed");
  EXPECT_THAT(search.at("trials")[0].at("error").get<std::string>(), HasSubstr("not finished"));
  // Resumed after its end it stays as it is.
  fs::remove(outcome.folder / "result.json");
  EXPECT_EQ(study_of(resume_run(runtime, outcome.folder)), study_of(outcome));
}

// Decisions have not seen the third trial, which ends before the second.
TEST(Search, EndsWithTheBestTrialBehindOneThatIsTooSlow) {
  const Runtime runtime = watching_runtime();
  Json document = document_of("random");
  document["search"].erase("space");
  document["search"]["space"]["training.epochs"] = {{"choice", {1, 8, 100000}}};
  for (const int epochs : {1, 100000, 8})
    document["search"]["initial"].push_back({{"training.epochs", epochs}});
  document["search"]["trials"] = 3;
  document["search"]["budget"] = {{"time", "6s"}};
  document["resources"]["workers"] = 2;
  const Workspace workspace;

  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());

  const Json search = to_json(*outcome.result.search);
  EXPECT_EQ(search.at("best_trial"), 2);
  EXPECT_LT(search.at("trials")[2].at("values")[0], search.at("trials")[0].at("values")[0]);
  EXPECT_THAT(search.at("trials")[1].at("error").get<std::string>(), HasSubstr("not finished"));
}

TEST(Search, ACancelledTrialIsLeftOut) {
  const Runtime runtime = watching_runtime();
  const Json document = document_of("random");
  const Workspace workspace;
  RunOptions options = workspace.options();
  {
    const Impatient impatient(runtime, 5);
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), options), Interrupted);
  }
  const fs::path folder = fs::directory_iterator(options.output)->path();

  cancel_trial(folder, 7);
  const Json search = to_json(*resume_run(runtime, folder).result.search);

  EXPECT_EQ(search.at("trials")[7].at("state"), "cancelled");
  EXPECT_EQ(states_of(search)["complete"], 8);
  EXPECT_THROW(cancel_trial(folder, 9), UsageError);
}

TEST(Search, APausedTrialThatIsCancelledIsNotTrainedAnyMore) {
  const Runtime runtime = watching_runtime();
  Json document = document_of("random");
  document["search"]["pruner"] = {{"use", "asha"}, {"reduction_factor", 2}};
  document["training"]["epochs"] = 4;
  const Workspace workspace;
  RunOptions options = workspace.options();
  {
    const Impatient impatient(runtime, 60);
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), options), Interrupted);
  }
  const fs::path folder = fs::directory_iterator(options.output)->path();
  const std::set<std::int64_t> paused = paused_in(folder / "search.journal");
  ASSERT_FALSE(paused.empty());

  cancel_trial(folder, *paused.begin());
  const RunOutcome outcome = resume_run(runtime, folder);

  const Json trial = to_json(*outcome.result.search).at("trials").at(*paused.begin());
  EXPECT_EQ(trial.at("state"), "cancelled");
  // Once more, from the journal alone.
  fs::remove(folder / "result.json");
  EXPECT_EQ(study_of(resume_run(runtime, folder)), study_of(outcome));
  // A search that has ended is left alone.
  EXPECT_THROW(cancel_trial(folder, 0), UsageError);
}

TEST(Search, TheTimeOfAStoppedSearchCounts) {
  const Runtime runtime = watching_runtime();
  Json document = document_of("random");
  document["search"]["budget"] = {{"time", "1h"}};
  const Workspace workspace;
  RunOptions options = workspace.options();
  {
    int steps = 0;
    std::stop_source stop;
    const StepWatch slow(runtime, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      if (++steps == 5)  // of 10 and more of the first trial
        stop.request_stop();
    });
    options.stop = stop.get_token();
    EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), options), Interrupted);
  }
  const fs::path folder = fs::directory_iterator(options.output)->path();

  // No trial has ended.
  try {
    extend_search(runtime, folder, 0, "0.3s");
    FAIL() << "five steps took more";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the search has taken 1 s already"));
  }
}

TEST(Search, TheTimeOfALastTrainingThatWasStoppedCounts) {
  const Runtime runtime = watching_runtime();
  Json document = document_of("grid");
  document["training"]["epochs"] = 12;
  document["search"]["space"] = {{"model.hidden", {{"choice", {{4}, {8}}}}}};
  document["search"]["trials"] = 2;
  document["search"]["budget"] = {{"time", "12s"}};
  constexpr int kStepsOfEpoch = 5;  // of 72 rows in batches of 16
  int steps = 0;
  std::stop_source stop;
  const StepWatch slow(runtime, [&] {
    if (++steps <= 2 * 12 * kStepsOfEpoch)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    if (steps == 2 * 12 * kStepsOfEpoch + 10)
      stop.request_stop();
  });
  const Workspace workspace;
  RunOptions options = workspace.options();
  options.stop = stop.get_token();
  EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), options), Interrupted);

  const RunOutcome outcome = resume_run(runtime, fs::directory_iterator(options.output)->path());

  EXPECT_THAT(outcome.result.training.stop_reason, HasSubstr("time budget"));
  // 12 s and the rest of an epoch. Ten steps more if the time before the stop did not count.
  EXPECT_LE(steps, 2 * 12 * kStepsOfEpoch + 30 + kStepsOfEpoch);
}

TEST(Search, ALastTrainingThatBeginsLateHasTheTimeThatWasExpected) {
  const Runtime runtime = watching_runtime();
  Json document = document_of("grid");
  document["search"]["space"] = {{"model.hidden", {{"choice", {{4}, {8}}}}}};
  document["search"]["trials"] = 2;
  document["search"]["parallel"] = 1;
  document["search"]["budget"] = {{"time", "6s"}};
  constexpr int kStepsOfTrial = 2 * 5;
  int steps = 0;
  const StepWatch slow(runtime, [&] {
    ++steps;
    if (steps <= kStepsOfTrial)  // by which the last training is measured
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
    if (steps == kStepsOfTrial + 1)  // of the second trial, which makes it late
      std::this_thread::sleep_for(std::chrono::seconds(8));
  });
  const Workspace workspace;

  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());

  EXPECT_EQ(outcome.result.search->best_trial, 0);
  EXPECT_EQ(outcome.result.training.total_epochs, 2);
  EXPECT_EQ(outcome.result.training.stop_reason, "");
}

TEST(Search, MoreTrialsOfAPopulationAreRefusedAndChangeNothing) {
  const Runtime runtime = watching_runtime();
  Json document = document_of("random");
  document["search"]["trials"] = 5;
  document["search"]["pruner"] = {{"use", "population_based"}, {"population", 4}, {"interval", 1}};
  const Workspace workspace;
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());
  const std::string before = read_file(outcome.folder / "workflow.json");

  try {
    extend_search(runtime, outcome.folder, 4, "");
    FAIL() << "the checkpoints are gone";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("population_based"));
  }

  EXPECT_EQ(read_file(outcome.folder / "workflow.json"), before);
  EXPECT_TRUE(fs::exists(outcome.folder / "result.json"));
}

/// The document in the report.
Json report_data(const fs::path& run) {
  const std::string page = read_file(run / "report.html");
  const std::size_t begin =
      page.find('>', page.find("<script type=\"application/json\" id=\"report-document\"")) + 1;
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Search, ItsLearningCurvesReachTheLastEpochOfEachTrial) {
  Json document = document_of("random");
  document["training"]["epochs"] = 6;
  document["training"]["early_stopping"] = {{"patience", "1ep"}};
  document["search"]["pruner"] = {{"use", "median"}};
  document["search"]["space"]["optimizer.learning_rate"] = {{"log_uniform", {0.001, 5}}};
  document["search"]["trials"] = 16;
  const Runtime runtime = watching_runtime();
  const Workspace workspace;

  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());

  std::map<std::int64_t, Json> trained;
  for (const TrainingCurve& curve : read_history(outcome.folder)) {
    if (curve.fit.starts_with("trials/"))
      trained[std::stoll(curve.fit.substr(7))] = curve.epochs.back().epoch;
  }
  std::map<std::int64_t, Json> drawn;
  std::set<std::pair<std::string, bool>> kinds;  // state, and whether all epochs were trained
  const Json search = report_data(outcome.folder).at("search");
  for (const Json& curve : search.at("curves").at(0)) {
    const auto trial = curve.at("trial").get<std::int64_t>();
    drawn[trial] = curve.at("points").back().at(0);
    kinds.emplace(search.at("trials").at(static_cast<std::size_t>(trial)).at("state"),
                  drawn[trial] == 6);
  }
  EXPECT_EQ(drawn, trained);
  EXPECT_THAT(kinds, ::testing::IsSupersetOf(std::set<std::pair<std::string, bool>>{
                         {"complete", true}, {"complete", false}, {"pruned", false}}));
}

TEST(Search, MayDecideByWhateverHasEnded) {
  Json document = document_of();
  document["search"]["asynchronous"] = true;
  document["search"]["pruner"] = {{"use", "asha"}, {"reduction_factor", 2}};
  document["training"]["epochs"] = 4;
  document["resources"]["workers"] = 3;
  const Runtime runtime = watching_runtime();
  const Workspace workspace;

  const RunOutcome outcome = stopped_and_resumed(runtime, workspace, document, 60);

  const Json search = to_json(*outcome.result.search);
  EXPECT_EQ(search.at("trials").size(), 9U);
  EXPECT_EQ(states_of(search)["running"], 0);
  EXPECT_GT(states_of(search)["complete"], 0);
  EXPECT_TRUE(search.at("asynchronous"));
  EXPECT_THAT(read_file(outcome.folder / "events.jsonl"),
              HasSubstr("another run of this document may make other ones"));
  EXPECT_THAT(read_file(outcome.folder / "report.html"),
              HasSubstr("Another run of the document may make other ones."));
}

/// The journal of a search that was stopped, changed by hand.
class SearchJournal : public ::testing::Test {
 protected:
  SearchJournal() {
    RunOptions options = workspace_.options();
    const Impatient impatient(runtime_, 100);
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime_, runtime_.resolve(document_), options), Interrupted);
    folder_ = fs::directory_iterator(options.output)->path();
  }

  std::string text() const { return read_file(folder_ / "search.journal"); }
  void write(const std::string& text) const {
    std::ofstream(folder_ / "search.journal", std::ios::binary) << text;
  }
  std::string refusal() const {
    try {
      resume_run(runtime_, folder_);
    } catch (const StorageError& error) {
      return error.what();
    }
    return "it was not refused";
  }

  const Runtime runtime_ = watching_runtime();
  const Json document_ = document_of();
  const Workspace workspace_;
  fs::path folder_;
};

TEST_F(SearchJournal, ThatWasCutAnywhereLosesNothing) {
  const Workspace whole;
  const std::string expected = study_of(run(whole, document_));
  const std::string all = text();
  for (const double part : {0.0, 0.1, 0.35, 0.77, 0.999}) {
    const Workspace copy;
    fs::copy(folder_, copy.folder() / "run", fs::copy_options::recursive);
    std::ofstream(copy.folder() / "run/search.journal", std::ios::binary)
        << all.substr(0, static_cast<std::size_t>(part * static_cast<double>(all.size())));
    EXPECT_EQ(study_of(resume_run(runtime_, copy.folder() / "run")), expected) << part;
  }
}

TEST_F(SearchJournal, WithALineThatIsNoneIsRefusedByItsPlace) {
  std::string lines = text();
  lines.insert(lines.find('\n') + 1, "{\"op_code\": 6, \"trial\n");
  write(lines);

  EXPECT_THAT(refusal(), ::testing::AllOf(HasSubstr("search.journal:2: is no line of a journal"),
                                          HasSubstr("move the journal away")));
}

TEST_F(SearchJournal, OfAnotherSearchIsRefused) {
  std::string lines = text();
  const std::size_t tuner = lines.find("\"tpe\"");
  write(lines.replace(tuner, 5, "\"gp\""));

  EXPECT_THAT(refusal(), HasSubstr("is the journal of another search"));
}

TEST(Search, TrainsTheBestTrialsDocumentAsARunOfItsOwnWould) {
  const Workspace workspace;
  const RunOutcome found = run(workspace, document_of());
  const Json search = to_json(*found.result.search);
  double best = value_of(search, 0);
  for (std::size_t trial = 0; trial < search.at("trials").size(); ++trial)
    best = std::min(best, value_of(search, trial));
  EXPECT_EQ(search.at("trials").size(), 9U);
  EXPECT_EQ(value_of(search, search.at("best_trial").get<std::size_t>()), best);
  EXPECT_EQ(search.at("objectives")[0].at("direction"), "minimize");

  const Runtime runtime = watching_runtime();
  const Workspace alone;
  const RunOutcome again =
      run_workflow(runtime, runtime.read(found.folder / "best.json"), alone.options());

  EXPECT_FALSE(again.result.search);
  EXPECT_EQ(read_file(again.folder / "model.safetensors"),
            read_file(found.folder / "model.safetensors"));
  EXPECT_EQ(again.result.training.validation->loss, found.result.training.validation->loss);
}

/// Fails the last training of a search within its fourth step, which follows its first checkpoint:
/// that of the first `times` trials that are trained last.
class FailingLastTraining {
 public:
  FailingLastTraining(const Runtime& runtime, const Workspace& workspace, int times)
      : watch_(runtime, [this, output = workspace.options().output, times] {
          const std::string journal =
              read_file(fs::directory_iterator(output)->path() / "search.journal");
          if (journal.find("\"treadle:last_training\"") == std::string::npos || failed_ == times)
            return;
          if (++steps_ < 4)
            return;
          steps_ = 0;
          ++failed_;
          throw TrainingError("it fell apart");
        }) {}

  int failed() const { return failed_; }

 private:
  int steps_ = 0;
  int failed_ = 0;
  StepWatch watch_;
};

std::vector<std::int64_t> epochs_of_final(const fs::path& folder) {
  std::vector<std::int64_t> epochs;
  for (const TrainingCurve& curve : read_history(folder)) {
    for (const EpochSummary& epoch : curve.epochs) {
      if (curve.fit == "final")
        epochs.push_back(epoch.epoch);
    }
  }
  return epochs;
}

TEST(Search, WhoseLastTrainingFailsEndsWithTheNextBestTrial) {
  const Runtime runtime = watching_runtime();
  const Json document = document_of();
  const Workspace whole;
  const RunOutcome expected = run(whole, document);
  const Json trials = to_json(*expected.result.search).at("trials");
  std::vector<std::size_t> ranked(trials.size());
  std::iota(ranked.begin(), ranked.end(), 0);
  std::stable_sort(ranked.begin(), ranked.end(), [&](std::size_t a, std::size_t b) {
    return value_of(to_json(*expected.result.search), a) <
           value_of(to_json(*expected.result.search), b);
  });
  const Workspace workspace;
  NoteWatch notes;
  RunOptions options = workspace.options();
  options.observers.push_back(&notes);
  const FailingLastTraining failing(runtime, workspace, 2);

  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), options);

  EXPECT_EQ(failing.failed(), 2);
  EXPECT_EQ(to_json(*outcome.result.search).at("trials"), trials);
  EXPECT_EQ(outcome.result.search->best_trial, ranked[2]);
  EXPECT_THAT(notes.notes(),
              Contains(AllOf(HasSubstr("trial " + std::to_string(ranked[0]) + " failed: it fell"),
                             HasSubstr("that of trial " + std::to_string(ranked[1]) +
                                       ", the next best, begins"))));
  const Workspace alone;
  const RunOutcome again =
      run_workflow(runtime, runtime.read(outcome.folder / "best.json"), alone.options());
  EXPECT_EQ(read_file(outcome.folder / "model.safetensors"),
            read_file(again.folder / "model.safetensors"));
  // Nothing is left of the rows of the trainings that failed.
  EXPECT_EQ(epochs_of_final(outcome.folder), epochs_of_final(again.folder));
}

TEST(Search, WhoseLastTrainingsAllFailTriesTheNextOneWhenItIsResumed) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  std::int64_t failed = 0;
  {
    const FailingLastTraining failing(runtime, workspace, 9);
    EXPECT_THROW(run_workflow(runtime, runtime.resolve(document_of()), workspace.options()),
                 TrainingError);
    failed = failing.failed();
  }
  const fs::path folder = fs::directory_iterator(workspace.options().output)->path();

  const RunOutcome outcome = resume_run(runtime, folder);

  EXPECT_EQ(failed, 3);
  EXPECT_TRUE(fs::exists(outcome.folder / "model.safetensors"));
}

// Whoever uses the model builds it by the best trial's document, whatever the run's says.
TEST(Search, LeavesAModelThatPredicts) {
  const Workspace workspace;
  Json document = document_of("grid");
  document["search"]["space"] = {{"model.hidden", {{"choice", {{6}, {7}}}}}};

  const fs::path folder = run(workspace, document).folder;

  const Runtime runtime = watching_runtime();
  EXPECT_NO_THROW(Predictor::load(runtime, folder));
  const Json best = Json::parse(read_file(folder / "best.json"));
  EXPECT_THAT(best.at("model").at("hidden").dump(), ::testing::AnyOf("[6]", "[7]"));
}

TEST(Search, EndsWithTheGridAndComparesByTheMeanOfFolds) {
  const Workspace workspace;
  Json document = document_of("grid");
  document["validation"] = {{"use", "k_fold"}, {"folds", 2}};
  document["metrics"] = {"accuracy"};
  document["search"]["objective"] = "accuracy";
  document["search"]["space"] = {{"model.hidden", {{"choice", {{4}, {16}}}}}};

  const RunOutcome outcome = run(workspace, document);

  const Json search = to_json(*outcome.result.search);
  ASSERT_EQ(search.at("trials").size(), 2U);
  EXPECT_EQ(search.at("objectives")[0].at("direction"), "maximize");
  const double first = value_of(search, 0);
  const double second = value_of(search, 1);
  EXPECT_EQ(search.at("best_trial"), second > first ? 1 : 0);
  // The best run has the same folds, but random streams of its own.
  EXPECT_EQ(outcome.result.cross_validation->fold_results.size(), 2U);
  EXPECT_THAT(read_file(outcome.folder / "history.csv"),
              ::testing::AllOf(HasSubstr("trials/1/fold-2,2,"), HasSubstr("\nfinal,")));
}

TEST(Search, CountsATrainingThatDivergesAsFailed) {
  const Workspace workspace;
  Json document = document_of("grid");
  document["search"]["space"] = {{"optimizer.learning_rate", {{"choice", {1e30, 0.1}}}}};

  const Json search = to_json(*run(workspace, document).result.search);

  EXPECT_EQ(search.at("trials")[0].at("state"), "failed");
  EXPECT_THAT(search.at("trials")[0].at("error").get<std::string>(), HasSubstr("trials/0"));
  EXPECT_EQ(search.at("best_trial"), 1);
}

// The second fold would begin with the weights of the first, which has none.
TEST(Search, GoesOnWithoutTheFoldsThatFollowOneThatFails) {
  const Workspace workspace;
  Json document = document_of("grid");
  document["validation"] = Json::parse(R"({"use": "walk_forward", "start": 40, "test_size": 10,
    "retrain_every": 2, "validation_size": 8, "warm_start": true})");
  document["search"]["space"] = {{"optimizer.learning_rate", {{"choice", {1e30, 0.1}}}}};

  const RunOutcome outcome = run(workspace, document);

  const Json search = to_json(*outcome.result.search);
  EXPECT_EQ(search.at("trials")[0].at("state"), "failed");
  EXPECT_EQ(search.at("best_trial"), 1);
  EXPECT_THAT(read_file(outcome.folder / "history.csv"),
              ::testing::AllOf(HasSubstr("trials/1/"), ::testing::Not(HasSubstr("trials/0/"))));
}

// Within its steps the first fold has six epochs, the second one, whose value then stands.
TEST(Search, JudgesFoldsOfWhichOneHasEnded) {
  Json document = document_of("random");
  document["data"]["rows"] = 440;
  document["training"] = {{"use", "standard"}, {"max_steps", 12}, {"batch_size", 16}};
  document["validation"] = {
      {"use", "walk_forward"}, {"start", 40}, {"test_size", 200}, {"validation_size", 8}};
  document["search"]["pruner"] = {{"use", "asha"}, {"reduction_factor", 2}};
  document["search"]["space"] = {{"optimizer.learning_rate", {{"log_uniform", {1e-3, 1}}}}};
  std::string expected;
  for (const int workers : {1, 3}) {
    document["resources"]["workers"] = workers;
    const Workspace workspace;

    const RunOutcome outcome = run(workspace, document);

    const Json search = to_json(*outcome.result.search);
    EXPECT_GT(states_of(search)["paused"], 0);
    const Json& best = search.at("trials").at(search.at("best_trial").get<std::size_t>());
    EXPECT_EQ(best.at("intermediate").back().at("step"), 6);
    expected = expected.empty() ? study_of(outcome) : expected;
    EXPECT_EQ(study_of(outcome), expected) << workers << " workers";
  }
}

TEST(Search, FailsWhereAllTrialsDo) {
  const Workspace workspace;
  Json document = document_of("grid");
  document["search"]["space"] = {{"optimizer.learning_rate", {{"choice", {1e30, 1e31}}}}};

  try {
    run(workspace, document);
    FAIL() << "nothing was learned";
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(), HasSubstr("all 2 trials of the search failed, the first with: "));
  }
}

TEST(Search, SaysWhatBecameOfItsTrialsWhereNoneIsComplete) {
  const Workspace workspace;
  Json document = document_of("random");
  document["search"]["pruner"] = {{"use", "threshold"}, {"upper", 1e-6}};

  try {
    run(workspace, document);
    FAIL() << "all were pruned";
  } catch (const TrainingError& error) {
    EXPECT_THAT(error.what(), HasSubstr("of 9 trials 9 were pruned, 0 were cancelled and 0 failed; "
                                        "give threshold bounds"));
  }
}

TEST(Search, SaysThatNoTrialKeepsTheConstraints) {
  const Runtime runtime = watching_runtime();
  Json document = document_of("random");
  document["search"]["trials"] = 2;
  document["search"]["constraints"] = {{"parameter_count", {{"max", 1}}}};
  const Workspace workspace;
  NoteWatch watch;
  RunOptions options = workspace.options();
  options.observers = {&watch};

  run_workflow(runtime, runtime.resolve(document), options);

  EXPECT_THAT(watch.notes(), Contains(HasSubstr("no trial keeps all constraints; trial ")));
}

// A value that fits no document is in the trials of all other dimensions, too.
TEST(Search, AValueThatDoesNotFitIsReportedOnceWhereItStands) {
  const auto problems = [](const Json& space) -> std::vector<std::string> {
    Json document = document_of();
    document["search"]["space"].update(space);
    std::vector<std::string> found;
    try {
      const Runtime runtime = watching_runtime();
      expect_search(runtime, runtime.resolve(document));
    } catch (const DocumentError& error) {
      for (const Problem& problem : error.problems())
        found.push_back(problem.pointer + ": " + problem.message);
    }
    return found;
  };

  EXPECT_THAT(problems({{"model.hidden", {{"choice", {{4}, {-3}}}}}}),
              ElementsAre("/search/space/model.hidden: with [-3]: /model/hidden/0: must be >= 1, "
                          "got -3"));
  EXPECT_THAT(problems({{"model.droput", {{"uniform", {0, 1}}}}}),
              ElementsAre(AllOf(HasSubstr("/search/space/model.droput: with 0.0: /model/droput: "
                                          "unknown key \"droput\"; did you mean \"dropout\"?"),
                                Not(HasSubstr("--set")))));
  EXPECT_THAT(problems({{"model.hidden.{0..2}", {{"int", {0, 5}}}}}),
              ElementsAre(HasSubstr("/search/space/model.hidden.{0..2}: with 0: /model/hidden/")));
  EXPECT_THAT(problems({{"model.hidden.7", {{"int", {1, 5}}}}}),
              ElementsAre(HasSubstr("/search/space/model.hidden.7: with 1: ")));
  EXPECT_THAT(problems({{"/data/rows", {{"int", {10, 20}}}}}),
              ElementsAre(HasSubstr("/search/space/~1data~1rows: \"data\" is the same for all "
                                    "trials")));
  EXPECT_THAT(problems({{"model.dropout", {{"uniform", {0, 2}}}},
                        {"optimizer.weight_decay", {{"uniform", {-1, 0.1}}}}}),
              ElementsAre(HasSubstr("/search/space/model.dropout: with 2.0: "),
                          HasSubstr("/search/space/optimizer.weight_decay: with -1.0: ")));
}

TEST(Search, AValueThatFitsSomeChoicesOnlyIsToldItsCondition) {
  Json document = document_of();
  document["search"]["space"]["optimizer.betas"] = {{"choice", {{0.9, 0.99}, {0.8, 0.9}}}};
  const Runtime runtime = watching_runtime();

  try {
    expect_search(runtime, runtime.resolve(document));
    FAIL() << "sgd has no betas";
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/search/space/optimizer.betas: with [0.8,0.9]: "
                                              "/optimizer/betas: unknown key \"betas\""),
                                    HasSubstr("; to try it with the others only, add \"when\": "
                                              "{\"optimizer\":[{\"use\":\"adamw\"}]}")));
    EXPECT_EQ(error.problems().size(), 1);
  }
}

// The parameters stay those of the component in the document.
TEST(Search, AKindThatCannotHaveTheParametersIsToldToBeAWholeComponent) {
  Json document = document_of();
  document["optimizer"] = {{"use", "adamw"}, {"betas", {0.8, 0.9}}};
  document["search"]["space"] = {{"optimizer.learning_rate", {{"uniform", {0.1, 0.2}}}},
                                 {"optimizer.use", {{"choice", {"adamw", "sgd"}}}}};
  const Runtime runtime = watching_runtime();

  try {
    expect_search(runtime, runtime.resolve(document));
    FAIL() << "sgd has no betas";
  } catch (const DocumentError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("/search/space/optimizer.use: with \"sgd\": /optimizer/betas: "),
                      HasSubstr("try whole ones, \"optimizer\": {\"choice\":[{\"use\":\"adamw\"},"
                                "{\"use\":\"sgd\"}]}")));
    EXPECT_EQ(error.problems().size(), 1);
  }
}

TEST(Search, NotesAPrunerThatJudgesNoTrialBeforeItsEnd) {
  const Runtime runtime = watching_runtime();
  const auto notes = [&](const Json& pruner, const Json& training = Json::object()) {
    Json document = document_of();
    document["training"].update(training);
    document["search"]["pruner"] = pruner;
    return notes_on_search(runtime, runtime.resolve(document));
  };
  const auto idle = [](const std::string& name, const std::string& why) {
    return ElementsAre("search: the pruner \"" + name + "\" never ends a trial early: " + why +
                       "; let it evaluate earlier, raise \"training.epochs\", or leave \"pruner\" "
                       "out");
  };
  const Json asha{{"use", "asha"}, {"min_resource", 2}};

  EXPECT_THAT(notes(asha),
              idle("asha", "it first evaluates them after epoch 2, and trials have 2 epochs"));
  EXPECT_THAT(notes(asha, {{"epochs", 3}}), IsEmpty());
  EXPECT_THAT(notes({{"use", "median"}, {"n_warmup_steps", 4}}),
              idle("median", "it first evaluates them after epoch 5, and trials have 2 epochs"));
  EXPECT_THAT(notes({{"use", "median"}, {"n_warmup_steps", 0}}), IsEmpty());
  EXPECT_THAT(notes({{"use", "hyperband"}, {"min_resource", 1}, {"max_resource", 1}}),
              idle("hyperband", "it evaluates none of them, and trials have 2 epochs"));
  // Epochs that are not validated have no value to evaluate.
  EXPECT_THAT(notes(asha, {{"epochs", 4}, {"evaluate_every", 4}}),
              idle("asha", "it first evaluates them after epoch 4, and trials have 4 epochs"));

  Json document = document_of();
  document["search"]["pruner"] = asha;
  document["search"]["trials"] = 1;
  const Workspace workspace;
  NoteWatch watch;
  RunOptions options = workspace.options();
  options.observers.push_back(&watch);
  run_workflow(runtime, runtime.resolve(document), options);
  EXPECT_THAT(watch.notes(), Contains(HasSubstr("the pruner \"asha\" never ends a trial early")));
}

struct Mistake {
  std::string name;
  Json change;  // of "search"
  std::string message;
};
std::ostream& operator<<(std::ostream& out, const Mistake& mistake) {
  return out << mistake.name;
}
class SearchMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(SearchMistakes, AreNamedWhereTheyStand) {
  const Workspace workspace;
  Json document = document_of();
  document["search"].update(GetParam().change);

  try {
    run(workspace, document);
    FAIL() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
}

Json space_of(const std::string& path, const Json& dimension) {
  return {{"space", {{path, dimension}}}};
}

INSTANTIATE_TEST_SUITE_P(
    Searches, SearchMistakes,
    ::testing::Values(
        Mistake{"UnknownPath", space_of("optimizer.learning_rat", {{"uniform", {0.1, 1}}}),
                "/search/space/optimizer.learning_rat: with 0.1: "},
        Mistake{"OutsideTheSchema", space_of("model.dropout", {{"uniform", {0.1, 2}}}),
                "/search/space/model.dropout: with 2"},
        Mistake{"WhatAllTrialsShare", space_of("data.rows", {{"int", {10, 20}}}),
                "/search/space/data.rows: \"data\" is the same for all trials"},
        Mistake{"UnknownObjective",
                {{"objective", "acuracy"}},
                "/search/objective: no number of the validation is called \"acuracy\"; known: "
                "val_loss, parameter_count, flops, latency, accuracy; did you mean \"accuracy\"?"},
        Mistake{"EmptySpace", {{"space", Json::object()}}, "/search/space"},
        Mistake{"SeveralObjectivesForOne",
                {{"tuner", "gp"}, {"objective", {"val_loss", "accuracy"}}},
                "/search/tuner: \"gp\" minimizes one objective, and the search has 2"},
        Mistake{"PrunerOfSeveralObjectives",
                {{"pruner", "median"}, {"objective", {"val_loss", "accuracy"}}},
                "/search/pruner: trials with several objectives are not pruned"},
        Mistake{"UnknownConstraint",
                {{"constraints", {{"params", {{"max", 1}}}}}},
                "/search/constraints/params: no number of the validation is called \"params\""},
        Mistake{"ConstraintThatNothingKeeps",
                {{"constraints", {{"parameter_count", {{"min", 5}, {"max", 3}}}}}},
                "no trial can keep"},
        Mistake{"ConstraintWithoutBounds",
                {{"constraints", {{"val_loss", Json::object()}}}},
                "/search/constraints/val_loss: a constraint has \"min\", \"max\" or both"},
        Mistake{"BudgetInEpochs",
                {{"budget", {{"time", "3ep"}}}},
                "/search/budget/time: expected wall time above zero"},
        Mistake{"BudgetWithoutUnit",
                {{"budget", {{"memory", "8"}}}},
                "/search/budget/memory: expected a size such as \"8GiB\""},
        Mistake{"StudyWithoutStorage",
                {{"study", "mine"}},
                "/search/study: has no effect without \"storage\""},
        Mistake{"InitialOutsideTheSpace",
                {{"initial", {{{"model.hidden", {16}}}, {{"training.batch_size", 7}}}}},
                "/search/initial/1/training.batch_size: expected a value from 8 to 32, got 7"},
        Mistake{"InitialThatIsNoChoice",
                {{"initial", {{{"model.hidden", {9}}}}}},
                "/search/initial/0/model.hidden: expected one of [4], [16], [8,8], got [9]"},
        Mistake{"InitialOfAnotherPath",
                {{"initial", {{{"model.hiden", {16}}}}}},
                "/search/initial/0/model.hiden: the space has no \"model.hiden\"; did you mean "
                "\"model.hidden\"?; its dimensions are: "},
        Mistake{
            "InitialWithoutItsCondition",
            {{"initial", {{{"optimizer.momentum", 0.5}}}}},
            "/search/initial/0/optimizer.momentum: depends on \"optimizer\"; give that as well"},
        Mistake{"InitialAgainstItsCondition",
                {{"initial", {{{"optimizer.momentum", 0.5}, {"optimizer", {{"use", "adamw"}}}}}}},
                "/search/initial/0/optimizer.momentum: has no effect where \"optimizer\" is "},
        Mistake{"MoreInitialPointsThanTrials",
                {{"trials", 2}, {"initial", kInitial}},
                "/search/initial: has 3 points, and the search makes 2 trials; raise \"trials\""},
        Mistake{"InitialThatIsNoPoint", {{"initial", {7}}}, "/search/initial"},
        Mistake{"WeightsOfTooFewChoices",
                space_of("model.hidden", {{"choice", {{4}, {8}}}, {"weights", {1}}}),
                "/search/space/model.hidden/weights: expected a weight for each of the 2 choices"},
        Mistake{"WeightOfZero",
                space_of("model.hidden", {{"choice", {{4}, {8}}}, {"weights", {1, 0}}}),
                "/search/space/model.hidden/weights"},
        Mistake{"UnknownTuner", {{"tuner", "tpr"}}, "/search/tuner"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace treadle
