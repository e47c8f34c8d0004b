#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/ScalarTypeToTypeMeta.h>

#include <treadle/core/learning_rate_schedule.h>
#include <treadle/plugin.h>
#include <treadle/testing/component_contract.h>

#include "wrapping.h"
#include "wrong.h"

namespace treadle::testing {
namespace {

using Json = nlohmann::json;

/// A plugin's component as it should be: reads its parameters, and says which of them do not go
/// together.
class Halving : public LearningRateSchedule {
 public:
  explicit Halving(const Config& config)
      : every_(config.get<std::int64_t>("every")), floor_(config.get<double>("floor")) {
    if (floor_ > 0 && every_ == 1)
      config.fail("floor", "needs \"every\" above 1");
  }

 private:
  double do_rate_at(std::int64_t step, const ScheduleSpan& span) const override {
    const double halved = span.base_rate * std::exp2(-static_cast<double>(step / every_));
    return std::max(floor_, halved);
  }
  std::int64_t every_;
  double floor_;
};

}  // namespace
}  // namespace treadle::testing

// The schemas lie in data/plugin.
TREADLE_PLUGIN(registrar) {
  registrar.add<treadle::testing::Halving>("halving");
  registrar.add<treadle::testing::Wrapping>("wrapping");
}

namespace treadle::testing {
namespace {

constexpr const char* kFolder = TREADLE_TEST_DATA "/plugin";

INSTANTIATE_TEST_SUITE_P(Right, ComponentContract, ::testing::ValuesIn(components_of(kFolder)),
                         CaseName());

using Make = std::function<std::unique_ptr<Component>(const Json& parameters)>;
using Made = std::unique_ptr<Component>;

/// Halving, with something done after its parameters were found right.
ComponentCase after(std::string name, const std::function<void(const Json&)>& act) {
  ComponentCase wrong = components_of(kFolder).back();
  wrong.name = std::move(name);
  wrong.make = [act, make = wrong.make](const Json& parameters) {
    Made right = make(parameters);
    act(parameters);
    return right;
  };
  return wrong;
}

/// Is one and the same as long as it lives.
class Single final : public Halving {
 public:
  Single() : Halving(Config(Json{{"every", 2}, {"floor", 0}})) { alive() = this; }
  ~Single() override { alive() = nullptr; }

  static Single*& alive() {
    static thread_local Single* alive = nullptr;
    return alive;
  }
};

class KnowsEverything final : public Halving {
 public:
  using Halving::Halving;

 private:
  void* do_ask(std::string_view) override { return this; }
};

ComponentCase made_by(std::string name, const Make& make) {
  ComponentCase wrong = components_of(kFolder).back();
  wrong.name = std::move(name);
  wrong.make = [make, check = wrong.make](const Json& parameters) {
    check(parameters);
    return make(parameters);
  };
  return wrong;
}

void stay_in_the_background(const Json&) {
  static bool started = false;
  if (!std::exchange(started, true))
    std::thread([] { ::pause(); }).detach();
}

std::vector<Wrong<ComponentCase>> wrong_components() {
  const std::set<std::string> process = {"MakingItChangesNothingInTheProcess"};
  // What a draw spoils may be right all the same.
  const std::set<std::string> drawn = {"TakesWhatItsSchemaAllowsOrSaysWhatIsWrong",
                                       "RefusesMistakesInItsParametersByName"};
  const auto usual = [](const Json& parameters) { return parameters.empty(); };
  return {
      {after("SetsTheSeed",
             [](const Json&) {
               at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
               generator.set_current_seed(42);
             }),
       process},
      {after("SetsTheDefaultDtype",
             [](const Json&) { c10::set_default_dtype(c10::scalarTypeToTypeMeta(at::kFloat)); }),
       process},
      {after("TurnsGradientsOn", [](const Json&) { c10::GradMode::set_enabled(true); }), process},
      {after("SetsTheLocale", [](const Json&) { std::setlocale(LC_ALL, "C"); }), process},
      {after("SetsTheEnvironment", [](const Json&) { ::setenv("TREADLE_WRONG", "1", 1); }),
       process},
      {after("SetsTheUmask", [](const Json&) { ::umask(022); }), process},
      {after("StartsAThread", stay_in_the_background), process},
      {after("OpensADescriptor",
             [](const Json&) {
               [[maybe_unused]] static const int log = ::open("/dev/null", O_WRONLY);
             }),
       process},
      {after("LeaksDescriptors",
             [](const Json&) { [[maybe_unused]] const int log = ::open("/dev/null", O_WRONLY); }),
       {"MakingItChangesNothingInTheProcess", "IsMadeAndDestroyedAHundredTimes",
        "TakesWhatItsSchemaAllowsOrSaysWhatIsWrong", "RefusesMistakesInItsParametersByName"}},
      {after("Prints", [](const Json&) { std::printf("made\n"); }), {"MakingItPrintsNothing"}},
      {after("WritesToStandardError",
             [](const Json&) { [[maybe_unused]] const auto written = ::write(2, "made\n", 5); }),
       {"MakingItPrintsNothing"}},
      {made_by("IsOneObject",
               [](const Json&) -> Made {
                 return Made(Single::alive() != nullptr ? Single::alive() : new Single());
               }),
       {"EachIsAnObjectOfItsOwn"}},
      {made_by("OffersEverything",
               [](const Json& parameters) -> Made {
                 return std::make_unique<KnowsEverything>(
                     Config(PluginUnderTest(kFolder).completed("halving", parameters)));
               }),
       {"OffersOnlyAbilitiesItKnows"}},
      {after("FailsInSeveralThreads",
             [](const Json&) {
               static const std::thread::id first = std::this_thread::get_id();
               if (std::this_thread::get_id() != first)
                 throw std::runtime_error("made by another thread");
             }),
       {"EightThreadsMakeItAtOnce"}},
      {after("ThrowsWhatIsNoError",
             [=](const Json& parameters) {
               if (!usual(parameters))
                 throw std::runtime_error("every");
             }),
       drawn},
      {after("ThrowsWhatIsNoException",
             [=](const Json& parameters) {
               if (parameters.contains("floor"))
                 throw 42;
             }),
       drawn},
      {after("DoesNotSayWhich",
             [=](const Json& parameters) {
               if (parameters.contains("floor") && parameters["floor"] > 0.5)
                 throw UsageError("that is too much");
             }),
       drawn},
      {after("BlamesStorage",
             [=](const Json& parameters) {
               if (parameters.contains("floor") && parameters["floor"] > 0.5)
                 throw StorageError("floor: no space left");
             }),
       drawn},
  };
}

INSTANTIATE_TEST_SUITE_P(DISABLED_Wrong, ComponentContract,
                         ::testing::ValuesIn(cases_of(wrong_components())), CaseName());

}  // namespace

std::vector<Defect> component_defects() {
  return defects_of("ComponentContract", wrong_components());
}

}  // namespace treadle::testing
