// Where the time of a run went: in its result, and in a trace when somebody asks for it.
#include <map>
#include <vector>

#include <gmock/gmock.h>

#include <treadle/base/error.h>

#include "watched_runs.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

Json traced(const Runtime& runtime, const Json& document, const Workspace& workspace) {
  RunOptions options = workspace.options();
  options.trace = workspace.folder() / "trace.json";
  run_workflow(runtime, runtime.resolve(document), options);
  return Json::parse(read_file(options.trace));
}

TEST(Trace, HasEveryStepOfEveryTraining) {
  const Runtime runtime;
  const Workspace workspace;
  Json document = moons(2);
  document["training"].erase("early_stopping");
  document["training"]["epochs"] = 2;
  const Json trace = traced(runtime, document, workspace);

  std::map<std::string, int> events;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X")
      ++events[event.at("name")];
  }
  // Three folds of 160 rows and a training of all 240, in batches of 16, for two epochs.
  const int steps = 2 * (3 * 10 + 15);
  EXPECT_EQ(events["forward"], steps);
  EXPECT_EQ(events["backward"], steps);
  EXPECT_EQ(events["update"], steps);
  EXPECT_GE(events["data"], steps);
  EXPECT_GE(events["metrics"], 2 * 3);
  EXPECT_GE(events["loading"], 4);
  EXPECT_GE(events["saving"], 4);
  EXPECT_EQ(trace.at("otherData").at("events_left_out"), 0);
}

TEST(Trace, ShowsEachThreadDoingOneThingAtATime) {
  const Runtime runtime;
  const Workspace workspace;
  Json document = moons(3);
  document["training"]["batch_size"] = 64;
  document["resources"]["shards"] = 2;
  const Json trace = traced(runtime, document, workspace);

  std::map<int, std::map<double, double>> spans;  // by thread: when → until when
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X")
      continue;
    const double start = event.at("ts");
    spans[event.at("tid")][start] = start + event.at("dur").get<double>();
  }
  ASSERT_GE(spans.size(), 1U);
  for (const auto& [thread, of_thread] : spans) {
    double before = 0;
    for (const auto& [start, end] : of_thread) {
      EXPECT_GE(start, before - 0.002) << "thread " << thread;  // thousandths are rounded
      before = end;
    }
  }
}

TEST(Trace, IsWrittenWhenARunIsStopped) {
  const Runtime runtime = watching_runtime();
  const Workspace workspace;
  const Impatient impatient(runtime, 7);
  RunOptions options = workspace.options();
  options.stop = impatient.token();
  options.trace = workspace.folder() / "trace.json";

  EXPECT_THROW(run_workflow(runtime, runtime.resolve(watched_moons()), options), Interrupted);

  EXPECT_GT(Json::parse(read_file(options.trace)).at("traceEvents").size(), 10U);
}

TEST(Trace, OfAFinishedRunSaysThatNothingWasLeftToDo) {
  const Runtime runtime;
  const Workspace workspace;
  RunOptions options = workspace.options();
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(moons(1)), options);
  options.trace = workspace.folder() / "trace.json";

  EXPECT_EQ(to_json(resume_run(runtime, outcome.folder, options).result), to_json(outcome.result));

  const Json trace = Json::parse(read_file(options.trace));
  ASSERT_FALSE(trace.at("traceEvents").empty());
  for (const Json& event : trace.at("traceEvents"))
    EXPECT_EQ(event.at("ph"), "M") << event;  // names alone
}

TEST(Trace, ThatCannotBeWrittenEndsTheRunBeforeItBegins) {
  const Runtime runtime;
  const Workspace workspace;
  RunOptions options = workspace.options();
  options.trace = workspace.folder() / "no such folder/trace.json";

  try {
    run_workflow(runtime, runtime.resolve(moons(1)), options);
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no such folder"));
  }
  EXPECT_TRUE(fs::is_empty(options.output)) << "a run was begun";
}

TEST(TimeRecord, SaysWhereTheTimeOfEveryRunWent) {
  const Runtime runtime;
  const Workspace workspace;
  const RunOutcome outcome = run_workflow(runtime, runtime.resolve(moons(2)), workspace.options());

  const Json time = to_json(outcome.result).at("time");
  EXPECT_EQ(time.at("workers"), 2);
  EXPECT_GT(time.at("training_rows_per_second"), 0);
  double all = 0;
  for (const char* phase :
       {"loading", "data", "forward", "backward", "update", "metrics", "saving"}) {
    EXPECT_GT(time.at("phases").at(phase), 0) << phase;
    all += time.at("phases").at(phase).get<double>();
  }
  // The workers' time was used or idle.
  const double budget = 2 * time.at("seconds").get<double>();
  EXPECT_NEAR(all + time.at("phases").at("idle").get<double>(), budget, 1e-9 * budget);
  EXPECT_NEAR(time.at("budget_used"), all / budget, 1e-9);
}

}  // namespace
}  // namespace treadle::testing
