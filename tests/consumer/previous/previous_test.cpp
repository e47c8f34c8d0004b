// A plugin that was compiled with the headers of the previous revision does its work in today's
// host.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/interfaces.h>
#include <treadle/core/cross_validator.h>
#include <treadle/core/data_provider.h>
#include <treadle/core/layer.h>
#include <treadle/core/plan_folding.h>
#include <treadle/core/training_workflow.h>
#include <treadle/host/run/predictor.h>
#include <treadle/host/run/workflow_run.h>
#include <treadle/testing/plan_trial.h>

#include "plugin/calls.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;

Runtime runtime() {
  RuntimeOptions options;
  options.plugin_dirs = {fs::path(TREADLE_PREVIOUS_PLUGIN).parent_path()};
  return Runtime(options);
}

nlohmann::json document(nlohmann::json training = "previous") {
  return {{"treadle", 1},
          {"name", "previous"},
          {"dtype", "float64"},
          {"data", "previous"},
          {"transforms", {"previous"}},
          {"model", "previous"},
          {"loss", "previous"},
          {"optimizer", "previous"},
          {"schedule", "previous"},
          {"training", std::move(training)},
          {"validation", "previous"},
          {"metrics", {"previous"}},
          {"observers", {"previous"}}};
}

/// Today's model graphs, with the previous layer, and what the previous builder builds.
nlohmann::json in_a_flow(nlohmann::json document) {
  const nlohmann::json previous = {{"use", "previous"}};
  document["model"] = {{"use", "flow"},
                       {"flow",
                        {{{"use", "loop"}, {"body", {previous}}, {"times", 2}},
                         {{"use", "graph"}, {"builder", previous}},
                         {{"use", "head"}}}}};
  return document;
}

/// Today's loop, with the previous way to make gradients.
nlohmann::json standard_training(int epochs) {
  return {{"use", "standard"}, {"epochs", epochs}, {"gradients", "previous"}};
}

/// The same, following what the previous model shows.
nlohmann::json following_training(int epochs) {
  nlohmann::json training = standard_training(epochs);
  training["freeze"] = {"offset"};
  training["stop"] = {{"when", {{"trend", "size"}, {"stalled", {2, 1e9}}}}};
  return training;
}

class PreviousPlugin : public ::testing::Test {
 protected:
  PreviousPlugin() {
    std::string name = (fs::temp_directory_path() / "treadle-previous-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~PreviousPlugin() override { fs::remove_all(folder_); }

  RunOptions options(const std::string& name) const {
    RunOptions options;
    options.output = folder_ / name;
    return options;
  }

  RunOutcome run(const nlohmann::json& document, const std::string& name) const {
    return run_workflow(runtime_, runtime_.resolve(document), options(name));
  }

  /// A run that was stopped after some steps and went on: its folder.
  fs::path stopped_and_resumed(const std::string& name) const {
    const auto data = runtime_.registry().make<DataProvider>("previous");
    auto* calls = data->ask<Calls>();
    std::stop_source stop;
    std::atomic<int> steps{0};
    calls->after_step = [&] {
      if (++steps == 11)
        stop.request_stop();
    };
    RunOptions stopping = options(name);
    stopping.stop = stop.get_token();
    EXPECT_THROW(run_workflow(runtime_, runtime_.resolve(document()), stopping), Interrupted);
    calls->after_step = nullptr;
    const fs::path folder = fs::directory_iterator(stopping.output)->path();
    resume_run(runtime_, folder, options(name));
    return folder;
  }

  Runtime runtime_ = runtime();
  fs::path folder_;
};

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// What the kept headers of core, and component.h, say line by line: `visit(class, line)`. The
/// registry's are left out: what it looks through is between two parts of the host.
template <typename Visit>
void for_each_kept_line(Visit&& visit) {
  static const std::regex kClass("(?:class|struct) (\\w+)[^;]*");
  const fs::path kept = fs::path(TREADLE_PREVIOUS_HEADERS) / "treadle";
  std::vector<fs::path> headers{kept / "base/component.h"};
  for (const fs::directory_entry& entry : fs::directory_iterator(kept / "core")) {
    if (entry.path().filename() != "plugin_registry.h")
      headers.push_back(entry.path());
  }
  for (const fs::path& header : headers) {
    std::ifstream stream(header);
    std::string line;
    std::string owner;
    std::smatch match;
    while (std::getline(stream, line)) {
      if (std::regex_match(line, match, kClass))
        owner = match[1];
      visit(owner, line);
    }
  }
}

/// "Optimizer::do_update": every virtual function that is no destructor.
std::vector<std::string> virtual_functions() {
  static const std::regex kVirtual("\\s+virtual [^(]*?(\\w+)\\(.*");
  std::set<std::string> found;
  for_each_kept_line([&](const std::string& owner, const std::string& line) {
    std::smatch match;
    if (line.find('~') == std::string::npos && std::regex_match(line, match, kVirtual))
      found.insert(owner + "::" + match[1].str());
  });
  return {found.begin(), found.end()};
}

/// "treadle.optimizer/1": what a component of the previous revision can be.
std::vector<std::string> interfaces() {
  static const std::regex kId(".*kInterface = \"(treadle\\.[\\w-]+/\\d+)\";");
  std::vector<std::string> found;
  for_each_kept_line([&](const std::string&, const std::string& line) {
    std::smatch match;
    if (std::regex_match(line, match, kId) && match[1].str() != RowReader::kInterface)
      found.push_back(match[1]);
  });
  return found;
}

TEST_F(PreviousPlugin, HasAComponentOfEachInterfaceThatTheKeptHeadersHave) {
  const auto& plugins = runtime_.catalog().plugins();
  const auto plugin = std::find_if(plugins.begin(), plugins.end(), [](const PluginFile& file) {
    return file.manifest.id == "org.treadle.test.previous";
  });
  ASSERT_NE(plugin, plugins.end());

  std::vector<std::string> offered;
  for (const ManifestComponent& component : plugin->manifest.components)
    offered.push_back(component.interface_id);

  EXPECT_THAT(offered, ::testing::UnorderedElementsAreArray(interfaces()))
      << "a kept interface without a component here: add one to plugin/plugin.cpp";
}

TEST_F(PreviousPlugin, TrainsInTodaysWorkflow) {
  const nlohmann::json result = run(document(standard_training(3)), "standard").result;

  EXPECT_LT(result.at("mean_metrics").at("previous_error").get<double>(), 0.5) << result;
}

TEST_F(PreviousPlugin, ShowsWhatTodaysWorkflowFollows) {
  const nlohmann::json result = run(document(following_training(4)), "following").result;

  EXPECT_EQ(result.at("fold_results").at(0).at("stop_reason"), "size stalled for 2 epochs");
}

TEST_F(PreviousPlugin, ResumesToTheSameBits) {
  const fs::path whole = run(document(), "whole").folder;

  const fs::path resumed = stopped_and_resumed("resumed");

  EXPECT_EQ(text_of(resumed / "model.safetensors"), text_of(whole / "model.safetensors"));
}

TEST_F(PreviousPlugin, PredictsWithWhatWasTrained) {
  const fs::path folder = run(document(), "trained").folder;

  const Predictions predictions =
      Predictor::load(runtime_, folder).predict(at::zeros({3, 2}, at::kDouble));

  EXPECT_EQ(predictions.kind, TargetKind::kNumbers);
  EXPECT_EQ(predictions.values.sizes(), (std::vector<std::int64_t>{3, 1}));
}

TEST_F(PreviousPlugin, CallsAndIsCalledThroughEveryVirtualFunction) {
  run(document(), "run");
  run(document(standard_training(1)), "standard");
  run(document(following_training(1)), "following");
  run(in_a_flow(document()), "flow");
  nlohmann::json compiled = in_a_flow(document());
  compiled["model"]["execution"] = "compiled";
  // Something before it that learns: else nobody wants its gradient.
  auto& flow = compiled["model"]["flow"];
  const nlohmann::json dense = {{"use", "dense"}, {"units", 3}};
  flow.insert(flow.begin(), dense);
  run(compiled, "compiled");
  stopped_and_resumed("resumed");
  const PluginRegistry& registry = runtime_.registry();
  const auto data = registry.make<DataProvider>("previous");
  data->load_state(data->state());
  data->open({});
  Batch batch;
  const auto stream = data->stream(8);
  EXPECT_TRUE(stream->next(batch));
  stream->load_state(stream->state());
  const auto* rows = data->ask<RowReader>();
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(rows->describe_row(7), "previous row 7");
  EXPECT_FALSE(rows->groups().defined());
  EXPECT_FALSE(rows->timestamps().defined());
  LayerSpec spec;
  spec.inputs = {{{TensorSpec::kVaries, 3}, at::kDouble}};
  const auto layer = registry.make<LayerFactory>("previous")->create(spec);
  ASSERT_NE(dynamic_cast<Traced*>(layer.get()), nullptr);
  EXPECT_TRUE(dynamic_cast<Traced&>(*layer).trace(at::ones({2, 3})).equal(at::ones({2, 3})));
  ASSERT_NE(dynamic_cast<Remembers*>(layer.get()), nullptr);
  EXPECT_FALSE(dynamic_cast<Remembers&>(*layer).remembers());
  ASSERT_NE(dynamic_cast<Planned*>(layer.get()), nullptr);
  testing::PlanTrial trial;
  const std::vector<PlanValue> given{trial.give(at::ones({2, 3}), /*needs_gradient=*/true)};
  dynamic_cast<Planned&>(*layer).plan(trial, given);
  ASSERT_EQ(trial.applied().size(), 1U);
  const PlanOp& operation = *trial.applied()[0].operation;
  EXPECT_EQ(operation.name(), "previous");
  ASSERT_NE(dynamic_cast<const MapsChannels*>(&operation), nullptr);
  EXPECT_FALSE(dynamic_cast<const MapsChannels&>(operation).channel_map().has_value());
  ASSERT_NE(dynamic_cast<const TakesChannelMap*>(&operation), nullptr);
  EXPECT_EQ(dynamic_cast<const TakesChannelMap&>(operation).followed_by({}, {}), nullptr);
  const auto metric = registry.make<MetricComputer>("previous");
  metric->start(data->spec().target);
  metric->merge(*registry.make<MetricComputer>("previous"));
  const auto* calls = data->ask<Calls>();
  ASSERT_NE(calls, nullptr);

  EXPECT_THAT(calls->names, ::testing::ElementsAreArray(virtual_functions()))
      << "a virtual function that nobody called: use it in plugin/plugin.cpp";
}

}  // namespace
}  // namespace treadle
