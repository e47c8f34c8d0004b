// What a host may be extended with beside Treadle's own interfaces and installed plugins:
// interfaces that plugins declare, and components that an embedding program adds in code.
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/config.h>
#include <treadle/base/problem.h>
#include <treadle/core/training/learning_rate_schedule.h>

#include "open/curve.h"
#include "workspace.h"

namespace treadle {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::Curve;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::moons;
using testing::Workspace;

RuntimeOptions with_curves() {
  RuntimeOptions options;
  options.plugin_dirs = {testing::build_folder() / "tests/run/curves"};
  return options;
}

/// Four epochs of one step each, with base rate 0.01.
json run_with(json schedule) {
  json document = moons();
  document["data"]["rows"] = 40;
  document["validation"] = {{"use", "hold_out"}};
  document["training"] = {{"use", "standard"}, {"epochs", 4}, {"batch_size", 1000}};
  document["schedule"] = std::move(schedule);
  return document;
}

/// The learning rate of each epoch's last step.
std::vector<double> rates_in(const std::filesystem::path& run) {
  std::istringstream history(testing::read_file(run / "history.csv"));
  std::vector<double> rates;
  std::string line;
  std::getline(history, line);
  std::size_t column = 0;
  std::istringstream heading(line.substr(0, line.find("learning_rate")));
  for (std::string name; std::getline(heading, name, ',');)
    ++column;
  while (std::getline(history, line)) {
    std::istringstream row(line);
    std::string value;
    for (std::size_t i = 0; i <= column; ++i)
      std::getline(row, value, ',');
    rates.push_back(std::stod(value));
  }
  return rates;
}

std::vector<double> rates_of(const Runtime& runtime, const json& document) {
  const Workspace workspace;
  return rates_in(run_workflow(runtime, runtime.resolve(document), workspace.options()).folder);
}

std::string mistake_in(const Runtime& runtime, const json& document) {
  try {
    static_cast<void>(runtime.resolve(document));
  } catch (const DocumentError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// A constant, given in a document.
class Level final : public Curve {
 public:
  explicit Level(const Config& config) : value_(config.get<double>("value")) {}
  double at(double) const override { return value_; }

 private:
  const double value_;
};

ComponentFactory levels() {
  return [](const Config& config, const ComponentContext&) {
    return std::unique_ptr<Component>(std::make_unique<Level>(config));
  };
}

json level_schema(const char* type) {
  return {
      {"type", "object"}, {"required", {"value"}}, {"properties", {{"value", {{"type", type}}}}}};
}

TEST(PluginInterfaces, AreImplementedByOtherPluginsAndUsedInDocuments) {
  const Runtime runtime(with_curves());

  const auto power = rates_of(
      runtime, run_with({{"use", "curved"}, {"curve", {{"use", "power"}, {"exponent", 2}}}}));
  const auto halved = rates_of(
      runtime, run_with({{"use", "curved"}, {"curve", {{"use", "halved"}, {"of", "power"}}}}));

  EXPECT_THAT(power, ElementsAre(0.01, 0.01 * 0.5625, 0.01 * 0.25, 0.01 * 0.0625));
  EXPECT_THAT(halved, ElementsAre(0.005, 0.00375, 0.0025, 0.00125));
}

TEST(PluginInterfaces, HaveTheirComponentsCheckedLikeAnyOther) {
  const Runtime runtime(with_curves());

  EXPECT_THAT(mistake_in(runtime, run_with({{"use", "curved"}, {"curve", "powr"}})),
              AllOf(HasSubstr("/schedule/curve/use"), HasSubstr("no plugin offers the curve"),
                    HasSubstr("did you mean \"power\"")));
  EXPECT_THAT(mistake_in(runtime, run_with({{"use", "curved"},
                                            {"curve", {{"use", "power"}, {"exponent", -1}}}})),
              AllOf(HasSubstr("/schedule/curve/exponent"), HasSubstr("must be > 0")));
  EXPECT_EQ(runtime.registry().summary().at("curve"), 2U);
}

TEST(ComponentsAddedInCode, AreNamedInDocumentsAlsoWithinOthers) {
  Runtime runtime(with_curves());
  runtime.registry().add<Curve>("level", levels(), level_schema("number"));

  const auto rates = rates_of(
      runtime, run_with({{"use", "curved"}, {"curve", {{"use", "level"}, {"value", 0.25}}}}));

  EXPECT_THAT(rates, ElementsAre(0.0025, 0.0025, 0.0025, 0.0025));
  EXPECT_THAT(mistake_in(runtime, run_with({{"use", "curved"}, {"curve", {{"use", "level"}}}})),
              AllOf(HasSubstr("/schedule/curve"), HasSubstr("required key \"value\" is missing")));
}

TEST(ComponentsAddedInCode, AreCheckedByTheSchemaAddedLast) {
  Runtime runtime(with_curves());
  const json document =
      run_with({{"use", "curved"}, {"curve", {{"use", "level"}, {"value", "high"}}}});
  runtime.registry().add<Curve>("level", levels(), level_schema("string"));
  EXPECT_EQ(mistake_in(runtime, document), "nothing was thrown");

  ASSERT_TRUE(runtime.registry().remove<Curve>("level"));
  runtime.registry().add<Curve>("level", levels(), level_schema("number"));

  EXPECT_THAT(mistake_in(runtime, document),
              AllOf(HasSubstr("/schedule/curve/value"), HasSubstr("expected a number")));
}

TEST(ComponentsAddedInCode, StandBeforeThoseOfPlugins) {
  class Still final : public LearningRateSchedule {
    double do_rate_at(std::int64_t, const ScheduleSpan&) const override { return 0.5; }
  };
  Runtime runtime;
  runtime.registry().add<LearningRateSchedule>(
      "cosine", [](const Config&, const ComponentContext&) {
        return std::unique_ptr<Component>(std::make_unique<Still>());
      });

  const Workspace workspace;

  const auto run = run_workflow(runtime, runtime.resolve(run_with("cosine")), workspace.options());

  EXPECT_THAT(rates_in(run.folder), ElementsAre(0.5, 0.5, 0.5, 0.5));
  const std::string lock = testing::read_file(run.folder / "plugins.lock");
  EXPECT_THAT(lock, AllOf(HasSubstr("org.treadle.optimizers"),
                          ::testing::Not(HasSubstr("org.treadle.schedules"))));
}

}  // namespace
}  // namespace treadle
