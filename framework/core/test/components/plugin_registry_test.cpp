#include <treadle/core/components/plugin_registry.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <treadle/base/schema.h>
#include <treadle/core/training/learning_rate_schedule.h>
#include <treadle/core/training/loss.h>

namespace treadle {
namespace {

using ::testing::ElementsAre;

class Fixed : public LearningRateSchedule {
 public:
  explicit Fixed(const Config& config) : factor_(config.get<double>("factor")) {}

 private:
  double do_rate_at(std::int64_t, const ScheduleSpan& span) const override {
    return span.base_rate * factor_;
  }
  double factor_;
};

const nlohmann::json kFixedSchema = nlohmann::json::parse(R"({
  "type": "object",
  "properties": {"factor": {"type": "number", "minimum": 0, "default": 0.5}}
})");

ComponentFactory fixed_factory() {
  return
      [](const Config& config, const ComponentContext&) { return std::make_unique<Fixed>(config); };
}

Config config(const char* json) {
  return Config(nlohmann::json::parse(json));
}

template <typename ErrorType>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "nothing of that type was thrown";
}

TEST(PluginRegistry, MakesWhatWasAddedWithDefaultsFilledIn) {
  PluginRegistry registry;
  registry.add<LearningRateSchedule>("fixed", fixed_factory(), kFixedSchema);

  EXPECT_DOUBLE_EQ(registry.make<LearningRateSchedule>("fixed")->rate_at(0, {1, 1, 1}), 0.5);
  EXPECT_DOUBLE_EQ(registry.make<LearningRateSchedule>("fixed", config(R"({"factor": 3})"))
                       ->rate_at(0, {1, 1, 1}),
                   3.0);
}

TEST(PluginRegistry, ChecksParametersBeforeMakingAnything) {
  PluginRegistry registry;
  registry.add<LearningRateSchedule>("fixed", fixed_factory(), kFixedSchema);

  const std::string message = message_of<DocumentError>(
      [&] { registry.make<LearningRateSchedule>("fixed", config(R"({"factr": 3})")); });

  EXPECT_THAT(message, ::testing::HasSubstr("unknown key \"factr\"; did you mean \"factor\"?"));
}

TEST(PluginRegistry, SuggestsNearMisses) {
  PluginRegistry registry;
  registry.add<LearningRateSchedule>("fixed", fixed_factory(), kFixedSchema);

  EXPECT_EQ(message_of<PluginError>([&] { registry.make<LearningRateSchedule>("fixd"); }),
            "no schedule is called \"fixd\"; did you mean \"fixed\"? (no plugins were searched)");
}

TEST(PluginRegistry, KeepsInterfacesApart) {
  PluginRegistry registry;
  registry.add<LearningRateSchedule>("fixed", fixed_factory(), kFixedSchema);

  EXPECT_THROW(registry.make<Loss>("fixed"), PluginError);
  EXPECT_THAT(registry.names<LearningRateSchedule>(), ElementsAre("fixed"));
  EXPECT_THAT(registry.names<Loss>(), ElementsAre());
  EXPECT_EQ(registry.summary().at("schedule"), 1u);
  EXPECT_EQ(registry.summary().at("loss"), 0u);
}

TEST(PluginRegistry, RefusesAClassThatIsNotWhatItWasRegisteredAs) {
  PluginRegistry registry;
  registry.add<Loss>("impostor", fixed_factory(), kFixedSchema);

  EXPECT_EQ(message_of<PluginError>([&] { registry.make<Loss>("impostor"); }),
            "\"impostor\" was registered as a loss but is not one: its class must derive from the "
            "interface's class");
}

TEST(PluginRegistry, ShowsDocumentsTheSchemaAddedLast) {
  PluginRegistry registry;
  registry.add<LearningRateSchedule>("fixed", fixed_factory(), kFixedSchema);
  const FoundComponent before = registry.schemas().find("schedule", "fixed");

  registry.remove<LearningRateSchedule>("fixed");
  const FoundComponent between = registry.schemas().find("schedule", "fixed");
  registry.add<LearningRateSchedule>("fixed", fixed_factory(), {{"title", "another"}});
  const FoundComponent after = registry.schemas().find("schedule", "fixed");

  ASSERT_NE(before.schema, nullptr);
  EXPECT_EQ(*before.schema, kFixedSchema) << "whoever holds it keeps it";
  EXPECT_EQ(between.schema, nullptr);
  EXPECT_EQ(between.problem, "no schedule is called \"fixed\" (no plugins were searched)");
  ASSERT_NE(after.schema, nullptr);
  EXPECT_EQ(*after.schema, (nlohmann::json{{"title", "another"}}));
}

// A loader of a host's: what it says of a plugin at fault must reach the document.
TEST(PluginRegistry, LetsItsLoaderExplainWhatItCannotFind) {
  class Broken final : public ComponentLoader {
    std::vector<std::string> names(std::string_view) const override { return {}; }
    ComponentEntry find(std::string_view, std::string_view) const override {
      throw PluginError("asked for the entry");
    }
    FoundComponent look_up(std::string_view word, std::string_view name) const override {
      return {nullptr, "", std::string(word) + " " + std::string(name) + " is broken", true};
    }
    ComponentFactory load(const ComponentEntry&) override { return nullptr; }
  };
  PluginRegistry registry(std::make_shared<Broken>());
  registry.add<LearningRateSchedule>("fixed", fixed_factory(), kFixedSchema);

  const FoundComponent missing = registry.schemas().find("schedule", "cosine");

  EXPECT_EQ(missing.problem, "schedule cosine is broken");
  EXPECT_TRUE(missing.plugin_at_fault);
  EXPECT_NE(registry.schemas().find("schedule", "fixed").schema, nullptr);
}

TEST(PluginRegistry, RefusesASecondComponentOfOneName) {
  PluginRegistry registry;
  registry.add<LearningRateSchedule>("fixed", fixed_factory(), kFixedSchema);

  EXPECT_THROW(registry.add<LearningRateSchedule>("fixed", fixed_factory(), kFixedSchema),
               ContractViolation);
  EXPECT_TRUE(registry.remove<LearningRateSchedule>("fixed"));
  EXPECT_FALSE(registry.remove<LearningRateSchedule>("fixed"));
}

TEST(PluginRegistry, SaysWhichComponentThrewWhat) {
  PluginRegistry registry;
  registry.add<LearningRateSchedule>(
      "broken", [](const Config&, const ComponentContext&) -> std::unique_ptr<Component> {
        throw std::runtime_error("no such table");
      });
  registry.add<LearningRateSchedule>(
      "odd",
      [](const Config&, const ComponentContext&) -> std::unique_ptr<Component> { throw 42; });
  registry.add<LearningRateSchedule>(
      "empty",
      [](const Config&, const ComponentContext&) -> std::unique_ptr<Component> { return nullptr; });

  const auto make = [&](const char* name) {
    return message_of<PluginError>([&] { registry.make<LearningRateSchedule>(name); });
  };
  EXPECT_EQ(make("broken"), "schedule \"broken\" could not be made: no such table");
  EXPECT_EQ(make("odd"),
            "schedule \"odd\" could not be made: it threw something that is not a std::exception");
  EXPECT_EQ(make("empty"), "schedule \"empty\" could not be made: its factory returned nothing");
}

TEST(PluginRegistry, ServesManyThreadsAtOnce) {
  PluginRegistry registry;
  registry.add<LearningRateSchedule>("fixed", fixed_factory(), kFixedSchema);
  std::atomic<int> made{0};
  std::vector<std::thread> threads;

  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&registry, &made, t] {
      const std::string own = "own-" + std::to_string(t);
      for (int i = 0; i < 100; ++i) {
        registry.add<LearningRateSchedule>(own, fixed_factory(), kFixedSchema);
        if (registry.make<LearningRateSchedule>("fixed") &&
            registry.make<LearningRateSchedule>(own)) {
          ++made;
        }
        registry.remove<LearningRateSchedule>(own);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();

  EXPECT_EQ(made.load(), 800);
}

}  // namespace
}  // namespace treadle
