#include <treadle/testing/component/component_contract.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <treadle/base/component.h>
#include <treadle/base/error.h>
#include <treadle/base/problem.h>
#include <treadle/base/random.h>
#include <treadle/tensor/process_state.h>
#include <treadle/testing/component/case_name.h>
#include <treadle/testing/plugin/plugin_under_test.h>
#include <treadle/testing/support/at_once.h>
#include <treadle/testing/support/captured_output.h>
#include <treadle/testing/support/scratch_folder.h>
#include <treadle/testing/support/unusual_process.h>
#include <treadle/testing/training/random_parameters.h>

#include "claim.h"

namespace treadle::testing {

std::vector<ComponentCase> components_of(const std::filesystem::path& folder,
                                         const std::map<std::string, nlohmann::json>& parameters,
                                         const ComponentContext& context) {
  const auto plugin = std::make_shared<const PluginUnderTest>(folder);
  std::vector<ComponentCase> cases;
  for (const PluginUnderTest::Offer& offer : plugin->offers()) {
    cases.push_back({offer.interface_word + "_" + offer.name,
                     [plugin, offer, context](const nlohmann::json& chosen) {
                       return plugin->make_component(offer, chosen, context);
                     },
                     offer.schema, parameters_of(offer, parameters)});
  }
  return cases;
}

namespace {

/// What the claims share.
class ComponentClaims : public ::testing::WithParamInterface<ComponentCase> {
 protected:
  using Json = nlohmann::json;

  static_assert(std::is_nothrow_destructible_v<Component> &&
                    std::has_virtual_destructor_v<Component>,
                "a class derived from Component cannot have a destructor that throws");

  // The last is like that of an optional interface there is, in a revision that there is not.
  struct UnheardOf {
    static constexpr std::string_view kInterface = "org.example.unheard-of/1";
  };
  struct Nameless {
    static constexpr std::string_view kInterface = "";
  };
  struct LaterRevision {
    static constexpr std::string_view kInterface = "treadle.row-reader/99";
  };

  static std::unique_ptr<Component> make(const Json& parameters = GetParam().parameters) {
    auto component = GetParam().make(parameters);
    TREADLE_EXPECTS(component != nullptr, "a factory gives a component or throws");
    return component;
  }

  static void expect_unchanged(const ProcessState& before, const std::string& what) {
    for (const std::string& change : before.changes_until(ProcessState::now()))
      ADD_FAILURE() << what << " changed the process: " << change;
  }

  /// Whether the component is made, or refused by an error that says which parameter to change.
  static ::testing::AssertionResult made_or_refused(const Json& parameters, int& made) {
    const auto wrong = [] { return ::testing::AssertionFailure(); };
    try {
      make(parameters);
      ++made;
      return ::testing::AssertionSuccess();
    } catch (const ContractViolation& error) {
      return wrong() << "broke a promise: " << error.what();
    } catch (const Error& error) {
      const ErrorKind kind = error.kind();
      if (kind != ErrorKind::kDocument && kind != ErrorKind::kUsage && kind != ErrorKind::kData)
        return wrong() << "expected a DocumentError, UsageError or DataError: " << error.what();
      if (!names_a_parameter(error, parameters))
        return wrong() << "the error names no parameter: " << error.what();
      return ::testing::AssertionSuccess();
    } catch (const std::exception& error) {
      return wrong() << "expected a treadle::Error: " << error.what();
    } catch (...) {
      return wrong() << "threw something that is not derived from std::exception";
    }
  }

  static bool names_a_parameter(const Error& error, const Json& parameters) {
    if (const auto* document = dynamic_cast<const DocumentError*>(&error)) {
      const auto placed = [](const Problem& problem) { return !problem.pointer.empty(); };
      if (std::any_of(document->problems().begin(), document->problems().end(), placed))
        return true;
    }
    const std::string_view text = error.what();
    const auto named = [&](const Json& keys) {
      for (const auto& [key, unused] : keys.items()) {
        if (!key.empty() && text.find(key) != text.npos)
          return true;
      }
      return false;
    };
    return named(parameters) || named(GetParam().schema.value("properties", Json::object()));
  }

  /// Has `draw` draw parameters many times, each from a seed of its own; how often they were taken.
  template <typename Draw>
  static int try_drawn(Draw&& draw) {
    constexpr std::uint64_t kDraws = 200;
    const char* chosen = std::getenv("TREADLE_TEST_SEED");
    const std::uint64_t seed = chosen == nullptr ? 1 : std::strtoull(chosen, nullptr, 10);
    const ScratchFolder folder;
    const std::filesystem::path here = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());  // a path without a folder leads nowhere else
    const ProcessState before = ProcessState::now();
    int made = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      RandomParameters random(RandomStreams(seed).seed(GetParam().name, {i}), folder.path());
      const Json parameters = draw(random);
      if (const auto result = made_or_refused(parameters, made); !result) {
        ADD_FAILURE() << result.message() << "\ndraw " << i << " with TREADLE_TEST_SEED=" << seed
                      << ": " << parameters.dump();
        break;  // one is enough to look at
      }
    }
    expect_unchanged(before, "making it from drawn parameters");
    EXPECT_EQ(folder.files(), std::vector<std::string>()) << "making it wrote files";
    std::filesystem::current_path(here);
    return made;
  }
};

}  // namespace

LINKS_CLAIMS_OF(Component)

// The first claim: threads and descriptors that last as long as the process are new only once.
CLAIM(Component, MakingItChangesNothingInTheProcess) {
  for (const bool usual : {true, false}) {
    std::optional<UnusualProcess> unusual;
    if (!usual)
      unusual.emplace();
    const ProcessState before = ProcessState::now();

    auto component = make();
    expect_unchanged(before, "making it");
    component.reset();

    expect_unchanged(before, "making and destroying it");
  }
}

CLAIM(Component, IsMadeFromItsDefaults) {
  EXPECT_NE(GetParam().make(GetParam().parameters), nullptr);
}

CLAIM(Component, IsMadeAndDestroyedAHundredTimes) {
  make();  // what the first of its kind looks up once
  const ProcessState before = ProcessState::now();

  for (int i = 0; i < 100; ++i)
    make();

  expect_unchanged(before, "making and destroying it a hundred times");
}

CLAIM(Component, EachIsAnObjectOfItsOwn) {
  auto first = make();
  const auto second = make();
  if (second == first) {
    static_cast<void>(first.release());  // or it would be destroyed twice
    FAIL() << "two of them are one object";
  }
  const void* answer = second->ask<UnheardOf>();

  first.reset();

  EXPECT_EQ(second->ask<UnheardOf>(), answer) << "once another one has been destroyed";
}

CLAIM(Component, OffersOnlyAbilitiesItKnows) {
  const auto component = make();

  EXPECT_EQ(component->ask<UnheardOf>(), nullptr);
  EXPECT_EQ(component->ask<Nameless>(), nullptr);
  EXPECT_EQ(component->ask<LaterRevision>(), nullptr);
}

CLAIM(Component, MakingItPrintsNothing) {
  CapturedOutput output;

  make();

  EXPECT_EQ(output.text(), "");
}

CLAIM(Component, EightThreadsMakeItAtOnce) {
  const auto errors = at_once(8, [](std::size_t) {
    for (int i = 0; i < 25; ++i)
      make();
  });

  EXPECT_EQ(errors, kNoErrors);
}

CLAIM(Component, TakesWhatItsSchemaAllowsOrSaysWhatIsWrong) {
  const int made = try_drawn([](RandomParameters& random) {
    return random.allowed(GetParam().schema, GetParam().parameters);
  });

  EXPECT_GT(made, 0) << "it takes none of what its schema allows";
}

CLAIM(Component, RefusesMistakesInItsParametersByName) {
  try_drawn([](RandomParameters& random) {
    return random.wrong(GetParam().schema, GetParam().parameters);
  });
}

}  // namespace treadle::testing
