// Runs on data that is only read in order, runs without a known end, and the order of rows.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>

#include <treadle/base/config.h>
#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/base/random.h>
#include <treadle/core/data/chunked_stream.h>
#include <treadle/core/data/data_provider.h>

#include <treadle/host/run/predictor.h>

#include "watched_runs.h"

namespace treadle {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::bits_of;
using ::testing::HasSubstr;
using testing::Impatient;
using testing::StepWatch;
using testing::watching_runtime;
using testing::Workspace;
namespace fs = std::filesystem;

/// A generator without end, 10 000 steps, with everything that a stream may carry through a stop:
/// transforms fitted on its beginning, dropout, early stopping that never stops, an average.
json generator(std::int64_t steps = 10000) {
  return {{"treadle", 1},
          {"name", "generator"},
          {"seed", 3},
          {"data", {{"use", "friedman1"}, {"rows", "endless"}, {"noise", 0.5}}},
          {"transforms", {{{"use", "standardize"}, {"target", true}}}},
          {"model", {{"use", "mlp"}, {"hidden", {16}}, {"dropout", 0.02}}},
          {"optimizer", {{"use", "adamw"}, {"learning_rate", 0.003}}},
          {"schedule", "watched"},
          {"training",
           {{"use", "standard"},
            {"steps_per_epoch", 1000},
            {"max_steps", steps},
            {"batch_size", 32},
            {"shuffle_buffer", 1000},
            {"ema", {{"decay", 0.99}}},
            {"checkpoint", {{"every", "250st"}}}}},
          {"validation", {{"use", "hold_out"}, {"rows", 500}}},
          {"resources", {{"workers", 2}}}};
}

TEST(Streams, AGeneratorTrainsTenThousandStepsAndResumesAfterAnyStop) {
  const Runtime runtime = watching_runtime();
  const Workspace whole;
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(generator()), whole.options());
  const std::string expected = bits_of(outcome.folder);

  EXPECT_EQ(outcome.result.training.total_epochs, 10);
  // The noise has a deviation of 0.5; a mean would have 4.9.
  EXPECT_LT(outcome.result.at("rmse"), 0.8);
  EXPECT_TRUE(outcome.result.data.at("rows").is_null());

  const Workspace stopped;
  json document = generator();
  document["resources"]["workers"] = 1;
  RunOptions options = stopped.options();
  fs::path run;
  // In the first window, before a window ends, after an epoch, within a later one.
  for (const int steps : {5, 26, 970, 2500, 4000}) {
    const Impatient impatient(runtime, steps);
    options.stop = impatient.token();
    try {
      if (run.empty())
        run_workflow(runtime, runtime.resolve(document), options);
      else
        resume_run(runtime, run, options);
      FAIL() << "it was to be stopped after " << steps << " steps";
    } catch (const Interrupted&) {
      run = fs::directory_iterator(options.output)->path();
    }
  }
  resume_run(runtime, run, stopped.options());

  EXPECT_EQ(bits_of(run), expected);
}

/// y = sin(3 x) over a fixed grid, in chunks, read in order alone.
class Waves final : public DataProvider {
 public:
  explicit Waves(const Config& config) : rows_(config.get<std::int64_t>("rows")) {}

 private:
  static constexpr std::int64_t kChunk = 100;

  class Chunks final : public ChunkedStream {
   public:
    Chunks(const Waves& data, std::int64_t batch_size) : ChunkedStream(batch_size), data_(data) {}

   private:
    Chunk do_load(std::int64_t number, Batch& rows) override {
      const std::int64_t begin = number * kChunk;
      if (begin >= data_.rows_)
        return Chunk::kEnd;
      const at::Tensor index = at::arange(begin, std::min(begin + kChunk, data_.rows_), at::kFloat);
      // A step of an irrational part of the period: each window has all of it.
      const at::Tensor x = index.mul(0.6180339887).remainder(1).mul(2).sub(1).unsqueeze(1);
      rows.inputs = {x};
      if (!data_.spec_.targets.empty())
        rows.targets = {at::sin(x * 3)};
      return Chunk::kRows;
    }
    const Waves& data_;
  };

  void do_open(const OpenRequest& request) override {
    spec_.inputs = {{"features", {1}, {{"x", {}, false}}}};
    if (request.purpose != OpenRequest::Purpose::kPredict)
      spec_.targets = {number_target("y")};
  }
  const DataSpec& do_spec() const override { return spec_; }
  std::string do_content_hash() const override { return std::string(32, 'a'); }
  std::unique_ptr<BatchStream> do_stream(std::int64_t batch_size) const override {
    return std::make_unique<Chunks>(*this, batch_size);
  }
  StateDict do_state() const override { return {}; }
  void do_load_state(const StateDict&) override {}

  std::int64_t rows_;
  DataSpec spec_;
};

void add_waves(Runtime& runtime) {
  json schema = {{"x-treadle-interface", "data"},
                 {"title", "Waves"},
                 {"description", "Read in order alone."},
                 {"type", "object"}};
  schema["properties"]["rows"] = {
      {"type", "integer"}, {"minimum", 1}, {"default", 500}, {"description", "Rows."}};
  runtime.registry().add<DataProvider>(
      "waves",
      [](const Config& config, const ComponentContext&) {
        return std::unique_ptr<Component>(std::make_unique<Waves>(config));
      },
      std::move(schema));
}

json waves() {
  return {{"treadle", 1},
          {"seed", 5},
          {"data", {{"use", "waves"}, {"rows", 530}}},
          {"model", {{"use", "mlp"}, {"hidden", {16}}}},
          {"optimizer", {{"use", "adamw"}, {"learning_rate", 0.01}}},
          {"schedule", {{"use", "watched"}, {"warmup", "20st"}}},
          {"training",
           {{"use", "standard"},
            {"epochs", 40},
            {"batch_size", 16},
            {"shuffle_buffer", 200},
            {"early_stopping", {{"patience", "10ep"}}},
            {"checkpoint", {{"every", "3st"}}}}},
          {"validation", {{"use", "hold_out"}, {"rows", 50}}},
          {"resources", {{"workers", 2}}}};
}

TEST(Streams, DataWithAnEndTrainsInPassesAndResumesAnywhere) {
  Runtime runtime = watching_runtime();
  add_waves(runtime);
  const Workspace whole;
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(waves()), whole.options());
  EXPECT_LT(outcome.result.at("rmse"), 0.1);
  const std::string expected = bits_of(outcome.folder);
  for (const int steps : {1, 13, 29, 30, 31, 47, 300}) {
    const Impatient impatient(runtime, steps);
    const Workspace stopped;
    RunOptions options = stopped.options();
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime, runtime.resolve(waves()), options), Interrupted);
    const fs::path run = fs::directory_iterator(options.output)->path();

    resume_run(runtime, run, stopped.options());

    EXPECT_EQ(bits_of(run), expected) << "stopped after " << steps << " steps";
  }
}

TEST(Streams, ATableOnDiskTrainsInPassesAndResumesAnywhere) {
  const Runtime runtime = watching_runtime();
  const Workspace folder;
  const fs::path table = folder.folder() / "table.csv";
  {
    RandomBits random(4);
    std::ofstream file(table);
    file << "a,b,note,y\n";
    for (int row = 0; row < 530; ++row) {
      const double a = random.normal();
      const double b = random.normal();
      file << a << ',' << b << (row % 9 == 0 ? ",\"two\nlines\"," : ",one,") << 2 * a - b << '\n';
    }
  }
  json document = waves();
  document["data"] = {
      {"use", "csv"}, {"path", table.string()}, {"columns", {"a", "b"}}, {"in_memory", false}};
  document["training"]["epochs"] = 8;
  const Workspace whole;
  const std::string expected =
      bits_of(run_workflow(runtime, runtime.resolve(document), whole.options()).folder);
  for (const int steps : {1, 31, 100}) {
    const Impatient impatient(runtime, steps);
    const Workspace stopped;
    RunOptions options = stopped.options();
    options.stop = impatient.token();
    EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), options), Interrupted);
    const fs::path run = fs::directory_iterator(options.output)->path();

    resume_run(runtime, run, stopped.options());

    EXPECT_EQ(bits_of(run), expected) << "stopped after " << steps << " steps";
  }
}

/// The message with which the document fails, as a run or before one.
std::string failure_of(const Runtime& runtime, const json& document) {
  const Workspace workspace;
  try {
    run_workflow(runtime, runtime.resolve(document), workspace.options());
  } catch (const Error& error) {
    return error.what();
  }
  return "it did not fail";
}

json changed(json document, const json& patch) {
  document.merge_patch(patch);
  return document;
}

TEST(Streams, WhatAStreamCannotDoIsAnErrorWithARemedy) {
  Runtime runtime = watching_runtime();
  add_waves(runtime);
  const auto failure = [&](const json& patch) {
    return failure_of(runtime, changed(waves(), patch));
  };
  EXPECT_THAT(failure({{"validation", {{"rows", nullptr}}}}),
              AllOf(HasSubstr("only be read in order"), HasSubstr("\"rows\": 1000")));
  EXPECT_THAT(failure({{"validation", json::parse(R"({"use": "k_fold", "rows": null})")}}),
              AllOf(HasSubstr("only be read in order"), HasSubstr("hold_out")));
  EXPECT_THAT(failure({{"validation", {{"rows", 530}}}}), HasSubstr("none are left to train on"));
  EXPECT_THAT(failure({{"schedule", {{"use", "cosine"}}}}), HasSubstr("training.max_steps"));
  EXPECT_THAT(failure({{"training", {{"ema", {{"decay", 0.9}, {"start", "10%"}}}}}}),
              HasSubstr("10%"));
  EXPECT_THAT(failure({{"sequence", {{"use", "windows"}, {"lookback", 3}}}}),
              HasSubstr("only be read in order"));
  json endless = generator();
  endless["training"].erase("steps_per_epoch");
  endless["training"].erase("max_steps");
  EXPECT_THAT(failure_of(runtime, endless), HasSubstr("training.steps_per_epoch"));
}

TEST(Streams, ABufferWithoutAStreamIsAnError) {
  const Runtime runtime = watching_runtime();
  EXPECT_THAT(
      failure_of(runtime, changed(testing::moons(), {{"training", {{"shuffle_buffer", 99}}}})),
      HasSubstr("/training/shuffle_buffer"));
}

std::int64_t rows_of_history(const fs::path& run) {
  const std::string text = testing::read_file(run / "history.csv");
  return std::count(text.begin(), text.end(), '\n') - 1;
}

TEST(Lengths, MaxStepsEndsATrainingWithinAnEpochAndEvaluatesIt) {
  const Runtime runtime = watching_runtime();
  json document = testing::moons();
  document["validation"] = {{"use", "hold_out"}};
  document["training"].erase("early_stopping");
  document["training"]["max_steps"] = 29;  // 12 steps an epoch
  const Workspace workspace;
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());

  EXPECT_EQ(outcome.result.training.total_epochs, 3);
  EXPECT_EQ(rows_of_history(outcome.folder), 3);
  EXPECT_EQ(outcome.result.training.stop_reason, "");
}

TEST(Lengths, StepsPerEpochEvaluatesEverySoManySteps) {
  const Runtime runtime = watching_runtime();
  json document = testing::moons();
  document["training"]["steps_per_epoch"] = 5;
  document["training"]["epochs"] = 4;
  document["validation"]["refit"] = false;
  const Workspace workspace;
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());
  EXPECT_THAT(testing::read_file(outcome.folder / "history.csv"), HasSubstr("fold-1,4,4,20,"));
}

TEST(Lengths, UnlimitedEpochsGoOnUntilSomethingStopsThem) {
  const Runtime runtime = watching_runtime();
  json document = testing::moons();
  document["schedule"] = {{"use", "constant"}};
  document["validation"] = {{"use", "hold_out"}};
  document["training"]["epochs"] = "unlimited";
  document["optimizer"]["learning_rate"] = 1e-12;  // nothing gets better
  const Workspace workspace;
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());

  EXPECT_THAT(outcome.result.training.stop_reason, HasSubstr("no improvement for 3 epochs"));
  EXPECT_LT(outcome.result.training.total_epochs, 60);
}

TEST(Lengths, AFoldsEpochsAreThoseOfTheRefitWhereNobodyPlannedAny) {
  const Runtime runtime = watching_runtime();
  json document = testing::moons();
  document["schedule"] = {{"use", "constant"}};
  document["training"].erase("epochs");
  document["training"].erase("early_stopping");
  document["training"]["max_steps"] = 40;
  const Workspace workspace;
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(document), workspace.options());
  EXPECT_EQ(outcome.result.training.total_epochs, 3);  // the refit's: 40 steps of 15 an epoch
}

/// Two waves, of which the second follows from the first.
fs::path write_waves(const fs::path& folder, int rows, bool with_target) {
  const fs::path path = folder / (with_target ? "waves.csv" : "new.csv");
  std::ofstream file(path);
  file << (with_target ? "hour,height,level\n" : "hour,height\n");
  for (int i = 0; i < rows; ++i) {
    file << i << "," << std::sin(0.3 * i);
    if (with_target)
      file << "," << std::sin(0.3 * i - 1);
    file << "\n";
  }
  return path;
}

json windows(const fs::path& data) {
  return {
      {"treadle", 1},
      {"seed", 5},
      {"data", {{"use", "csv"}, {"path", data.string()}, {"target", "level"}, {"time", "hour"}}},
      {"sequence", {{"use", "windows"}, {"lookback", 8}, {"horizon", 3}}},
      {"model",
       {{"use", "flow"},
        {"flow", {"flatten", {{"use", "dense"}, {"out_features", 16}}, "tanh", "head"}}}},
      {"optimizer", {{"use", "adamw"}, {"learning_rate", 0.01}}},
      {"training", {{"epochs", 30}, {"batch_size", 16}}},
      {"validation", {{"use", "hold_out"}, {"strategy", "chronological"}, {"test_fraction", 0.1}}}};
}

TEST(Samples, WindowsOfASeriesTrainAreTestedAndPredict) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const fs::path data = write_waves(workspace.folder(), 310, true);
  const RunOutcome outcome =
      run_workflow(runtime, runtime.resolve(windows(data)), workspace.options());

  // 310 rows are 300 windows of 8 + 3.
  EXPECT_EQ(outcome.result.data.at("rows"), 300);
  EXPECT_LT(outcome.result.training.test->at("rmse"), 0.05);

  const Predictor predictor = Predictor::load(runtime, outcome.folder);
  const fs::path fresh = write_waves(workspace.folder(), 20, false);
  const fs::path predicted = workspace.folder() / "predicted.csv";
  EXPECT_EQ(predictor.predict_file(fresh, predicted).rows,
            13);  // the last one ends with the last row
  EXPECT_THAT(testing::read_file(predicted), HasSubstr("row,position,time,level\n0,0,"));
  EXPECT_LT(predictor.evaluate_file(data).at("rmse"), 0.05);
}

TEST(Samples, ATrainingSampleThatTouchesAValidationTargetIsAnErrorThatNamesBoth) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  json document = windows(write_waves(workspace.folder(), 310, true));
  for (const json& validation :
       {json{{"use", "hold_out"}, {"strategy", "random"}}, json{{"use", "k_fold"}}}) {
    document["validation"] = validation;
    EXPECT_THAT(failure_of(runtime, document),
                AllOf(HasSubstr("is in training sample"), HasSubstr("target of validation sample"),
                      HasSubstr("chronological")));
  }
}

TEST(Samples, ResumeToTheSameBits) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  json document = windows(write_waves(workspace.folder(), 200, true));
  document["schedule"] = "watched";
  document["training"]["epochs"] = 4;
  document["training"]["sampler"] = "shuffled";
  document["training"]["steps_per_epoch"] = 5;
  document["training"]["checkpoint"] = {{"every", "2st"}};
  const std::string expected =
      bits_of(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
  const Impatient impatient(runtime, 6);
  const Workspace stopped;
  RunOptions options = stopped.options();
  options.stop = impatient.token();
  EXPECT_THROW(run_workflow(runtime, runtime.resolve(document), options), Interrupted);
  const fs::path run = fs::directory_iterator(options.output)->path();
  resume_run(runtime, run, stopped.options());
  EXPECT_EQ(bits_of(run), expected);
}

TEST(Samplers, BesideShuffleAreAnError) {
  const Runtime runtime = watching_runtime();
  EXPECT_THAT(
      failure_of(runtime, changed(testing::moons(),
                                  {{"training",
                                    {{"sampler", {{"use", "sequential"}}}, {"shuffle", false}}}})),
      AllOf(HasSubstr("/training/shuffle"), HasSubstr("sampler")));
}

TEST(Samplers, SequentialIsWhatShuffleFalseIs) {
  const Runtime runtime = watching_runtime();
  const auto bits = [&](const json& patch) {
    const Workspace workspace;
    return bits_of(run_workflow(runtime, runtime.resolve(changed(testing::moons(), patch)),
                                workspace.options())
                       .folder);
  };
  const std::string in_order = bits({{"training", {{"shuffle", false}}}});
  EXPECT_EQ(bits({{"training", {{"sampler", {{"use", "sequential"}}}}}}), in_order);
  EXPECT_NE(bits(json::object()), in_order);
  EXPECT_EQ(bits({{"training", {{"sampler", {{"use", "shuffled"}}}}}}), bits(json::object()));
}

}  // namespace
}  // namespace treadle
