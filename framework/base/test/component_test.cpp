#include <treadle/base/component.h>

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace treadle {
namespace {

class Resumable {
 public:
  static constexpr std::string_view kInterface = "test.resumable/1";
  virtual ~Resumable() = default;
  virtual int position() const = 0;
};

class Undoable {
 public:
  static constexpr std::string_view kInterface = "test.undoable/1";
};

class Counter : public Component {
 public:
  static constexpr std::string_view kInterface = "test.counter/1";
};

// Two bases, so that a cast through void* without the right type would be off.
class Steps final : public Counter, public Resumable {
 public:
  explicit Steps(const Config& config) : position_(config.get<int>("from")) {}
  int position() const override { return position_; }

 private:
  void* do_ask(std::string_view interface_id) override {
    return interface_id == Resumable::kInterface ? static_cast<Resumable*>(this) : nullptr;
  }
  int position_;
};

class NeedsContext final : public Counter {
 public:
  NeedsContext(const Config&, const ComponentContext& context)
      : has_registry(context.registry != nullptr) {}
  const bool has_registry;
};

class Recorder final : public Registrar {
 public:
  std::map<std::string, ComponentFactory> factories;

 private:
  void do_add(std::string_view interface_id, std::string_view name,
              ComponentFactory factory) override {
    factories[std::string(interface_id) + " " + std::string(name)] = std::move(factory);
  }
};

TEST(Component, OffersAnAbilityOnlyWhenItHasIt) {
  Steps steps(Config(nlohmann::json{{"from", 5}}));
  Component& component = steps;
  const Component& constant = steps;

  ASSERT_NE(component.ask<Resumable>(), nullptr);
  EXPECT_EQ(component.ask<Resumable>()->position(), 5);
  EXPECT_EQ(constant.ask<Resumable>(), component.ask<Resumable>());
  EXPECT_EQ(component.ask<Undoable>(), nullptr);
}

TEST(Registrar, MakesComponentsFromParametersWithOrWithoutContext) {
  Recorder recorder;
  Registrar& registrar = recorder;
  registrar.add<Steps, Counter>("steps");
  registrar.add<NeedsContext>("needs_context");

  const auto steps =
      recorder.factories.at("test.counter/1 steps")(Config(nlohmann::json{{"from", 3}}), {});
  const auto other = recorder.factories.at("test.counter/1 needs_context")(Config(), {});

  EXPECT_EQ(dynamic_cast<Steps&>(*steps).position(), 3);
  EXPECT_FALSE(dynamic_cast<NeedsContext&>(*other).has_registry);
}

}  // namespace
}  // namespace treadle
