// Stages that take files of each other: what runs, what is taken over, and what may not be written.
#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/host/run/pipeline.h>

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
  RunOutcome run(const fs::path& from = {}) const {
    return run_pipeline(runtime_, pipeline(), workspace_.options(), from);
  }
  /// Whether each stage was taken over.
  static std::map<std::string, bool> reused(const RunOutcome& outcome) {
    std::map<std::string, bool> stages;
    for (const Json& stage : outcome.result.at("stages"))
      stages[stage.at("stage")] = stage.at("reused").get<bool>();
    return stages;
  }
  static fs::path folder_of(const RunOutcome& outcome, const std::string& name) {
    for (const Json& stage : outcome.result.at("stages")) {
      if (stage.at("stage") == name)
        return stage.at("folder").get<std::string>();
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
  const RunOutcome outcome = run();

  std::vector<std::string> order;
  for (const Json& stage : outcome.result.at("stages"))
    order.push_back(stage.at("stage"));
  EXPECT_EQ(order, (std::vector<std::string>{"teacher", "answers", "student", "score"}));
  EXPECT_TRUE(fs::exists(folder_of(outcome, "answers") / "predictions.csv"));
  EXPECT_TRUE(fs::exists(folder_of(outcome, "score") / "evaluation.json"));
  EXPECT_TRUE(fs::exists(folder_of(outcome, "student") / "report.html"));
  EXPECT_THAT(pipeline().picture(),
              ::testing::AllOf(HasSubstr("student: train"), HasSubstr("answers: predict")));
}

TEST_F(Pipelines, TakeOverStagesWhoseInputsAreTheSame) {
  const RunOutcome first = run();
  document_["stages"]["student"]["run"]["model"]["hidden"] = {4};

  const RunOutcome second = run(first.folder);

  EXPECT_EQ(reused(second),
            (std::map<std::string, bool>{
                {"teacher", true}, {"answers", true}, {"student", false}, {"score", false}}));
  EXPECT_EQ(bits_of(folder_of(second, "teacher")), bits_of(folder_of(first, "teacher")));
}

// The name of a file says nothing of what is in it.
TEST_F(Pipelines, RunStagesAgainWhoseDataHasChanged) {
  const RunOutcome first = run();
  std::ofstream(workspace_.folder() / "unlabelled.csv", std::ios::app) << "0.5,0.5\n";

  EXPECT_EQ(reused(run(first.folder)),
            (std::map<std::string, bool>{
                {"teacher", true}, {"answers", false}, {"student", false}, {"score", false}}));
}

TEST_F(Pipelines, GoOnToTheSameBitsWhereverTheyWereStopped) {
  const RunOutcome whole = run();
  for (const int steps : {3, 20, 40}) {
    const Workspace other;
    RunOptions options = other.options();
    {
      const Impatient impatient(runtime_, steps);
      options.stop = impatient.token();
      EXPECT_THROW(run_pipeline(runtime_, pipeline(), options), Interrupted);
    }
    const fs::path folder = fs::directory_iterator(options.output)->path();
    const RunOutcome resumed = resume_pipeline(runtime_, folder, other.options());
    for (const char* stage : {"teacher", "student"})
      EXPECT_EQ(bits_of(folder_of(resumed, stage)), bits_of(folder_of(whole, stage))) << steps;
    EXPECT_EQ(read_file(folder_of(resumed, "answers") / "predictions.csv"),
              read_file(folder_of(whole, "answers") / "predictions.csv"));
  }
}

TEST_F(Pipelines, SayWhichStageFailed) {
  document_["stages"]["score"]["evaluate"]["data"] = "nowhere.csv";

  try {
    run();
    FAIL() << "there is no such file";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("nowhere.csv")));
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
  EXPECT_THAT(refusal(), HasSubstr("/stages/score/evaluate/modle: there is no such key here"));
  document_ = good;
  document_["stages"]["teacher"]["run"]["optimizer"]["learning_rte"] = 1;
  EXPECT_THAT(refusal(), ::testing::AllOf(HasSubstr("stage teacher"), HasSubstr("learning_rte")));
  document_ = good;
  document_["stages"]["teacher"] = {{"train", Json::object()}};
  EXPECT_THAT(refusal(), HasSubstr("/stages/teacher: expected an object with one of \"run\""));
}

}  // namespace
}  // namespace treadle
