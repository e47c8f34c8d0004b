// Eight threads that make components of every kind at once.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/interfaces.h>
#include <treadle/core/cross_validator.h>
#include <treadle/core/data_provider.h>
#include <treadle/core/gradient_strategy.h>
#include <treadle/core/learning_rate_schedule.h>
#include <treadle/core/loss.h>
#include <treadle/core/metric_computer.h>
#include <treadle/core/model.h>
#include <treadle/core/optimizer.h>
#include <treadle/core/run_observer.h>
#include <treadle/core/training_workflow.h>
#include <treadle/core/transform.h>
#include <treadle/host/run/runtime.h>

namespace treadle {
namespace {

using nlohmann::json;

/// Makes the component of that name, whatever its interface; false where nothing came.
using Maker = bool (*)(const PluginRegistry&, const std::string&, const Config&);

template <typename Interface>
bool make(const PluginRegistry& registry, const std::string& name, const Config& config) {
  return registry.make<Interface>(name, config) != nullptr;
}

constexpr std::pair<std::string_view, Maker> kMakers[] = {
    {"data", make<DataProvider>},      {"transform", make<Transform>},
    {"validation", make<CrossValidator>}, {"model", make<ModelProvider>},
    {"loss", make<Loss>},              {"gradients", make<GradientStrategy>},
    {"optimizer", make<Optimizer>},    {"schedule", make<LearningRateSchedule>},
    {"metric", make<MetricComputer>},  {"training", make<TrainingWorkflow>},
    {"observer", make<RunObserver>}};

struct Wish {
  Maker maker;
  std::string name;
  Config config;
};

/// Parameters for what cannot be made without any: paths, the name of a column, or numbers.
json parameters_of(const json& schema) {
  json parameters = json::object();
  for (const std::string name : schema.value("required", json::array())) {
    const json& parameter = schema.at("properties").at(name);
    parameters[name] = parameter.value("minimum", json("x.prom"));
  }
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
    EXPECT_FALSE(components.empty()) << word;
    for (const CatalogComponent& component : components) {
      wishes.push_back({maker, component.component->name,
                        Config(parameters_of(runtime.catalog().schema(component)))});
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
          if (wish.maker(runtime.registry(), wish.name, wish.config)) ++made;
        } catch (const Error& error) {
          ADD_FAILURE() << wish.name << ": " << error.what();
          return;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(made, 10'000);
}

}  // namespace
}  // namespace treadle
