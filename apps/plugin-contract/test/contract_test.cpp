// `workflow-runner plugins check --contract`, as people run it: on a plugin whose components have
// one defect each.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <ostream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace treadle::testing {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct Answer {
  int status = 0;
  std::string output;
};

Answer answer_of(const std::string& options, const std::string& errors = "2>/dev/null") {
  const std::string command =
      std::string(std::getenv("TREADLE_RUNNER")) + " plugins check " + options + " " + errors;
  Answer answer;
  FILE* const pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (const std::size_t count = fread(buffer, 1, sizeof buffer, pipe))
    answer.output.append(buffer, count);
  answer.status = WEXITSTATUS(pclose(pipe));
  return answer;
}

std::string wrong_plugin() {
  return std::getenv("TREADLE_WRONG_PLUGIN");
}

struct Defect {
  std::string component;
  std::set<std::string> claims;  ///< those that must fail; all others hold
};

void PrintTo(const Defect& defect, std::ostream* out) {
  *out << defect.component;
}

const std::set<std::string> kProcess = {"MakingItChangesNothingInTheProcess"};
// What a draw spoils may be right all the same.
const std::set<std::string> kDrawn = {"TakesWhatItsSchemaAllowsOrSaysWhatIsWrong",
                                      "RefusesMistakesInItsParametersByName"};

class WrongComponent : public ::testing::TestWithParam<Defect> {
 protected:
  static void SetUpTestSuite() {
    answer = answer_of("--contract --json " + wrong_plugin());
    ASSERT_EQ(answer.status, 4) << answer.output;
    const Json contract = Json::parse(answer.output).at("contract");
    for (const Json& component : contract.at("components")) {
      auto& claims = failed[component.at("component")];
      for (const Json& claim : component.at("failed"))
        claims.insert(claim.at("claim").get<std::string>());
    }
  }

  static inline Answer answer;
  static inline std::map<std::string, std::set<std::string>> failed;
};

TEST_P(WrongComponent, FailsExactlyTheClaimsAboutItsDefect) {
  const auto found = failed.find("thing " + GetParam().component);
  ASSERT_NE(found, failed.end()) << answer.output;
  EXPECT_EQ(found->second, GetParam().claims) << answer.output;
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongComponent,
    ::testing::Values(Defect{"right", {}}, Defect{"sets_the_seed", kProcess},
                      Defect{"sets_the_default_dtype", kProcess},
                      Defect{"turns_gradients_on", kProcess}, Defect{"sets_the_locale", kProcess},
                      Defect{"sets_the_environment", kProcess}, Defect{"sets_the_umask", kProcess},
                      Defect{"starts_a_thread", kProcess}, Defect{"opens_a_descriptor", kProcess},
                      Defect{
                          "leaks_descriptors",
                          {"MakingItChangesNothingInTheProcess", "IsMadeAndDestroyedAHundredTimes",
                           "TakesWhatItsSchemaAllowsOrSaysWhatIsWrong",
                           "RefusesMistakesInItsParametersByName"}},
                      Defect{"prints", {"MakingItPrintsNothing"}},
                      Defect{"writes_to_standard_error", {"MakingItPrintsNothing"}},
                      Defect{"is_one_object", {"EachIsAnObjectOfItsOwn"}},
                      Defect{"offers_everything", {"OffersOnlyAbilitiesItKnows"}},
                      Defect{"fails_in_several_threads", {"EightThreadsMakeItAtOnce"}},
                      Defect{"throws_what_is_no_error", kDrawn},
                      Defect{"throws_what_is_no_exception", kDrawn},
                      Defect{"does_not_say_which", kDrawn}, Defect{"blames_storage", kDrawn},
                      Defect{"crashes_when_told", {}}),
    [](const auto& info) { return info.param.component; });

TEST(PluginsCheck, SaysWhichClaimOfWhichComponentDoesNotHold) {
  const Answer answer = answer_of("--contract " + wrong_plugin());

  EXPECT_EQ(answer.status, 4);
  EXPECT_THAT(answer.output, HasSubstr("ok    thing right: 9 claims hold\n"));
  EXPECT_THAT(answer.output, HasSubstr("wrong thing prints: 8 claims hold, 1 not\n"
                                       "          ComponentContract.MakingItPrintsNothing"));
}

TEST(PluginsCheck, SaysWhichClaimOfWhichComponentCrashed) {
  ::setenv("TREADLE_TEST_CRASHES", "1", 1);
  const Answer answer = answer_of("--contract " + wrong_plugin(), "2>&1");
  ::unsetenv("TREADLE_TEST_CRASHES");

  EXPECT_NE(answer.status, 0);
  EXPECT_THAT(answer.output, ContainsRegex("It was tested for ComponentContract\\.[A-Za-z]+, on "
                                           "thing crashes_when_told: mend what the claim finds"));
}

}  // namespace
}  // namespace treadle::testing
