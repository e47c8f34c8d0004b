// A run's report of its device, beside the device's own counts.
#include <algorithm>
#include <fstream>
#include <string>

#include <gmock/gmock.h>

#include <ATen/ops/randn.h>

#include <treadle/graph/flow_document.h>
#include <treadle/graph/graph.h>
#include <treadle/graph/graph_state.h>
#include <treadle/tensor/task_random.h>

#include "far_runs.h"

namespace treadle::testing {
namespace {

using nlohmann::json;

json two_epochs() {
  return json::parse(
      R"({"data": {"use": "moons", "rows": 80}, "model": {"use": "mlp", "hidden": [8]},
      "validation": {"use": "hold_out", "rows": 16},
      "training": {"epochs": 2, "batch_size": 8, "evaluation_batch_size": 64}})");
}

struct Reported {
  RunResult result;
  std::int64_t to_device = 0;
  std::int64_t to_host = 0;
  std::int64_t waits = 0;  // copies to the host are among them
};

Reported report_of(const json& document) {
  const Workspace workspace;
  const FarCrossings crossings;
  Reported reported;
  reported.result = run(on("far", document), workspace).result;
  reported.to_device = crossings.to_device();
  reported.to_host = crossings.to_host();
  reported.waits = crossings.waits() + crossings.to_host();
  return reported;
}

// Rows are two floats and a class of eight bytes, in two tensors a batch.
TEST(FarStatistics, CopiesToTheDeviceAreWeightsAndBatches) {
  constexpr std::int64_t kRowBytes = 2 * 4 + 8;
  constexpr std::int64_t kWeights = 2 * 8 + 8 + 8 * 2 + 2;  // in four tensors
  const json device = to_json(report_of(two_epochs()).result).at("device");
  const std::int64_t copies = device.at("copies_to_device").get<std::int64_t>() - 4;
  const std::int64_t bytes = device.at("bytes_to_device").get<std::int64_t>() - kWeights * 4;

  // Batches of eight rows train, of 16 are evaluated: two epochs, and the weights at the end.
  constexpr std::int64_t kEvaluated = 3;
  ASSERT_EQ(copies % 2, 0);
  const std::int64_t trained = copies / 2 - kEvaluated;
  EXPECT_EQ(bytes, (trained * 8 + kEvaluated * 16) * kRowBytes);
  // Batches are copied ahead of their use, as far as the pipeline's memory allows.
  EXPECT_GE(trained, 2 * 8);
  EXPECT_LE(trained, 2 * 8 + 32);
}

TEST(FarStatistics, AreWhatTheDeviceHasCounted) {
  json averaged = two_epochs();
  averaged["training"]["ema"] = {{"use", "ema"}, {"decay", 0.8}};
  json stopped_early = two_epochs();
  stopped_early["training"]["early_stopping"] = {{"use", "early_stopping"}, {"patience", "1ep"}};
  json folds = two_epochs();
  folds["validation"] = {{"use", "k_fold"}, {"folds", 3}};
  json two_losses = two_epochs();
  two_losses["loss"] = json::parse(R"([{"use": "cross_entropy"},
                                       {"use": "cross_entropy", "factor": 0.5}])");
  json resting = two_epochs();
  resting["training"]["checkpoint"] = {{"every", "3st"}};
  for (const json& document : {two_epochs(), averaged, stopped_early, folds, two_losses, resting}) {
    SCOPED_TRACE(document.dump());
    const Reported reported = report_of(document);
    const json device = to_json(reported.result).at("device");
    // Of each training, the parameters that an update touches: a mask of the optimizer's.
    const std::int64_t masks = document.at("validation").at("use") == "k_fold" ? 4 : 1;

    EXPECT_EQ(device.at("copies_to_device").get<std::int64_t>() + masks, reported.to_device);
    EXPECT_EQ(device.at("copies_to_host"), reported.to_host);
    EXPECT_EQ(device.at("waits"), reported.waits);
  }
}

TEST(FarStatistics, HaveMemoryTimeAndWhatIsIdle) {
  const json result = to_json(report_of(two_epochs()).result);
  const json& device = result.at("device");

  EXPECT_EQ(device.at("name"), "far:0");
  EXPECT_GT(device.at("memory_peak_bytes"), (2 * 8 + 8 + 8 * 2 + 2) * 4);
  EXPECT_GT(device.at("memory_reserved_bytes"), 0);
  EXPECT_GT(device.at("busy_seconds"), 0);
  EXPECT_GT(device.at("idle_seconds"), 0) << "the host prepares the next batch";
  const double busy = device.at("busy_seconds");
  const double idle = device.at("idle_seconds");
  EXPECT_NEAR(device.at("idle_fraction"), idle / (busy + idle), 1e-9);
  EXPECT_LT(busy + idle, result.at("time").at("seconds").get<double>());
  EXPECT_GT(device.at("seconds_waiting"), 0);
  EXPECT_EQ(result.at("time").at("phases").at("waiting"), device.at("seconds_waiting"));
}

TEST(FarStatistics, ARunOnACpuHasNone) {
  const Workspace workspace;
  const json result = to_json(run(on("cpu", two_epochs()), workspace).result);

  EXPECT_FALSE(result.contains("device"));
  EXPECT_FALSE(result.at("time").at("phases").contains("waiting"));
}

TEST(FarStatistics, TheTraceHasALineForTheDevice) {
  const Workspace workspace;
  RunOptions options = workspace.options();
  options.trace = workspace.folder() / "trace.json";
  run_workflow(far_runtime(), far_runtime().resolve(on("far", two_epochs())), options);
  const json trace = json::parse(read_file(options.trace));

  double last = 0;
  int steps = 0;
  std::map<std::string, json> counters;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X" && event.at("name") == "step") {
      EXPECT_GE(event.at("ts").get<double>(), last) << "steps do not overlap";
      last = event.at("ts").get<double>() + 0.999 * event.at("dur").get<double>();
      ++steps;
    } else if (event.at("ph") == "C") {
      counters[event.at("name")].push_back(event.at("args"));
    }
  }
  EXPECT_EQ(steps, 2 * 8);
  ASSERT_EQ(counters.size(), 3U);
  EXPECT_EQ(counters.at("memory in use").size(), 2U) << "one an epoch";
  EXPECT_GT(counters.at("memory in use").at(0).at("bytes"), 0);
  EXPECT_GT(counters.at("copied to device").at(1).at("bytes"),
            counters.at("copied to device").at(0).at("bytes"));
}

TEST(FarStatistics, TheReportHasACardForTheDevice) {
  const Workspace workspace;
  const RunOutcome far = run(on("far", two_epochs()), workspace);
  const RunOutcome near = run(on("near", two_epochs()), workspace);

  EXPECT_THAT(read_file(far.folder / "report.html"),
              ::testing::HasSubstr("\"block\":\"device\",\"record\":{\"busy_seconds\":"));
  EXPECT_THAT(read_file(near.folder / "report.html"),
              ::testing::Not(::testing::HasSubstr("\"block\":\"device\"")));
}

// The marks of the far device throw where they are read before a wait.
TEST(FarProfiles, AreReadByTheDevicesClockOnceTheyAreAskedFor) {
  const auto far = far_runtime().registry().make<DeviceBackend>("far");
  const c10::Device device = far->find().devices.front().device;
  const json flow = json::parse(R"({"flow": [{"use": "dense", "out_features": 64}, "relu",
      {"use": "residual", "body": [{"use": "dense", "out_features": 64}, "tanh"]}, "head"]})");
  LayerSpec spec;
  spec.inputs = {TensorSpec({TensorSpec::kVaries, 6}, at::kFloat)};
  spec.outputs = {{"output", {3}}};
  for (const graph::Execution execution :
       {graph::Execution::kDynamic, graph::Execution::kCompiled}) {
    const TaskRandom random(1);
    const auto network = graph::read_whole_flow(Config(flow), far_runtime().registry()).build(spec);
    network->set_execution(execution);
    network->to(device);
    graph::GraphState state(*network);
    state.profile(true, far.get());
    const at::Tensor input = at::randn({16, 6}).to(device);
    for (int forward = 0; forward < 3; ++forward) {
      const FarCrossings crossings;
      network->run({&input, 1}, state);
      EXPECT_EQ(crossings.waits() + crossings.to_host(), 0) << "a forward waits for nothing";
    }

    const graph::Profile* const profile = state.last_profile();

    ASSERT_NE(profile, nullptr);
    EXPECT_EQ(profile->nodes.size(), 5U);
    EXPECT_GT(profile->total().count(), 0);
    for (const graph::LevelTiming& level : profile->levels)
      EXPECT_LE(level.sum_of_nodes.count(), level.wall_clock.count() + 1) << "one after the other";
    EXPECT_EQ(state.last_profile(), profile) << "read once";
  }
}

}  // namespace
}  // namespace treadle::testing
