// Stages that take files of each other: what runs, what is taken over, and what may not be written.
#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/run/pipeline.h>
#include <treadle/host/run/predictor.h>
#include <treadle/host/run/run_folder.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using testing::bits_of;
using ::testing::HasSubstr;
using testing::Impatient;
using testing::read_file;
using testing::watching_runtime;
using testing::Workspace;
using Json = nlohmann::json;
namespace fs = std::filesystem;

/// A teacher whose answers to other rows train a student, which is then measured.
Json document_in(const fs::path& folder) {
  const auto write = [&](const std::string& name, int rows, int seed, bool has_target) {
    std::ofstream file(folder / name);
    file << (has_target ? "a,b,y\n" : "a,b\n");
    for (int i = 0; i < rows; ++i) {
      const double a = (i * 37 + seed) % 50 / 25.0 - 1;
      const double b = (i * 11 + seed) % 40 / 20.0 - 1;
      file << a << "," << b;
      if (has_target)
        file << "," << a * b + a;
      file << "\n";
    }
  };
  write("labelled.csv", 60, 1, true);
  write("unlabelled.csv", 80, 3, false);
  write("test.csv", 40, 5, true);
  return Json::parse(R"({
    "treadle": 1, "name": "distil", "seed": 3,
    "data": {"use": "csv", "path": "labelled.csv", "target": "y"},
    "model": {"use": "mlp", "hidden": [8]},
    "optimizer": {"use": "adamw", "learning_rate": 0.02},
    "schedule": "watched",
    "training": {"use": "standard", "epochs": 3, "batch_size": 8},
    "resources": {"workers": 1},
    "stages": {
      "score": {"evaluate": {"model": "stage:student", "data": "test.csv"}},
      "student": {"run": {"model": {"use": "mlp", "hidden": [3]},
        "data": {"path": "stage:answers/predictions.csv", "target": "y", "columns": ["a", "b"]}}},
      "answers": {"predict": {"model": "stage:teacher", "data": "unlabelled.csv", "keep": ["a", "b"]}},
      "teacher": {"run": {}}
    }})");
}

class Pipelines : public ::testing::Test {
 protected:
  Pipelines() { document_ = document_in(workspace_.folder()); }

  Pipeline pipeline() const {
    return Pipeline::read(Document::from_json(document_, workspace_.folder()));
  }
  PipelineOutcome run(const fs::path& from = {}) const {
    return run_pipeline(runtime_, pipeline(), workspace_.options(), from);
  }
  /// Whether each stage was taken over.
  static std::map<std::string, bool> reused(const PipelineOutcome& outcome) {
    std::map<std::string, bool> stages;
    for (const StageResult& stage : outcome.result.stages)
      stages[stage.stage] = stage.reused;
    return stages;
  }
  static fs::path folder_of(const PipelineOutcome& outcome, const std::string& name) {
    for (const StageResult& stage : outcome.result.stages) {
      if (stage.stage == name)
        return stage.folder;
    }
    return {};
  }
  std::string refusal() const {
    try {
      expect_stages(runtime_, pipeline());
    } catch (const DocumentError& error) {
      return error.what();
    }
    return "it was not refused";
  }

  const Runtime runtime_ = watching_runtime();
  const Workspace workspace_;
  Json document_;
};

TEST_F(Pipelines, RunAStageBehindThoseWhoseFilesItTakes) {
  const PipelineOutcome outcome = run();

  std::vector<std::string> order;
  for (const StageResult& stage : outcome.result.stages)
    order.push_back(stage.stage);
  EXPECT_EQ(order, (std::vector<std::string>{"teacher", "answers", "student", "score"}));
  EXPECT_TRUE(fs::exists(folder_of(outcome, "answers") / "predictions.csv"));
  EXPECT_TRUE(fs::exists(folder_of(outcome, "score") / "evaluation.json"));
  EXPECT_TRUE(fs::exists(folder_of(outcome, "student") / "report.html"));
  EXPECT_THAT(pipeline().picture(),
              ::testing::AllOf(HasSubstr("student: train"), HasSubstr("answers: predict")));
}

TEST_F(Pipelines, TakeOverStagesWhoseInputsAreTheSame) {
  const PipelineOutcome first = run();
  document_["stages"]["student"]["run"]["model"]["hidden"] = {4};

  const PipelineOutcome second = run(first.folder);

  EXPECT_EQ(reused(second),
            (std::map<std::string, bool>{
                {"teacher", true}, {"answers", true}, {"student", false}, {"score", false}}));
  EXPECT_EQ(bits_of(folder_of(second, "teacher")), bits_of(folder_of(first, "teacher")));
}

// The name of a file does not identify its content.
TEST_F(Pipelines, RunStagesAgainWhoseDataHasChanged) {
  const PipelineOutcome first = run();
  std::ofstream(workspace_.folder() / "unlabelled.csv", std::ios::app) << "0.5,0.5\n";

  EXPECT_EQ(reused(run(first.folder)),
            (std::map<std::string, bool>{
                {"teacher", true}, {"answers", false}, {"student", false}, {"score", false}}));
}

TEST_F(Pipelines, GoOnToTheSameBitsWhereverTheyWereStopped) {
  const PipelineOutcome whole = run();
  for (const int steps : {3, 20, 40}) {
    const Workspace other;
    RunOptions options = other.options();
    {
      const Impatient impatient(runtime_, steps);
      options.stop = impatient.token();
      EXPECT_THROW(run_pipeline(runtime_, pipeline(), options), Interrupted);
    }
    const fs::path folder = fs::directory_iterator(options.output)->path();
    const PipelineOutcome resumed = resume_pipeline(runtime_, folder, other.options());
    for (const char* stage : {"teacher", "student"})
      EXPECT_EQ(bits_of(folder_of(resumed, stage)), bits_of(folder_of(whole, stage))) << steps;
    EXPECT_EQ(read_file(folder_of(resumed, "answers") / "predictions.csv"),
              read_file(folder_of(whole, "answers") / "predictions.csv"));
  }
}

// The document's paths are relative to its folder, those of the command line to the current one.
TEST_F(Pipelines, MayHaveTheirFolderBesideAnyOther) {
  const Workspace elsewhere;
  RunOptions options = elsewhere.options();
  const fs::path before = fs::current_path();
  fs::current_path(elsewhere.folder());
  options.output = "runs";
  PipelineOutcome outcome;
  try {
    outcome = run_pipeline(runtime_, pipeline(), options);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
  fs::current_path(before);

  EXPECT_TRUE(fs::exists(folder_of(outcome, "score") / "evaluation.json"));
}

TEST_F(Pipelines, MayBeginWithTheUseOfAModel) {
  const PipelineOutcome trained = run();
  document_["stages"] = {
      {"score",
       {{"evaluate", {{"model", folder_of(trained, "teacher").string()}, {"data", "test.csv"}}}}}};

  EXPECT_TRUE(fs::exists(folder_of(run(), "score") / "evaluation.json"));
}

TEST_F(Pipelines, ThatAreFinishedHaveTheirResultWhateverHasChanged) {
  const PipelineOutcome first = run();
  std::ofstream(workspace_.folder() / "labelled.csv", std::ios::app) << "0.5,0.5,0.5\n";

  EXPECT_EQ(to_json(resume_pipeline(runtime_, first.folder).result), to_json(first.result));
}

TEST_F(Pipelines, RunAStageAgainWhoseFilesAreLostOrChanged) {
  const PipelineOutcome first = run();
  const std::string answers = read_file(folder_of(first, "answers") / "predictions.csv");
  fs::remove(folder_of(first, "teacher") / "model.safetensors");
  std::ofstream(folder_of(first, "answers") / "predictions.csv", std::ios::app) << "9,9,9\n";

  const PipelineOutcome second = run(first.folder);

  EXPECT_EQ(reused(second),
            (std::map<std::string, bool>{
                {"teacher", false}, {"answers", false}, {"student", true}, {"score", true}}))
      << "with the same bits, the others are what they were";
  EXPECT_EQ(read_file(folder_of(second, "answers") / "predictions.csv"), answers);
}

TEST_F(Pipelines, TakeOverStagesThatOtherWorkersTrained) {
  const PipelineOutcome first = run();
  document_["resources"]["workers"] = 2;

  for (const auto& [stage, was_taken_over] : reused(run(first.folder)))
    EXPECT_TRUE(was_taken_over) << stage;
}

// As after a message that names the stage's folder.
TEST_F(Pipelines, GoOnWithAStageThatWasResumedAlone) {
  RunOptions options = workspace_.options();
  {
    const Impatient impatient(runtime_, 3);
    options.stop = impatient.token();
    EXPECT_THROW(run_pipeline(runtime_, pipeline(), options), Interrupted);
  }
  const fs::path folder = fs::directory_iterator(options.output)->path();
  fs::path stage;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "stages")) {
    if (entry.is_directory())
      stage = entry.path();
  }
  EXPECT_EQ(folder_to_resume(stage), folder);
  EXPECT_EQ(folder_to_resume(folder), folder);
  resume_run(runtime_, stage);
  const auto trained_at = fs::last_write_time(stage / "model.safetensors");

  const PipelineOutcome outcome = resume_pipeline(runtime_, folder, workspace_.options());

  EXPECT_TRUE(fs::equivalent(folder_of(outcome, "teacher"), stage));
  EXPECT_EQ(fs::last_write_time(stage / "model.safetensors"), trained_at);
}

TEST_F(Pipelines, BelongToOneProcess) {
  const PipelineOutcome outcome = run();
  const RunFolder other = RunFolder::lock(outcome.folder);

  EXPECT_THROW(resume_pipeline(runtime_, outcome.folder), StorageError);
}

TEST_F(Pipelines, SayWhichStageFailedAndHowToGoOn) {
  const fs::path table = workspace_.folder() / "test.csv";
  std::ofstream(table) << "a,b,y\n1,2,three\n";

  try {
    run();
    FAIL() << "a target is no number";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                ::testing::AllOf(HasSubstr("stage score: "), HasSubstr(table.string()),
                                 HasSubstr("workflow-runner resume "), HasSubstr("--reuse ")));
  }
}

TEST_F(Pipelines, RefuseMistakesByTheirPlace) {
  const Json good = document_;
  document_["stages"]["student"]["run"]["data"]["path"] = "stage:answer/predictions.csv";
  EXPECT_THAT(refusal(), ::testing::AllOf(HasSubstr("/stages/student: takes a file of the stage "
                                                    "\"answer\", which does not exist"),
                                          HasSubstr("answers")));
  document_ = good;
  document_["stages"]["teacher"]["run"]["model"] = {{"use", "mlp"},
                                                    {"weights", "stage:student/model.safetensors"}};
  EXPECT_THAT(refusal(), HasSubstr("cycle"));
  document_ = good;
  document_["stages"]["score"]["evaluate"]["modle"] = "x";
  EXPECT_THAT(refusal(), HasSubstr("/stages/score/evaluate/modle: unknown key"));
}

TEST_F(Pipelines, SayWhatAStageCanDo) {
  const std::string kinds = R"("run", "predict", "evaluate")";
  const auto refusal_of = [&](const Json& teacher) {
    document_["stages"]["teacher"] = teacher;
    return refusal();
  };
  EXPECT_THAT(
      refusal_of({{"distil", Json::object()}}),
      HasSubstr("/stages/teacher/distil: a stage cannot \"distil\"; expected one of " + kinds));
  EXPECT_THAT(refusal_of({{"runs", Json::object()}}), HasSubstr("did you mean \"run\"?"));
  EXPECT_THAT(refusal_of({{"run", "train.json"}}),
              HasSubstr("/stages/teacher/run: expected an object, got \"train.json\""));
  const std::string expected =
      "/stages/teacher: expected an object with one key, which is what the stage does (" + kinds +
      "), such as {\"run\": {}}; got ";
  EXPECT_THAT(refusal_of(Json::object()), HasSubstr(expected + "an object"));
  EXPECT_THAT(refusal_of({{"run", Json::object()}, {"seed", 1}}),
              HasSubstr(expected + "an object with run, seed"));
  EXPECT_THAT(refusal_of("run"), HasSubstr(expected + "\"run\" (text)"));
}

/// Three classes of which none is the first by number, by order in the file and by name at once.
void write_classes(const fs::path& file, int rows, int seed, bool has_target) {
  constexpr std::array kKinds{"tin", "iron", "lead"};
  std::ofstream table(file);
  table << (has_target ? "a,b,kind\n" : "a,b\n");
  for (int i = 0; i < rows; ++i) {
    const double a = (i * 37 + seed) % 50 / 25.0 - 1;
    const double b = (i * 11 + seed) % 40 / 20.0 - 1;
    table << a << "," << b;
    if (has_target)
      table << "," << kKinds[a + b > 0.4 ? 0 : a - b > 0 ? 1 : 2];
    table << "\n";
  }
}

/// The fields of a column of a CSV without quotes.
std::vector<std::string> column_of(const fs::path& file, const std::string& name) {
  std::ifstream table(file);
  std::vector<std::string> fields;
  std::size_t place = 0;
  std::string line;
  for (bool is_header = true; std::getline(table, line); is_header = false) {
    std::vector<std::string> row;
    std::istringstream rest(line);
    for (std::string field; std::getline(rest, field, ',');)
      row.push_back(field);
    if (is_header) {
      const auto found = std::find(row.begin(), row.end(), name);
      if (found == row.end())
        return {};
      place = static_cast<std::size_t>(found - row.begin());
    } else {
      fields.push_back(row.at(place));
    }
  }
  return fields;
}

std::string first_line_of(const fs::path& file) {
  std::string line;
  std::ifstream stream(file);
  std::getline(stream, line);
  return line;
}

class DistilledClassifiers : public Pipelines {
 protected:
  DistilledClassifiers() {
    write_classes(path("labelled.csv"), 120, 1, true);
    write_classes(path("unlabelled.csv"), 150, 3, false);
    write_classes(path("test.csv"), 50, 5, true);
    document_["data"]["target"] = "kind";
    document_["optimizer"]["learning_rate"] = 0.05;
    document_["training"]["epochs"] = 10;
    document_["metrics"] = {"accuracy"};
    document_["stages"]["student"]["run"]["model"]["hidden"] = {6};
    document_["stages"]["student"]["run"]["data"] = {{"path", "stage:answers/predictions.csv"}};
  }
  fs::path path(const std::string& name) const { return workspace_.folder() / name; }
};

// Without "columns" the student has those that the file has beside the target, and no others.
TEST_F(DistilledClassifiers, AreScoredByTheOriginalFile) {
  const PipelineOutcome outcome = run();

  const fs::path answers = folder_of(outcome, "answers") / "predictions.csv";
  EXPECT_EQ(first_line_of(answers), "a,b,kind");
  EXPECT_EQ(first_line_of(folder_of(outcome, "answers") / "distribution.csv"),
            "a,b,p(iron),p(lead),p(tin)");
  const Predictor teacher = Predictor::load(runtime_, folder_of(outcome, "teacher"));
  teacher.predict_file(path("unlabelled.csv"), path("for people.csv"));
  EXPECT_EQ(column_of(answers, "kind"), column_of(path("for people.csv"), "predicted"));

  const Predictor student = Predictor::load(runtime_, folder_of(outcome, "student"));
  EXPECT_EQ(student.class_names(), teacher.class_names());
  student.predict_file(path("test.csv"), path("by student.csv"));
  const std::vector<std::string> predicted = column_of(path("by student.csv"), "predicted");
  const std::vector<std::string> actual = column_of(path("test.csv"), "kind");
  ASSERT_EQ(predicted.size(), 50U);
  const int right = std::inner_product(predicted.begin(), predicted.end(), actual.begin(), 0,
                                       std::plus<>(), std::equal_to<>());
  EXPECT_GT(right, 40);
  const Json score = Json::parse(read_file(folder_of(outcome, "score") / "evaluation.json"));
  EXPECT_NEAR(score.at("metrics").at("accuracy").get<double>(), right / 50.0, 1e-9);
}

// The median is the prediction itself.
TEST_F(Pipelines, LeaveTargetsAsDataHasThem) {
  document_["loss"] = {{"use", "quantile"}, {"quantiles", {0.1, 0.5, 0.9}}};
  const PipelineOutcome outcome = run();

  const fs::path answers = folder_of(outcome, "answers");
  EXPECT_EQ(first_line_of(answers / "predictions.csv"), "a,b,y");
  EXPECT_EQ(first_line_of(answers / "distribution.csv"), "a,b,y.q0.1,y.q0.9");
}

TEST_F(Pipelines, LeaveNoFileOfADistributionThatTheModelHasNot) {
  const PipelineOutcome outcome = run();

  EXPECT_EQ(first_line_of(folder_of(outcome, "answers") / "predictions.csv"), "a,b,y");
  EXPECT_FALSE(fs::exists(folder_of(outcome, "answers") / "distribution.csv"));
}

/// The lines of the error that a document of a pipeline is refused with.
std::string refusal_of_text(const Runtime& runtime, const std::string& text) {
  try {
    Pipeline::read(Document::parse(text, "my.json"), runtime);
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "it was not refused";
}

TEST_F(Pipelines, ListEveryProblemOfEveryStageByItsLine) {
  EXPECT_EQ(
      refusal_of_text(runtime_, R"({
  "treadle": 1, "name": "two", "data": "moons", "model": "mlp",
  "optimizer": {"use": "adamw",
    "weight_dcay": 1},
  "seed": -3,
  "stages": {
    "a": {"run": {"optimizer": {
      "learning_rat": 0.1}}},
    "b": {"run": {
      "model": {"use": "mlp", "hiden": [3]}}},
    "c": {"evaluate": {"model": "stage:a", "data": "x.csv",
      "keep": []}},
    "d": {"run": {"training": {"use": "standard",
      "epochs": 0}}}
  }})"),
      "my.json:4: /optimizer/weight_dcay: unknown key \"weight_dcay\"; did you mean "
      "\"weight_decay\"? (optimizer adamw takes: betas, eps, groups, learning_rate, "
      "weight_decay)\n"
      "my.json:5: /seed: must be >= 0, got -3\n"
      "my.json:8: /stages/a/run/optimizer/learning_rat: unknown key \"learning_rat\"; did you "
      "mean \"learning_rate\"? (optimizer adamw takes: betas, eps, groups, learning_rate, "
      "weight_decay)\n"
      "my.json:10: /stages/b/run/model/hiden: unknown key \"hiden\"; did you mean "
      "\"hidden\"? (model mlp takes: activation, dropout, execution, hidden, norm, "
      "recompute_layers, weights)\n"
      "my.json:11: /stages/c/evaluate/data: " +
          (fs::current_path() / "x.csv").string() +
          ": no such file\n"
          "my.json:12: /stages/c/evaluate/keep: unknown key; expected \"model\", "
          "\"data\"\n"
          "my.json:14: /stages/d/run/training/epochs: must be >= 1, got 0");
}

TEST_F(Pipelines, FindFilesThatNobodyMakesBeforeAnythingRuns) {
  const auto refusal_with = [&](const char* stage, const char* does, const char* key,
                                const std::string& path) {
    Json document = document_;
    document["stages"][stage][does][key] = path;
    try {
      Pipeline::read(Document::from_json(document, workspace_.folder()), runtime_);
    } catch (const DocumentError& error) {
      return std::string(error.what());
    }
    return std::string("it was not refused");
  };
  EXPECT_THAT(refusal_with("score", "evaluate", "data", "nowhere.csv"),
              ::testing::AllOf(HasSubstr("/stages/score/evaluate/data: "),
                               HasSubstr("nowhere.csv: no such file")));
  EXPECT_THAT(refusal_with("score", "evaluate", "model", "stage:answers"),
              HasSubstr("/stages/score: takes \"stage:answers\", but the stage \"answers\" leaves "
                        "predictions.csv, distribution.csv"));
  EXPECT_THAT(refusal_with("score", "evaluate", "data", "stage:answers/predictons.csv"),
              HasSubstr("but the stage \"answers\" leaves"));
}

// The key is right in the other stage.
TEST_F(Pipelines, NameTheStageForWhichASharedKeyIsWrong) {
  EXPECT_EQ(refusal_of_text(runtime_, R"({
  "treadle": 1, "name": "two", "data": "moons", "model": "mlp",
  "optimizer": "adamw", "training": "standard",
  "validation": {"fraction": 0.2},
  "stages": {
    "a": {"run": {}},
    "b": {"run": {"training": {"use": "prequential", "window": 64, "batch_size": 32}}}
  }})"),
            "my.json:4: /validation: stage b: \"prequential\" evaluates each batch before it "
            "trains on it and has no validation rows; leave \"validation\" out");
}

}  // namespace
}  // namespace treadle
