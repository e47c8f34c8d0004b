// The commands that treadle-run executes.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TrainingCommands : public CommandFixture {
 protected:
  TrainingCommands() {
    given_points();
    given_document(5);
  }

  /// As messages say it.
  std::string shown_run() const { return "runs/" + only_run().filename().string(); }

  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
      lines.push_back(line);
    return lines;
  }
};

TEST_F(TrainingCommands, RunPrintsALinePerEpochTheResultAndWhereTheReportLies) {
  const Finished done = run({"run", "points.json"});

  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_THAT(done.out, StartsWith("points  "));
  for (const char* epoch : {"\n  1/5 ", "\n  2/5 ", "\n  5/5 "})
    EXPECT_THAT(done.out, HasSubstr(epoch));
  EXPECT_THAT(done.out, HasSubstr("\nResult (on 12 validation rows)\n"));
  EXPECT_THAT(done.out, HasSubstr("  accuracy  "));
  EXPECT_THAT(done.out, HasSubstr("Report  " + shown_run() + "/report.html\n"));
}

TEST_F(TrainingCommands, RunLeavesEverythingInOneFolder) {
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);

  for (const char* file : {"workflow.json", "result.json", "history.csv", "events.jsonl",
                           "model.safetensors", "report.html", "checkpoints"})
    EXPECT_TRUE(fs::exists(only_run() / file)) << file;
}

TEST_F(TrainingCommands, RunPutsItsFolderWhereItIsTold) {
  ASSERT_EQ(run({"run", "points.json", "--quiet", "-o", "elsewhere/deep"}).code, 0);

  EXPECT_FALSE(fs::exists(folder() / "runs"));
  EXPECT_FALSE(fs::is_empty(folder() / "elsewhere/deep"));
}

TEST_F(TrainingCommands, RunSpeaksOfChoicesItMade) {
  EXPECT_THAT(run({"run", "points.json"}).out, HasSubstr("\nnote: "));
}

TEST_F(TrainingCommands, MoreClassesThanAConfusionMatrixTakesAreTrainedWithANote) {
  std::string text = "x,y,class\n";
  for (int i = 0; i < 1001; ++i)
    text +=
        std::to_string(i) + "," + std::to_string(i * 7 % 1001) + ",c" + std::to_string(i) + "\n";
  write("classes.csv", text);
  given_document(1, {{"data", {{"use", "csv"}, {"path", "classes.csv"}, {"target", "class"}}},
                     {"model", "linear"}});

  const Finished done = run({"run", "points.json"});

  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, ContainsRegex("\nnote: report: without confusion_matrix .*1000.*1001"));
  const std::string note = "report: without confusion_matrix";
  const json result = json::parse(read(only_run() / "result.json"));
  EXPECT_THAT(result.at("choices"), Contains(StartsWith(note)));
  EXPECT_TRUE(result.at("tables").empty());
  EXPECT_THAT(read(only_run() / "report.html"), HasSubstr(note));
  const Finished looked = run({"check", "points.json", "--dry-run"});
  EXPECT_EQ(looked.code, 0) << looked.err;
  EXPECT_THAT(looked.out, HasSubstr(note));
}

TEST_F(TrainingCommands, RunAppliesOverrides) {
  ASSERT_EQ(run({"run", "points.json", "--quiet", "--set", "training.epochs=2"}).code, 0);

  EXPECT_EQ(json::parse(read(only_run() / "result.json"))["total_epochs"], 2);
}

TEST_F(TrainingCommands, ExtensionsAreCopiedIntoTheResultAsTheyAre) {
  const json extensions = {{"lab", {{"sample", 7}, {"notes", {"a", nullptr}}}}};
  given_document(1, {{"extensions", extensions}});

  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);

  EXPECT_EQ(json::parse(read(only_run() / "result.json"))["extensions"], extensions);
  EXPECT_EQ(json::parse(read(only_run() / "workflow.json"))["extensions"], extensions);
}

TEST_F(TrainingCommands, TheRunsDocumentHasWhatTheDataDecided) {
  given_document(2, {{"resources", {{"shards", "auto"}}}});
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);

  const json document = json::parse(read(only_run() / "workflow.json"));

  EXPECT_EQ(document["data"]["task"], "classification");
  EXPECT_EQ(document["loss"]["use"], "cross_entropy");
  EXPECT_EQ(document["metrics"][0]["use"], "accuracy");
  EXPECT_TRUE(document["resources"]["shards"].is_number());
}

TEST_F(TrainingCommands, ThePictureOfTheStagesNamesWhatTheTrainingIsMadeOf) {
  given_document(2, {{"transforms", {"standardize"}},
                     {"loss", "cross_entropy"},
                     {"optimizer", "sgd"},
                     {"schedule", "cosine"}});

  const Finished done = run({"graph", "points.json"});

  for (const char* part :
       {"transforms: standardize", "loss: cross_entropy", "optimizer: sgd", "schedule: cosine"})
    EXPECT_THAT(done.out, HasSubstr(part));
}

TEST_F(TrainingCommands, AFinalModelOfFoldsIsNotCalledTheBest) {
  given_document(4, {{"validation", {{"use", "k_fold"}, {"folds", 2}}}});

  for (const std::string& line : lines_of(run({"run", "points.json"}).out)) {
    const bool is_final = line.starts_with("final");
    EXPECT_FALSE(is_final && line.find("best") != std::string::npos) << line;
  }
}

TEST_F(TrainingCommands, EvaluateWithoutTheTargetSaysThatItIsTheTarget) {
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);
  write("new.csv", "x,y\n1,2\n");

  const Finished failed = run({"evaluate", only_run().string(), "new.csv"});

  EXPECT_EQ(failed.code, 5);
  EXPECT_THAT(failed.err, AllOf(HasSubstr("\"class\""), HasSubstr("target")));
}

TEST_F(TrainingCommands, DevicesAreListedAndChosenByName) {
  const Finished listed = run({"devices"});
  ASSERT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, AllOf(StartsWith("devices\n  cpu"), HasSubstr("\"auto\" stands for")));
  const json devices = run({"devices", "--json"}).json();
  EXPECT_EQ(devices.at("auto"), "cpu");
  EXPECT_EQ(devices.at("devices")[0].at("device"), "cpu");
  EXPECT_GT(devices.at("devices")[0].at("memory_bytes").get<std::int64_t>(), 0);

  ASSERT_EQ(run({"run", "points.json", "--quiet", "--device", "cpu"}).code, 0);
  EXPECT_EQ(json::parse(read(only_run() / "workflow.json")).at("resources").at("device"), "cpu");
  EXPECT_EQ(run({"evaluate", only_run().string(), "points.csv", "--device", "cpu"}).code, 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "points.json"},
        {"check", "points.json"},
        {"evaluate", only_run().string(), "points.csv"},
        {"predict", only_run().string(), "points.csv", "-o", "out.csv"}}) {
    std::vector<std::string> line = words;
    line.insert(line.end(), {"--device", "abacus"});
    const Finished refused = run(line);
    EXPECT_EQ(refused.code, 3) << words[0] << refused.err;
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr("/resources/device"), HasSubstr("\"abacus\""), HasSubstr("cpu")));
  }
}

TEST_F(TrainingCommands, QuietPrintsNothing) {
  const Finished done = run({"run", "points.json", "--quiet"});

  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.out + done.err, "");
}

TEST_F(TrainingCommands, JsonPrintsOneObject) {
  const Finished done = run({"run", "points.json", "--json"});

  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(done.json()["folder"], only_run().string());
  EXPECT_EQ(done.json()["result"], json::parse(read(only_run() / "result.json")));
}

TEST_F(TrainingCommands, PipedOutputHasNoEscapeCodes) {
  const Finished done = run({"run", "points.json"});

  EXPECT_THAT(done.out, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\r"))));
}

TEST_F(TrainingCommands, ATerminalSeesOneLineThatMoves) {
  if (!terminals_exist())
    GTEST_SKIP() << "this machine gives the test no terminal";
  given_document(400);

  const Finished done = run_on_terminal({"run", "points.json"});

  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("\repoch "));
  EXPECT_THAT(done.out, HasSubstr("\x1b[K"));
  for (std::string line : lines_of(done.out)) {
    // What is written before a carriage return is overwritten.
    for (std::size_t at = line.find("\x1b["); at != std::string::npos; at = line.find("\x1b["))
      line.erase(at, line.find_first_of("mK", at) + 1 - at);
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, '\r');)
      EXPECT_LE(std::count_if(part.begin(), part.end(), [](char c) { return (c & 0xC0) != 0x80; }),
                folder().string().size() + 100)
          << part;
  }
}

TEST_F(TrainingCommands, ADocumentsProblemsEndARunBeforeItsFolderIsMade) {
  const Finished failed = run({"run", "points.json", "--set", "training.epochs=0"});

  EXPECT_EQ(failed.code, 3);
  EXPECT_THAT(failed.err, HasSubstr("/training/epochs: must be >= 1, got 0"));
  EXPECT_FALSE(fs::exists(folder() / "runs"));
}

TEST_F(TrainingCommands, ProblemsWithDataHaveTheirOwnExitCode) {
  write("points.csv", "x,y,class\n1,2,blue\n1,red\n");

  const Finished failed = run({"run", "points.json"});

  EXPECT_EQ(failed.code, 5);
  EXPECT_THAT(failed.err, AllOf(StartsWith("workflow-runner: "), HasSubstr("points.csv:3")));
}

TEST_F(TrainingCommands, ALossThatIsNotANumberHasItsOwnExitCode) {
  const Finished failed = run({"run", "points.json", "--json", "--set", "optimizer.use=sgd",
                               "--set", "optimizer.learning_rate=1e30"});

  EXPECT_EQ(failed.code, 6) << failed.out;
  EXPECT_EQ(failed.json()["error"]["kind"], "training");
  EXPECT_THAT(failed.json()["error"]["message"].get<std::string>(), HasSubstr("epoch"));
}

TEST_F(TrainingCommands, AFolderThatCannotBeMadeHasItsOwnExitCode) {
  write("runs", "a file in the way");

  const Finished failed = run({"run", "points.json"});

  EXPECT_EQ(failed.code, 7);
  EXPECT_THAT(failed.err, HasSubstr("--output"));
}

TEST_F(TrainingCommands, CrossValidationReportsMeanAndDeviation) {
  given_document(3, {{"validation", {{"use", "k_fold"}, {"folds", 3}}}});

  const Finished done = run({"run", "points.json"});

  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("\nfold-2: 3 epochs"));
  EXPECT_THAT(done.out, HasSubstr("Result (mean ± deviation over 3 folds)"));
  const json result = json::parse(read(only_run() / "result.json"));
  EXPECT_EQ(result["fold_results"].size(), 3U);
  EXPECT_TRUE(result["mean_metrics"].contains("accuracy"));
  EXPECT_TRUE(result["std_metrics"].contains("accuracy"));
}

TEST_F(TrainingCommands, EvaluateMeasuresTheModel) {
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);

  const Finished evaluated = run({"evaluate", only_run().string(), "points.csv"});

  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.out, AllOf(StartsWith("Result (on 60 rows)\n"), HasSubstr("accuracy")));
  const json answer = run({"evaluate", only_run().string(), "points.csv", "--json"}).json();
  EXPECT_EQ(answer.at("sample_count"), 60);
  EXPECT_GE(answer.at("metrics").at("accuracy").get<double>(), 0.5);
}

TEST_F(TrainingCommands, EvaluateExplainsTheModel) {
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);

  const Finished own = run({"evaluate", only_run().string(), "--explain"});
  ASSERT_EQ(own.code, 0) << own.err;
  EXPECT_THAT(own.out, AllOf(StartsWith("Reasons\n"), HasSubstr("not trained on"),
                             HasSubstr("when a column is permuted)"), HasSubstr("Worst rows")));
  const json given =
      run({"evaluate", only_run().string(), "points.csv", "--explain", "--json"}).json();
  EXPECT_EQ(given.at("sample_count"), 60);
  EXPECT_TRUE(given.at("reasons").at("targets").front().contains("importance"));
  const Finished none = run({"evaluate", only_run().string()});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("evaluate takes a file with targets; without one, --explain"));
}

TEST_F(TrainingCommands, TuneWritesThePointsThatASearchBeginsWith) {
  const json search{{"trials", 5},
                    {"tuner", "random"},
                    {"space", {{"optimizer.learning_rate", {{"log_uniform", {1e-3, 1e-1}}}}}}};
  given_document(1, {{"search", search}});
  const Finished done =
      run({"tune", "points.json", "--points-only", "first.json", "--trials", "3"});

  ASSERT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out,
            "3 points are in first.json; a search begins with them with \"initial\": "
            "\"first.json\"\n");
  EXPECT_FALSE(fs::exists(folder() / "runs")) << "nothing is trained";
  const json points = json::parse(read("first.json"));
  ASSERT_EQ(points.size(), 3);
  EXPECT_THAT(points[0].at("description").get<std::string>(), StartsWith("learning_rate=0.0"));
  EXPECT_EQ(json::parse(run({"tune", "points.json", "--points-only", "-", "--trials", "3"}).out),
            points);

  ASSERT_EQ(run({"tune", "points.json", "--quiet", "--set", "search.initial=first.json"}).code, 0);
  const json result = json::parse(read(only_run() / "result.json"));
  const json& trials = result.at("search").at("trials");
  ASSERT_EQ(trials.size(), 5);
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(trials[i].at("params").at("optimizer.learning_rate"),
              points[i].at("optimizer.learning_rate"));
  }
  EXPECT_THAT(run({"tune", "--resume", "runs", "--points-only", "x.json"}).err,
              HasSubstr("--points-only is about a new search; leave --join and --resume out"));
}

TEST_F(TrainingCommands, TuneOfAStudyThatHasEndedSaysSoAndHowToGoOn) {
  const json search{{"trials", 2},
                    {"tuner", "random"},
                    {"storage", {{"use", "journal"}, {"location", "study.jsonl"}}},
                    {"space", {{"optimizer.learning_rate", {{"log_uniform", {1e-3, 1e-1}}}}}}};
  given_document(1, {{"search", search}});
  const std::string told = "had ended before; these are its trials";
  EXPECT_THAT(run({"tune", "points.json", "-o", "first"}).out, Not(HasSubstr(told)));

  const Finished again = run({"tune", "points.json", "-o", "second"});

  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("note: search: the study \"points\" in journal:"),
                               HasSubstr("study.jsonl " + told), HasSubstr("search.study=NAME")));
  const std::string folder = fs::directory_iterator(this->folder() / "second")->path();
  const Finished more = run({"tune", "--resume", folder, "--add-trials", "1"});
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_THAT(more.out, AllOf(HasSubstr("trial 2: "), Not(HasSubstr(told))));
  EXPECT_THAT(run({"tune", "points.json", "-o", "third", "--set", "search.study=other"}).out,
              Not(HasSubstr(told)));
}

TEST_F(TrainingCommands, CheckNotesAPrunerThatCannotPrune) {
  const json search{{"trials", 2},
                    {"pruner", {{"use", "asha"}, {"min_resource", 3}}},
                    {"space", {{"optimizer.learning_rate", {{"log_uniform", {1e-3, 1e-1}}}}}}};
  given_document(3, {{"search", search}});
  const std::string told = "note: search: the pruner \"asha\" never ends a trial early";

  EXPECT_THAT(run({"check", "points.json"}).out, HasSubstr(told));
  EXPECT_THAT(run({"check", "points.json", "--dry-run"}).out, HasSubstr(told));
  EXPECT_EQ(run({"check", "points.json", "--json"}).json().at("notes").size(), 1);
  EXPECT_EQ(run({"check", "points.json", "--dry-run", "--json"}).json().at("notes").size(), 1);
  EXPECT_EQ(run({"check", "points.json", "--set", "training.epochs=4"}).out,
            "points.json: no problems found\n");
}

TEST_F(TrainingCommands, JoinRefusesAStorageThatIsNotThereAndMakesNone) {
  const std::string there = run({"plugins", "list", "storage"}).out;
  for (const std::string storage : {"sqlite", "journal"}) {
    if (there.find(storage) == std::string::npos)
      continue;  // built without SQLite
    const Finished joined = run({"tune", "--join", storage + ":nothing"});
    EXPECT_EQ(joined.code, 2);
    EXPECT_THAT(joined.err, HasSubstr("--join: no such file: nothing; "));
    EXPECT_FALSE(fs::exists(folder() / "nothing")) << storage;
  }
}

TEST_F(TrainingCommands, GenerateWritesThePromptAndWhatFollowsIt) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += "abcd";
  write("text.txt", text);
  write("text.json", R"({
  "treadle": 1, "name": "text",
  "data": {"use": "text", "path": "text.txt", "tokenizer": "characters"},
  "sequence": {"use": "packed", "length": 8, "stride": 1},
  "validation": {"use": "consecutive", "validation_size": 0.2},
  "model": {"use": "flow", "flow": [{"use": "embedding", "embedding_dim": 8}, "head"]},
  "optimizer": {"use": "adam", "learning_rate": 0.1},
  "training": {"use": "standard", "epochs": 5}})");
  ASSERT_EQ(run({"run", "text.json", "--quiet"}).code, 0);
  const std::string folder = only_run().string();

  const Finished written =
      run({"generate", folder, "--prompt", "bc", "--temperature", "0", "--max-new-tokens", "5"});

  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(written.out, "bcdabcd");
  const json answer =
      run({"generate", folder, "-p", "a", "-t", "0", "--stop", "da", "--json"}).json();
  EXPECT_EQ(answer.at("text"), "bc");
  EXPECT_EQ(answer.at("ended_by"), "stop_string");
  EXPECT_EQ(answer.at("used_cache"), false) << "its layers look at one position";
  const Finished hot = run({"generate", folder, "-p", "a", "--temperature", "hot"});
  EXPECT_EQ(hot.code, 2);
  EXPECT_THAT(hot.err, HasSubstr("--temperature: expected a number, got \"hot\""));
  EXPECT_THAT(run({"generate", folder, "-p", "xyz"}).err, HasSubstr("byte 0"));
  EXPECT_THAT(run({"generate", folder}).err, HasSubstr("the prompt is empty"));
}

TEST_F(TrainingCommands, PredictMatchesColumnsByNameAndNeedsNoTarget) {
  ASSERT_EQ(run({"run", "points.json", "--quiet", "--set", "training.epochs=20"}).code, 0);
  write("new.csv", "y,comment,x\n3,left,-18\n4,right,25\n");

  const Finished predicted = run({"predict", only_run().string(), "new.csv", "-o", "out.csv"});

  ASSERT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_EQ(predicted.out, "2 rows predicted, in out.csv\n");
  const std::vector<std::string> lines = lines_of(read("out.csv"));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "row,predicted,p(blue),p(red)");
  EXPECT_THAT(lines[1], HasSubstr(",blue,"));
  EXPECT_THAT(lines[2], HasSubstr(",red,"));
}

TEST_F(TrainingCommands, PredictDrawsSamplesOfADistribution) {
  write("hours.csv", "x,y\n1,3\n2,5\n3,6\n4,9\n5,11\n6,12\n7,15\n8,16\n9,18\n10,21\n");
  write("hours.json", R"({"treadle": 1, "name": "hours",
    "data": {"use": "csv", "path": "hours.csv", "target": "y", "task": "regression"},
    "model": "linear", "loss": "gaussian_nll", "training": {"epochs": 2}})");
  ASSERT_EQ(run({"run", "hours.json", "--quiet"}).code, 0);
  const std::string trained = only_run().string();
  const auto predicted = [&](const std::string& output, std::vector<std::string> more) {
    more.insert(more.begin(), {"predict", trained, "hours.csv", "-o", output});
    return run(more);
  };

  ASSERT_EQ(predicted("three.csv", {"--samples", "3", "--seed", "4"}).code, 0);

  EXPECT_THAT(read("three.csv"),
              StartsWith("row,y,y.q0.1,y.q0.5,y.q0.9,y.sample_0,y.sample_1,y.sample_2\n0,"));
  ASSERT_EQ(predicted("again.csv", {"--samples", "3", "-s", "4"}).code, 0);
  EXPECT_EQ(read("again.csv"), read("three.csv"));
  ASSERT_EQ(predicted("other.csv", {"--samples", "3"}).code, 0);
  EXPECT_NE(read("other.csv"), read("three.csv"));
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"--seed", "4"}, "there are none without --samples"},
      {{"--samples", "0"}, "--samples is the number of samples to draw for each row, at least 1"},
      {{"--samples", "many"}, "--samples: expected a whole number, got \"many\""},
      {{"--samples", "3", "--seed", "-1"}, "--seed: expected a whole number from 0 on"},
      {{"--samples", "100001"}, "the number of samples is from 1 to 100000"}};
  for (const auto& [options, sentence] : mistakes) {
    const Finished refused = predicted("none.csv", options);
    EXPECT_EQ(refused.code, 2) << sentence;
    EXPECT_THAT(refused.err, HasSubstr(sentence));
    EXPECT_FALSE(fs::exists(folder() / "none.csv"));
  }
}

TEST_F(TrainingCommands, PredictTellsAnUncertaintyOfPassesWithDropout) {
  ASSERT_EQ(run({"run", "points.json", "--quiet", "--set",
                 R"(model={"use": "mlp", "hidden": [8], "dropout": 0.5})"})
                .code,
            0);
  const std::string trained = only_run().string();
  const auto predicted = [&](const std::string& output, std::vector<std::string> more) {
    more.insert(more.begin(), {"predict", trained, "points.csv", "-o", output});
    return run(more);
  };

  ASSERT_EQ(predicted("passes.csv", {"--mc-dropout", "5", "--seed", "4"}).code, 0);

  EXPECT_THAT(read("passes.csv"), HasSubstr(",total,aleatoric,epistemic\n0,"));
  ASSERT_EQ(predicted("again.csv", {"--mc-dropout", "5", "-s", "4", "--uncertainty"}).code, 0);
  EXPECT_EQ(read("again.csv"), read("passes.csv"));
  ASSERT_EQ(predicted("other.csv", {"--mc-dropout", "5"}).code, 0);
  EXPECT_NE(read("other.csv"), read("passes.csv"));
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"--uncertainty"}, "predict with passes of Monte Carlo dropout"},
      {{"--uncertainty", "--seed", "4"}, "there are none without --samples or --mc-dropout"},
      {{"--mc-dropout", "1"}, "--mc-dropout is the number of passes, at least 2"},
      {{"--mc-dropout", "few"}, "--mc-dropout: expected a whole number, got \"few\""},
      {{"--mc-dropout", "10001"}, "the number of passes with dropout is from 2 to 10000"}};
  for (const auto& [options, sentence] : mistakes) {
    const Finished refused = predicted("none.csv", options);
    EXPECT_EQ(refused.code, 2) << sentence;
    EXPECT_THAT(refused.err, HasSubstr(sentence));
    EXPECT_FALSE(fs::exists(folder() / "none.csv"));
  }
}

TEST_F(TrainingCommands, SamplesOfAModelWithoutADistributionAreAUsageError) {
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);

  const Finished refused =
      run({"predict", only_run().string(), "points.csv", "-o", "none.csv", "--samples", "3"});

  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("is predicted by loss \"cross_entropy\""));
  EXPECT_THAT(refused.err, HasSubstr("train with gaussian_nll"));
}

TEST_F(TrainingCommands, TrainARunFurther) {
  ASSERT_EQ(run({"run", "points.json", "--quiet", "--set", "training.epochs=2"}).code, 0);
  const std::string first = only_run().string();

  const Finished further =
      run({"run", "--from", first, "--set", "training.epochs=3", "--output", "further", "--json"});

  ASSERT_EQ(further.code, 0) << further.err;
  const auto outcome = nlohmann::json::parse(further.out);
  EXPECT_EQ(outcome.at("result").at("total_epochs"), 3);
  EXPECT_EQ(outcome.at("result").at("environment").at("from").at("run"),
            fs::absolute(folder() / first).lexically_normal().string());
  const Finished refused = run({"run", "--from", first, "--set", "seed=99"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("/seed"));
  EXPECT_EQ(run({"run", "points.json", "--from", first}).code, 2);
}

TEST_F(TrainingCommands, PredictKeepsTheColumnsItIsTold) {
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);
  const std::string trained = only_run().string();
  write("new.csv", "id,y,comment,x\n007,3,\"left, below\",-18\n008,4,,25\n");

  const Finished predicted =
      run({"predict", trained, "new.csv", "-o", "out.csv", "--keep", "id,comment", "--keep", "x"});

  ASSERT_EQ(predicted.code, 0) << predicted.err;
  const std::vector<std::string> lines = lines_of(read("out.csv"));
  EXPECT_EQ(lines.at(0), "row,id,comment,x,predicted,p(blue),p(red)");
  EXPECT_THAT(lines.at(1), StartsWith("0,007,\"left, below\",-18,"));
  EXPECT_THAT(lines.at(2), StartsWith("1,008,,25,"));
  const Finished wrong = run({"predict", trained, "new.csv", "-o", "none.csv", "--keep", "ident"});
  EXPECT_EQ(wrong.code, 5);
  EXPECT_THAT(wrong.err, HasSubstr("new.csv: no column \"ident\" to keep; the columns are "
                                   "\"id\", \"y\", \"comment\", \"x\""));
  EXPECT_FALSE(fs::exists(folder() / "none.csv"));

  write("quoted.csv", "y,x,\"size, in \"\"m\"\"\"\n3,-18,tall\n");
  ASSERT_EQ(run({"predict", trained, "quoted.csv", "-o", "quoted.out", "--keep",
                 "\"size, in \"\"m\"\"\",x"})
                .code,
            0);
  EXPECT_THAT(read("quoted.out"),
              StartsWith("row,\"size, in \"\"m\"\"\",x,predicted,p(blue),p(red)\n0,tall,-18,"));
  const Finished unclosed =
      run({"predict", trained, "quoted.csv", "-o", "none.csv", "--keep", "\"size, in m"});
  EXPECT_EQ(unclosed.code, 2);
  EXPECT_THAT(unclosed.err, HasSubstr("closing quote"));

  write("rated.csv", "predicted,x,y\nred,1,2\n");
  ASSERT_EQ(run({"predict", trained, "rated.csv", "-o", "both.csv", "--keep", "predicted"}).code,
            0);
  EXPECT_THAT(read("both.csv"),
              StartsWith("row,predicted (data),predicted,p(blue),p(red)\n0,red,"));
}

TEST_F(TrainingCommands, AnExportedModelStandsForItsRun) {
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);
  const std::string trained = only_run().string();
  ASSERT_EQ(run({"predict", trained, "points.csv", "-o", "by-run.csv"}).code, 0);

  const Finished foreign = run({"runs", "export", trained, "-o", "points.onnx"});
  EXPECT_EQ(foreign.code, 2);
  EXPECT_THAT(foreign.err, HasSubstr("name it \"points.safetensors\""));
  EXPECT_FALSE(fs::exists(folder() / "points.onnx"));
  const Finished exported = run({"runs", "export", trained, "-o", "points.safetensors"});

  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_EQ(exported.out,
            "the model is in points.safetensors; to use it: workflow-runner predict "
            "points.safetensors DATA -o OUT\n");
  fs::remove_all(trained);
  ASSERT_EQ(run({"predict", "points.safetensors", "points.csv", "-o", "by-file.csv"}).code, 0);
  EXPECT_EQ(read("by-file.csv"), read("by-run.csv"));
  EXPECT_EQ(
      run({"evaluate", "points.safetensors", "points.csv", "--json"}).json().at("sample_count"),
      60);
  const Finished wrong = run({"predict", "points.csv", "points.csv", "-o", "out.csv"});
  EXPECT_EQ(wrong.code, 7);
  EXPECT_THAT(wrong.err, HasSubstr("points.csv: not a valid safetensors file: "));
}

TEST_F(TrainingCommands, AnExportedModelIsInTheDtypeAskedFor) {
  // Wide, and so little trained that its probabilities are not yet 0 and 1.
  given_document(1, {{"model", {{"use", "mlp"}, {"hidden", {512, 512}}}},
                     {"optimizer", {{"use", "adamw"}, {"learning_rate", 1e-4}}}});
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);
  const std::string trained = only_run().string();
  ASSERT_EQ(run({"predict", trained, "points.csv", "-o", "by-run.csv"}).code, 0);
  ASSERT_EQ(run({"runs", "export", trained, "-o", "float32", "--dtype", "float32"}).code, 0);
  struct Stored {
    const char* dtype;
    const char* in_file;
    double share;     // of the size in float32, at most
    double distance;  // of probabilities, at most
  };
  for (const Stored& stored :
       {Stored{"float32", "F32", 1, 0}, Stored{"bfloat16", "BF16", 0.52, 0.002},
        Stored{"float16", "F16", 0.52, 0.0002}, Stored{"int8", "I8", 0.3, 0.005}}) {
    const std::string file = stored.dtype;
    const Finished exported = run({"runs", "export", trained, "-o", file, "--dtype", stored.dtype});
    ASSERT_EQ(exported.code, 0) << exported.err;
    EXPECT_THAT(read(file), HasSubstr(R"("dtype":")" + std::string(stored.in_file) + '"'));
    EXPECT_LE(static_cast<double>(fs::file_size(folder() / file)),
              stored.share * static_cast<double>(fs::file_size(folder() / "float32")))
        << stored.dtype;

    ASSERT_EQ(run({"predict", file, "points.csv", "-o", "by-file.csv"}).code, 0);
    const std::vector<std::string> expected = lines_of(read("by-run.csv"));
    const std::vector<std::string> rows = lines_of(read("by-file.csv"));
    ASSERT_EQ(rows.size(), expected.size());
    double furthest = 0;
    for (std::size_t row = 1; row < rows.size(); ++row) {
      const auto probability = [](const std::string& line) {
        return std::stod(line.substr(line.rfind(',') + 1));
      };
      furthest = std::max(furthest, std::abs(probability(rows[row]) - probability(expected[row])));
    }
    EXPECT_LE(furthest, stored.distance) << stored.dtype;
    EXPECT_EQ(furthest > 0, stored.distance > 0) << stored.dtype << ": other weights";
    RecordProperty(stored.dtype, std::to_string(furthest * 1e6));
    EXPECT_EQ(run({"evaluate", file, "points.csv", "--json"}).json().at("sample_count"), 60);
  }

  ASSERT_EQ(
      run({"run", "points.json", "--quiet", "-o", "more", "--set", "model.weights.path=int8"}).code,
      0);
  const Finished unknown = run({"runs", "export", trained, "-o", "none", "--dtype", "float8"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--dtype: expected float32, bfloat16, float16, int8, got "
                                     "\"float8\""));
  EXPECT_FALSE(fs::exists(folder() / "none"));
}

// Whether the device has it, and how fast, is found out without data, too.
TEST_F(TrainingCommands, CheckSaysOfAPrecisionWhatADryRunSays) {
  for (const std::string precision : {"bf16", "bf16-mixed", "fp16-mixed"}) {
    const std::vector<std::string> command{
        "check", "points.json", "--set", "precision=" + precision, "--device", "cpu"};
    std::vector<std::string> with_data = command;
    with_data.insert(with_data.end(), {"--dry-run", "--json"});
    const Finished dry = run(with_data);
    const Finished checked = run(command);

    EXPECT_EQ(checked.code, dry.code) << precision << checked.err;
    if (dry.code != 0) {
      EXPECT_THAT(checked.err, AllOf(HasSubstr("/precision"), HasSubstr("bf16-mixed")));
      continue;
    }
    const bool is_slow = dry.out.find("slower than one in float32") != std::string::npos;
    EXPECT_EQ(checked.out.find("note: precision: ") != std::string::npos, is_slow) << checked.out;
    EXPECT_THAT(checked.out, HasSubstr("points.json: no problems found\n"));
  }
}

TEST_F(TrainingCommands, PredictWritesTheDigitsOfTheRunsPrecision) {
  const auto longest_number = [&](const std::string& precision) {
    EXPECT_EQ(
        run({"run", "points.json", "--quiet", "-o", precision, "--set", "precision=" + precision})
            .code,
        0);
    const fs::path trained = fs::directory_iterator(folder() / precision)->path();
    EXPECT_EQ(run({"predict", trained.string(), "points.csv", "-o", precision + ".csv"}).code, 0);
    std::size_t longest = 0;
    for (const std::string& line : lines_of(read(precision + ".csv")))
      longest = std::max(longest, line.size() - line.rfind(',') - 1);
    return longest;
  };

  // At most nine digits tell float32 numbers apart; few of sixty float64 numbers need less than
  // fifteen.
  EXPECT_LE(longest_number("float32"), 15U);
  EXPECT_GE(longest_number("float64"), 17U);
}

TEST_F(TrainingCommands, CheckWithDataSaysWhatItFound) {
  const Finished checked = run({"check", "points.json", "--dry-run"});

  ASSERT_EQ(checked.code, 0) << checked.err;
  EXPECT_THAT(checked.out, StartsWith("points.json: no problems found"));
  EXPECT_THAT(checked.out, HasSubstr("rows: 60"));
  EXPECT_THAT(checked.out, HasSubstr("\nmemory: about "));
  EXPECT_FALSE(fs::exists(folder() / "runs"));
  const json answer = run({"check", "points.json", "--dry-run", "--json"}).json();
  EXPECT_EQ(answer.at("data").at("rows"), 60);
  EXPECT_GT(answer.at("estimated_bytes"), 0);
}

TEST_F(TrainingCommands, GraphIsGraphvizSource) {
  const Finished graph = run({"graph", "points.json"});

  EXPECT_EQ(graph.code, 0) << graph.err;
  EXPECT_THAT(graph.out, AllOf(StartsWith("digraph"), HasSubstr("->")));
}

TEST_F(TrainingCommands, GraphDrawsAndListsTheModel) {
  write("flow.json", R"({"treadle": 1, "data": "moons", "model": {"use": "flow", "flow": [
    {"use": "dense", "out_features": 3, "tag": "wide"}, "relu", "head"]}})");

  EXPECT_THAT(run({"graph", "flow.json", "--model"}).out,
              AllOf(StartsWith("digraph"), HasSubstr("dense_0\\n[B, 3]\\n9\\n#wide")));
  EXPECT_EQ(run({"graph", "flow.json", "--model", "--table"}).out,
            "node           layer  gives   parameters  bytes  FLOPs\n"
            "input          input  [B, 2]                  8\n"
            "dense_0 #wide  dense  [B, 3]           9     12     12\n"
            "relu_0         relu   [B, 3]                 12\n"
            "head_0         head   [B, 2]           8      8     12\n"
            "17 parameters; for a row, 40 bytes of values and 24 FLOPs\n");
  const json table = run({"graph", "flow.json", "--model", "--table", "--json"}).json();
  EXPECT_EQ(table.at("parameters"), 17);
  EXPECT_EQ(table.at("nodes").at(1), json::parse(R"({
    "id": "dense_0", "type": "dense", "kind": "layer", "level": 1, "tags": ["wide"],
    "parameters": 9, "frozen": false, "shape": [null, 3], "dtype": "float32",
    "attributes": {"bias": true, "init": "pytorch", "out_features": 3}, "bytes": 12, "FLOPs": 12,
    "inputs": [{"id": "input", "port": "input", "kind": "stream"}]})"));
  EXPECT_THAT(run({"graph", "flow.json", "--model", "--plan"}).out,
              AllOf(StartsWith("step  operation"), HasSubstr("linear_gradient"),
                    HasSubstr("bytes of memory for values; without sharing")));
  EXPECT_THAT(run({"graph", "flow.json", "--model", "--plan", "--inference"}).out,
              AllOf(HasSubstr("linear"), Not(HasSubstr("linear_gradient"))));
  EXPECT_THAT(run({"graph", "flow.json", "--model", "--inference"}).err, HasSubstr("add --plan"));
  EXPECT_THAT(run({"graph", "points.json", "--model"}).out, StartsWith("digraph"))
      << "a ready-made network is a flow, too";
  EXPECT_THAT(run({"graph", "flow.json", "--table"}).err, HasSubstr("add --model"));
}

/// It is read several times, also by the program that takes the process over.
TEST_F(TrainingCommands, ADocumentMayComeThroughAPipe) {
  given_document(2);
  const std::string document = read(folder() / "points.json");
  ASSERT_EQ(mkfifo((folder() / "pipe").c_str(), 0600), 0);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"check", "pipe"}, {"check", "pipe", "--dry-run"}, {"run", "pipe", "--quiet"}}) {
    std::thread writer([&] { std::ofstream(folder() / "pipe") << document; });

    const Finished finished = run(words);

    writer.join();
    EXPECT_EQ(finished.code, 0) << finished.err;
  }
}

TEST_F(TrainingCommands, CtrlCSavesAndSaysHowToGoOn) {
  given_document(3000);
  Running training = start({"run", "points.json"});
  ASSERT_TRUE(training.has_printed("/3000 "));

  training.send(SIGINT);
  const Finished stopped = training.wait();

  EXPECT_EQ(stopped.code, 130);
  EXPECT_THAT(stopped.out, HasSubstr("stopping after this step … (Ctrl-C again to stop at once)"));
  EXPECT_THAT(stopped.err, StartsWith("workflow-runner: stopped "));
  EXPECT_THAT(stopped.err, HasSubstr("the run is saved in " + shown_run() + "\n"));
  EXPECT_THAT(stopped.err, HasSubstr("workflow-runner resume " + shown_run() + "\n"));
  EXPECT_FALSE(fs::exists(only_run() / "result.json"));
}

TEST_F(TrainingCommands, ResumeFinishesWhatCtrlCStopped) {
  given_document(300);
  Running training = start({"run", "points.json"});
  ASSERT_TRUE(training.has_printed("/300 "));
  training.send(SIGTERM);
  ASSERT_EQ(training.wait().code, 130);

  const Finished resumed = run({"resume", only_run().string()});

  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("\nResult "));
  EXPECT_EQ(lines_of(read(only_run() / "history.csv")).size(), 301U);
}

TEST_F(TrainingCommands, ResumeOfAFinishedRunShowsItsResult) {
  ASSERT_EQ(run({"run", "points.json", "--quiet"}).code, 0);

  const Finished resumed = run({"resume", only_run().string(), "--json"});

  EXPECT_EQ(resumed.code, 0);
  EXPECT_EQ(resumed.json()["result"], json::parse(read(only_run() / "result.json")));
}

TEST_F(TrainingCommands, FoldersThatAreNoRunsAreRefusedInOneSentence) {
  fs::create_directory(folder() / "nothing");
  const std::vector<std::vector<std::string>> kCommands{
      {"resume", "nothing"},
      {"evaluate", "nothing", "points.csv"},
      {"predict", "nothing", "points.csv", "-o", "out.csv"}};
  for (const std::vector<std::string>& words : kCommands) {
    const Finished failed = run(words);
    EXPECT_EQ(failed.code, 7) << words.front();
    EXPECT_THAT(failed.err, AllOf(StartsWith("workflow-runner: "), HasSubstr("nothing")));
  }
}

}  // namespace
}  // namespace treadle
