// Eight threads that make components of every kind at once.
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/interfaces.h>
#include <treadle/core/data/data_provider.h>
#include <treadle/core/data/sampler.h>
#include <treadle/core/data/sequence_provider.h>
#include <treadle/core/data/table_writer.h>
#include <treadle/core/data/tokenizer.h>
#include <treadle/core/data/transform.h>
#include <treadle/core/devices/device_backend.h>
#include <treadle/core/distributed/communicator.h>
#include <treadle/core/history/run_observer.h>
#include <treadle/core/model/graph_builder.h>
#include <treadle/core/model/layer.h>
#include <treadle/core/model/model.h>
#include <treadle/core/training/gradient_strategy.h>
#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/core/training/loss.h>
#include <treadle/core/training/optimizer.h>
#include <treadle/core/training/training_callback.h>
#include <treadle/core/training/training_workflow.h>
#include <treadle/core/validation/cross_validator.h>
#include <treadle/core/validation/metric_computer.h>
#include <treadle/core/validation/output_stage.h>
#include <treadle/host/run/runtime.h>
#include <treadle/search/pruner.h>
#include <treadle/search/study_storage.h>
#include <treadle/search/tuner.h>

namespace treadle {
namespace {

using nlohmann::json;

/// Makes the component of that name, whatever its interface; false where nothing came.
using Maker = bool (*)(const PluginRegistry&, const std::string&, const Config&);

template <typename Interface>
bool make(const PluginRegistry& registry, const std::string& name, const Config& config) {
  return registry.make<Interface>(name, config) != nullptr;
}

constexpr std::pair<std::string_view, Maker> kMakers[] = {{"data", make<DataProvider>},
                                                          {"tokenizer", make<Tokenizer>},
                                                          {"sequence", make<SequenceProvider>},
                                                          {"transform", make<Transform>},
                                                          {"validation", make<CrossValidator>},
                                                          {"model", make<ModelProvider>},
                                                          {"layer", make<LayerFactory>},
                                                          {"graph", make<GraphBuilder>},
                                                          {"loss", make<Loss>},
                                                          {"gradients", make<GradientStrategy>},
                                                          {"optimizer", make<Optimizer>},
                                                          {"schedule", make<LearningRateSchedule>},
                                                          {"metric", make<MetricComputer>},
                                                          {"output", make<OutputStage>},
                                                          {"training", make<TrainingWorkflow>},
                                                          {"sampler", make<Sampler>},
                                                          {"callback", make<TrainingCallback>},
                                                          {"device", make<DeviceBackend>},
                                                          {"communicator", make<Communicator>},
                                                          {"writer", make<TableWriter>},
                                                          {"observer", make<RunObserver>},
                                                          {"tuner", make<Tuner>},
                                                          {"pruner", make<Pruner>},
                                                          {"storage", make<StudyStorage>}};

struct Wish {
  Maker maker;
  std::string name;
  Config config;
};

/// A component of each kind that others may require.
const std::map<std::string, std::string> kNested{
    {"data", "moons"},    {"graph", "residual_mlp"}, {"layer", "identity"}, {"loss", "mse"},
    {"pruner", "median"}, {"schedule", "constant"},  {"tokenizer", "bytes"}};

/// A value for what cannot be left out: a path or a name, a number, a component, steps of a flow, a
/// condition, a length of time.
json value_of(const json& schema) {
  if (schema.contains("x-treadle-component"))
    return {{"use", kNested.at(schema["x-treadle-component"])}};
  if (schema.contains("enum"))
    return schema["enum"][0];
  for (const char* const choice : {"anyOf", "oneOf"}) {
    if (schema.contains(choice))
      return value_of(schema[choice][0]);
  }
  if (schema.value("type", json()) == "number" && !schema.contains("minimum") &&
      !schema.contains("exclusiveMinimum"))
    return 0.5;
  if (schema.contains("minimum"))
    return schema["minimum"];
  if (schema.contains("exclusiveMinimum"))
    return schema["exclusiveMinimum"].get<double>() + 0.5;
  if (schema.value("type", json()) == "object" && schema.contains("required")) {
    json value = json::object();
    for (const std::string key : schema["required"])
      value[key] = value_of(schema.at("properties").at(key));
    return value;
  }
  if (schema.value("type", json()) == "object")
    return {{"after", "1ep"}};  // the conditions of callbacks
  if (schema.value("x-treadle-type", "") == "duration")
    return "2h";
  if (schema.value("x-treadle-type", "") == "counted_duration")
    return "2ep";
  if (schema.value("type", json()) == "array")
    return json(schema.value("minItems", std::size_t{1}), value_of(schema["items"]));
  return schema.contains("pattern") ? "x" : "x.prom";
}

json parameters_of(const json& schema, const std::string& name) {
  json parameters = json::object();
  for (const std::string required : schema.value("required", json::array()))
    parameters[required] = value_of(schema.at("properties").at(required));
  if (name == "loop")
    parameters["times"] = 2;  // or one of two others, which a schema cannot say
  if (name == "byte_bpe")
    parameters["vocabulary_size"] = 300;  // or two files
  if (schema.value("properties", json::object()).contains("query"))
    parameters["table"] = "rows";  // or a query with an order
  if (parameters.contains("connection"))
    parameters["connection"] = "";  // that of the environment
  if (name == "grid_cat")
    parameters.update({{"grid", {2, 1, 1}}, {"positions", {{0, 0, 0}, {1, 0, 0}}}});
  return parameters;
}

TEST(Storm, EightThreadsMakeComponentsOfEveryKindAtOnce) {
  constexpr int kThreads = 8;
  constexpr int kEach = 10'000 / kThreads;
  // Nothing is loaded yet: the threads race for the libraries, too.
  const Runtime runtime;
  std::vector<Wish> wishes;
  for (const auto& [word, maker] : kMakers) {
    const auto components = runtime.catalog().components(word);
    if (word != "communicator")  // whose plugins all need a library
      EXPECT_FALSE(components.empty()) << word;
    for (const CatalogComponent& component : components) {
      wishes.push_back(
          {maker, component.component->name,
           Config(parameters_of(runtime.catalog().schema(component), component.component->name))});
    }
  }
  EXPECT_EQ(std::size(kMakers), interface_names().size());

  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        const Wish& wish = wishes[static_cast<std::size_t>(t * 7 + i) % wishes.size()];
        try {
          if (wish.maker(runtime.registry(), wish.name, wish.config))
            ++made;
        } catch (const Error& error) {
          ADD_FAILURE() << wish.name << ": " << error.what();
          return;
        }
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();

  EXPECT_EQ(made, 10'000);
}

}  // namespace
}  // namespace treadle
