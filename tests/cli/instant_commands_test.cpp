// The commands that workflow-runner answers by itself.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>

#include <gmock/gmock.h>

#include "command_fixture.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class InstantCommands : public CommandFixture {};

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe.get()))
    text.append(buffer.data(), count);
  return text;
}

TEST_F(InstantCommands, HelpGoesToTheStandardOutput) {
  const Finished help = run({"--help"});

  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("workflow-runner COMMAND"));
  EXPECT_EQ(help.err, "");
}

TEST_F(InstantCommands, EveryCommandHasHelpWithAnExample) {
  const std::vector<std::vector<std::string>> kCommands{{"run"},
                                                        {"check"},
                                                        {"resume"},
                                                        {"evaluate"},
                                                        {"predict"},
                                                        {"plugins", "list"},
                                                        {"plugins", "describe"},
                                                        {"plugins", "new"},
                                                        {"graph"},
                                                        {"schema"}};
  for (std::vector<std::string> words : kCommands) {
    words.emplace_back("--help");
    const Finished help = run(words);
    EXPECT_EQ(help.code, 0) << words.front();
    EXPECT_THAT(help.out, HasSubstr("\nExample:\n  workflow-runner " + words.front()));
  }
}

TEST_F(InstantCommands, HelpOnAGroupIsAboutTheGroup) {
  const Finished runs = run({"runs", "--help"});
  EXPECT_EQ(runs.code, 0);
  EXPECT_THAT(runs.out, AllOf(StartsWith("workflow-runner runs COMMAND [ARGUMENT…] [OPTION…]\n"),
                              HasSubstr("\n  runs export RUN"), Not(HasSubstr("plugins")),
                              Not(HasSubstr("--version")), Not(HasSubstr("Exit codes")),
                              HasSubstr("\nExample:\n  workflow-runner runs list ")));
  EXPECT_THAT(run({"plugins", "--help"}).out,
              AllOf(StartsWith("workflow-runner plugins COMMAND "), HasSubstr("\n  plugins doctor"),
                    HasSubstr("\nExample:\n  workflow-runner plugins list ")));
}

TEST_F(InstantCommands, SayTheirVersion) {
  const Finished version = run({"--version"});

  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("workflow-runner [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST_F(InstantCommands, UsageErrorsAreOneSentenceAndExitCode2) {
  const struct {
    std::vector<std::string> words;
    std::string sentence;
  } kCases[] = {
      {{"rnu", "x.json"}, "there is no command \"rnu\"; did you mean \"run\"?"},
      {{"check", "x.json", "--jsn"}, "check has no option \"--jsn\"; did you mean \"--json\"?"},
      {{"run"}, "run expects DOCUMENT; usage: workflow-runner run DOCUMENT [OPTION…]"},
      {{"predict", "runs/x", "new.csv"},
       "predict needs --output OUT: the file to write: CSV, or by its ending .jsonl, .parquet …"},
      {{}, "expects a command; see \"workflow-runner --help\""},
  };
  for (const auto& [words, sentence] : kCases) {
    const Finished failed = run(words);
    EXPECT_EQ(failed.code, 2);
    EXPECT_EQ(failed.out, "");
    EXPECT_EQ(failed.err, "workflow-runner: " + sentence + "\n");
  }
}

TEST_F(InstantCommands, UsageErrorsAreJsonWhenAskedFor) {
  const Finished failed = run({"chekc", "x.json", "--json"});

  EXPECT_EQ(failed.code, 2);
  EXPECT_EQ(failed.err, "");
  EXPECT_EQ(failed.json()["error"]["kind"], "usage");
  EXPECT_EQ(failed.json()["error"]["exit_code"], 2);
  EXPECT_EQ(failed.json()["error"]["message"],
            "there is no command \"chekc\"; did you mean \"check\"?");
}

TEST_F(InstantCommands, CheckFindsNothingWrongWithAGoodDocument) {
  given_points();
  given_document(3);

  const Finished checked = run({"check", "points.json"});

  EXPECT_EQ(checked.err, "");
  EXPECT_EQ(checked.out, "points.json: no problems found\n");
  EXPECT_EQ(checked.code, 0);
  EXPECT_EQ(run({"check", "points.json", "--quiet"}).out, "");
}

TEST_F(InstantCommands, CheckGivesTheResolvedDocumentAsJson) {
  given_document(3);

  const json answer = run({"check", "points.json", "--json", "--set", "seed=11"}).json();

  EXPECT_EQ(answer.at("problems"), json::array());
  EXPECT_EQ(answer.at("resolved").at("seed"), 11);
  EXPECT_EQ(answer.at("resolved").at("schedule").at("use"), "constant");
}

TEST_F(InstantCommands, CheckReportsEveryProblemAtOnce) {
  write("bad.json", R"({
  "treadle": 1,
  "data": {"use": "csv", "path": "points.csv", "target": "class"},
  "modle": {"use": "mlp"},
  "model": {"use": "mpl"},
  "seed": -3
})");

  const Finished failed = run({"check", "bad.json"});

  EXPECT_EQ(failed.code, 3);
  EXPECT_EQ(failed.out, "");
  EXPECT_THAT(failed.err, HasSubstr("bad.json:4: /modle: unknown key \"modle\""));
  EXPECT_THAT(failed.err, HasSubstr("bad.json:5: /model"));
  EXPECT_THAT(failed.err, HasSubstr("did you mean \"mlp\"?"));
  EXPECT_THAT(failed.err, HasSubstr("bad.json:6: /seed: must be >= 0, got -3"));
  EXPECT_EQ(std::count(failed.err.begin(), failed.err.end(), '\n'), 3) << failed.err;
}

TEST_F(InstantCommands, CheckGivesEveryProblemToPrograms) {
  write("bad.json", R"({"treadle": 1, "seed": -3,
 "data": {"use": "csv", "path": "p.csv", "target": "t"}, "model": {"use": "mlp"}, "precision": "f8"})");

  const Finished failed = run({"check", "bad.json", "--json"});

  EXPECT_EQ(failed.code, 3);
  const json error = failed.json()["error"];
  EXPECT_EQ(error["kind"], "document");
  ASSERT_EQ(error["problems"].size(), 2U);
  EXPECT_EQ(error["problems"][0]["pointer"], "/seed");
  EXPECT_EQ(error["problems"][0]["line"], 1);
  EXPECT_EQ(error["problems"][1]["pointer"], "/precision");
  EXPECT_EQ(error["problems"][1]["line"], 2);
}

TEST_F(InstantCommands, CheckRefusesWhatCutsTheBatchesOfALossThatIsNoSumOverRows) {
  write("cut.json", R"({"treadle": 1, "data": {"use": "friedman1"}, "model": "linear",
 "loss": "correlation",
 "resources": {"shards": 2},
 "training": {"gradients": {"use": "truncated_bptt",
   "inner": {"use": "accumulate", "micro_batches": 4}}}})");

  const Finished failed = run({"check", "cut.json", "--json"});

  EXPECT_EQ(failed.code, 3);
  const json shards = failed.json()["error"]["problems"];
  ASSERT_EQ(shards.size(), 1U);
  EXPECT_EQ(shards[0]["pointer"], "/resources/shards");
  EXPECT_EQ(shards[0]["line"], 3);
  EXPECT_THAT(shards[0]["message"].get<std::string>(), HasSubstr("\"correlation\""));
  const Finished of_parts = run({"check", "cut.json", "--json", "--set", "resources.shards=1"});
  EXPECT_EQ(of_parts.code, 3);
  const json parts = of_parts.json()["error"]["problems"];
  ASSERT_EQ(parts.size(), 1U) << parts.dump(1);
  EXPECT_EQ(parts[0]["pointer"], "/training/gradients/inner");
  EXPECT_EQ(parts[0]["line"], 5);
  EXPECT_THAT(parts[0]["message"].get<std::string>(),
              AllOf(HasSubstr("\"correlation\""), HasSubstr("in parts")));
  EXPECT_EQ(run({"run", "cut.json", "--set", "resources.shards=1"}).code, 3);
  EXPECT_EQ(run({"check", "cut.json", "--set", "loss=mse"}).code, 0);
  EXPECT_EQ(run({"check", "cut.json", "--set", "resources.shards=auto", "--set",
                 "training.gradients=truncated_bptt"})
                .code,
            0);
}

TEST_F(InstantCommands, CheckSaysWhatIsWrongWithTheFileItself) {
  write("empty.json", "");
  write("twice.json", "{\"treadle\": 1,\n \"treadle\": 1}");
  write("broken.json", "{\"treadle\": 1,\n \"name\": }");
  const struct {
    std::string file;
    std::string part;
  } kCases[] = {{"missing.json", "missing.json"},
                {"empty.json", "empty.json"},
                {"twice.json", "twice.json:2: "},
                {"broken.json", "broken.json:2: "}};
  for (const auto& [file, part] : kCases) {
    const Finished failed = run({"check", file});
    EXPECT_EQ(failed.code, 3) << file;
    EXPECT_THAT(failed.err, AllOf(StartsWith("workflow-runner: "), HasSubstr(part)));
  }
}

TEST_F(InstantCommands, OverridesAreCheckedToo) {
  given_document(3);

  const Finished failed = run({"check", "points.json", "--set", "optimizer.learning_rate=-1"});

  EXPECT_EQ(failed.code, 3);
  EXPECT_THAT(failed.err,
              HasSubstr("--set optimizer.learning_rate=-1: /optimizer/learning_rate: "));
  EXPECT_EQ(run({"check", "points.json", "--set", "seed"}).code, 2);
}

TEST_F(InstantCommands, ListComponentsByInterface) {
  const Finished list = run({"plugins", "list"});

  EXPECT_EQ(list.code, 0);
  EXPECT_THAT(list.out, HasSubstr("\noptimizer"));
  EXPECT_THAT(list.out, HasSubstr("\n  adamw"));
  EXPECT_THAT(list.out, HasSubstr("(installed)"));
}

TEST_F(InstantCommands, ListGivesProgramsEveryPluginWithItsComponents) {
  const json answer = run({"plugins", "list", "--json"}).json();

  bool found = false;
  for (const json& plugin : answer.at("plugins")) {
    EXPECT_EQ(plugin["verdict"], "usable") << plugin.dump();
    for (const json& component : plugin["components"])
      found |= component["interface"] == "optimizer" && component["name"] == "adamw";
  }
  EXPECT_TRUE(found);
}

TEST_F(InstantCommands, ListSaysWhyAFileCannotBeUsed) {
  write("mine/text.so", "this is not a library");
  fs::permissions(folder() / "mine", fs::perms::owner_all);
  fs::permissions(folder() / "mine/text.so", fs::perms::owner_all);

  const Finished list = run({"plugins", "list", "--plugin-dir", "mine"});

  EXPECT_EQ(list.code, 0);
  EXPECT_THAT(list.out, HasSubstr("cannot be used\n  " + (folder() / "mine/text.so").string()));
}

TEST_F(InstantCommands, RefuseAPluginFolderThatIsNotThere) {
  const Finished failed = run({"plugins", "list", "--plugin-dir", "nowhere"});

  EXPECT_EQ(failed.code, 2);
  EXPECT_THAT(failed.err, HasSubstr("nowhere"));
}

TEST_F(InstantCommands, DescribeExplainsParametersAndHowToUseThem) {
  const Finished described = run({"plugins", "describe", "optimizer", "adamw"});

  EXPECT_EQ(described.code, 0);
  EXPECT_THAT(described.out, StartsWith("optimizer adamw"));
  EXPECT_THAT(described.out, HasSubstr("learning_rate"));
  EXPECT_THAT(described.out, HasSubstr("In a document:"));
  EXPECT_EQ(run({"plugins", "describe", "optimizer", "adamw", "--json"}).json()["name"], "adamw");
}

TEST_F(InstantCommands, DescribeListsTheKeysThatDocumentsAdd) {
  const std::string training = run({"plugins", "describe", "training", "standard"}).out;
  EXPECT_THAT(training, AllOf(HasSubstr("It takes no parameters of its own.\n"),
                              HasSubstr("\nKeys of every training:\n\nKEY "),
                              HasSubstr("\nbatch_size "), HasSubstr("\ncheckpoint.every ")));
  EXPECT_THAT(run({"plugins", "describe", "layer", "dense"}).out,
              AllOf(HasSubstr("\nout_features "), HasSubstr("\nKeys of every layer:\n"),
                    HasSubstr("\ntag ")));
  EXPECT_EQ(run({"plugins", "describe", "csv", "--json"}).json()["slot_keys"][0]["name"], "task");
}

TEST_F(InstantCommands, DescribeShowsSamplesThatDocumentsMayHave) {
  json layers = json::array();
  const auto expect_accepted = [this](const std::string& name, const json& keys) {
    json document{{"treadle", 1}, {"data", {{"use", "moons"}}}, {"model", {{"use", "linear"}}}};
    document.update(keys);
    write("sample.json", document.dump());
    const Finished checked = run({"check", "sample.json"});
    EXPECT_EQ(checked.code, 0) << name << ": " << checked.err;
  };
  const json plugins = run({"plugins", "list", "--json"}).json().at("plugins");
  for (const json& plugin : plugins) {
    for (const json& component : plugin.at("components")) {
      const std::string word = component.at("interface");
      const std::string name = component.at("name");
      const json sample = run({"plugins", "describe", word, name, "--json"}).json().at("sample");
      if (word == "graph") {
        layers.push_back({{"use", "graph"}, {"builder", sample}});
      } else if (word == "tokenizer") {
        expect_accepted(
            word + " " + name,
            {{"data", {{"use", "text"}, {"path", "points.csv"}, {"tokenizer", sample}}}});
      } else if (word == "tuner" || word == "pruner" || word == "storage") {
        json search = sample.at("search");
        search["trials"] = 2;
        search["space"] = {{"optimizer.learning_rate", {{"uniform", {0.1, 0.2}}}}};
        expect_accepted(word + " " + name, {{"search", search}});
      } else if (word == "writer") {
        EXPECT_EQ(sample.value("use", ""), name) << "for the command line, not for documents";
      } else if (sample.contains("use")) {
        ASSERT_EQ(word, "layer") << name;
        layers.push_back(sample);
      } else {
        expect_accepted(word + " " + name, sample);
      }
    }
  }
  EXPECT_GT(layers.size(), 80u);
  expect_accepted("layers", {{"model", {{"use", "flow"}, {"flow", layers}}}});
}

TEST_F(InstantCommands, DescribeShowsSamplesThatCanBeRun) {
  given_points();
  for (const char* name : {"prometheus", "flow"}) {
    const std::string word = name == std::string("flow") ? "model" : "observer";
    given_document(1, run({"plugins", "describe", word, name, "--json"}).json().at("sample"));
    const Finished checked = run({"check", "points.json", "--dry-run"});
    EXPECT_EQ(checked.code, 0) << name << ": " << checked.err;
  }
  // Their schema takes any condition, also none.
  for (const char* name : {"stop", "scale_learning_rate"}) {
    EXPECT_THAT(run({"plugins", "describe", "callback", name}).out,
                HasSubstr(R"("monitor": "val_loss")"));
  }
}

TEST_F(InstantCommands, CheckSaysWhereAMisplacedKeyBelongs) {
  given_document(1, {{"folds", 5},
                     {"validation", "k_fold"},
                     {"training", {{"divergence_guard", json::object()}, {"schedule", "cosine"}}}});
  const std::string problems = run({"check", "points.json"}).err;

  EXPECT_THAT(problems, HasSubstr("unknown key \"folds\"; did you mean \"validation.folds\"? ("));
  EXPECT_THAT(problems, HasSubstr("unknown key \"divergence_guard\"; it is a component (callback): "
                                  "write {\"use\": \"divergence_guard\"} in "
                                  "\"training.callbacks\" ("));
  EXPECT_THAT(problems,
              HasSubstr("unknown key \"schedule\"; did you mean \"schedule\" at the top level? ("));

  given_document(1, {{"folds", 5}});
  EXPECT_THAT(run({"check", "points.json"}).err,
              AllOf(HasSubstr("unknown key \"folds\"; did you mean \"validation.folds\" with "),
                    HasSubstr("\"validation.folds\" with {\"use\": \"k_fold\"}")));
}

TEST_F(InstantCommands, CheckDoesNotListEveryLayer) {
  given_document(1, {{"model", {{"use", "flow"}, {"flow", {"my_layer", "head"}}}}});
  const std::string problems = run({"check", "points.json"}).err;

  EXPECT_THAT(problems, AllOf(HasSubstr("no plugin offers the layer \"my_layer\" (there are "),
                              HasSubstr(", see \"workflow-runner plugins list layer\"; "),
                              Not(HasSubstr("adaptive_avg_pool1d"))));
}

TEST_F(InstantCommands, DescribeSuggestsWhatMayHaveBeenMeant) {
  const Finished component = run({"plugins", "describe", "optimizer", "adma"});
  const Finished interface = run({"plugins", "describe", "optimiser", "adam"});

  EXPECT_EQ(component.code, 2);
  EXPECT_THAT(component.err, HasSubstr("did you mean \"adam\""));
  EXPECT_EQ(interface.code, 2);
  EXPECT_THAT(interface.err, HasSubstr("optimizer"));
}

TEST_F(InstantCommands, DescribeNeedsNoInterfaceWhereTheNameSaysIt) {
  EXPECT_EQ(run({"plugins", "describe", "adamw"}).out,
            run({"plugins", "describe", "optimizer", "adamw"}).out);
  const Finished misspelt = run({"plugins", "describe", "adamww"});
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_THAT(misspelt.err, HasSubstr("did you mean \"adamw\""));
}

TEST_F(InstantCommands, ListShowsOneInterfaceAlone) {
  const Finished list = run({"plugins", "list", "optimizer"});
  EXPECT_EQ(list.code, 0);
  EXPECT_THAT(list.out, AllOf(HasSubstr("\n  adamw"), Not(HasSubstr("\n  mlp "))));
  const json plugins = run({"plugins", "list", "optimizer", "--json"}).json().at("plugins");
  EXPECT_THAT(plugins.dump(), AllOf(HasSubstr("adamw"), Not(HasSubstr("\"mlp\""))));
  EXPECT_THAT(run({"plugins", "list", "optimiser"}).err, HasSubstr("did you mean \"optimizer\""));
}

TEST_F(InstantCommands, FitTheTerminal) {
  if (!terminals_exist())
    GTEST_SKIP() << "this machine gives the test no terminal";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, std::vector<std::string>{"run", "--help"},
        std::vector<std::string>{"plugins", "list", "layer"},
        std::vector<std::string>{"plugins", "describe", "csv"}}) {
    const std::string out = run_on_terminal(words).out;
    // The piece of a document at the end is to be copied.
    std::istringstream text(out.substr(0, out.find("In a document:")));
    for (std::string line; std::getline(text, line);) {
      std::size_t columns = 0;
      for (const char c : line)
        columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
      EXPECT_LE(columns, 101U) << line;  // with the carriage return
    }
  }
}

TEST_F(InstantCommands, OverridesThatMissAKeyOfTheDocumentNameIt) {
  given_points();
  given_document(2);
  EXPECT_THAT(run({"check", "points.json", "--set", "training.epoch=3"}).err,
              HasSubstr("did you mean \"epochs\""));
  EXPECT_THAT(run({"check", "points.json", "--set", "optimizer.lr=1"}).err,
              HasSubstr("did you mean \"learning_rate\""));
  const Finished flag = run({"run", "points.json", "--epochs", "5"});
  EXPECT_EQ(flag.code, 2);
  EXPECT_THAT(flag.err, HasSubstr("did you mean \"--set training.epochs=5\""));
}

TEST_F(InstantCommands, NewWritesAProjectAndSaysWhatToTypeNext) {
  const std::string prefix = fs::path(runner()).parent_path().parent_path().string();
  set("PATH", "/usr/bin");

  const Finished written = run({"plugins", "new", "schedule", "my_rate"});

  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_THAT(written.out, StartsWith("Wrote my-rate:\n  .clang-format\n"));
  EXPECT_THAT(
      written.out,
      HasSubstr("\nNext:\n  cmake -S my-rate -B my-rate/build -DCMAKE_PREFIX_PATH=" + prefix +
                "\n  cmake --build my-rate/build\n"
                "  ctest --test-dir my-rate/build --output-on-failure\n"));
  EXPECT_THAT(read("my-rate/my_rate.cpp"), HasSubstr("class MyRate final"));
}

TEST_F(InstantCommands, NewKnowsThatCMakeLooksBesideThePath) {
  set("PATH", "/usr/bin:" + fs::path(runner()).parent_path().string());

  const json answer = run({"plugins", "new", "loss", "mine", "--dir", "a b", "--json"}).json();

  EXPECT_EQ(answer["folder"], (folder() / "a b").string());
  EXPECT_THAT(answer["files"], testing::Contains("mine.cpp"));
  EXPECT_EQ(answer["next"][0], "cmake -S 'a b' -B 'a b/build'");
}

TEST_F(InstantCommands, NewSuggestsWhatMayHaveBeenMeant) {
  const Finished failed = run({"plugins", "new", "optimiser", "lion"});

  EXPECT_EQ(failed.code, 2);
  EXPECT_THAT(failed.err, HasSubstr("workflow-runner: there is no interface \"optimiser\"; did you "
                                    "mean \"optimizer\"?\n"));
  EXPECT_FALSE(fs::exists(folder() / "lion"));
}

TEST_F(InstantCommands, SchemaIsJsonThatKnowsEveryComponent) {
  const Finished schema = run({"schema"});

  EXPECT_EQ(schema.code, 0);
  EXPECT_EQ(schema.json()["$schema"], "http://json-schema.org/draft-07/schema#");
  EXPECT_THAT(schema.out, AllOf(HasSubstr("\"adamw\""), HasSubstr("\"k_fold\"")));
}

TEST_F(InstantCommands, PrintNoEscapeCodesIntoAPipe) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--help"}, {"plugins", "list"}, {"plugins", "describe", "optimizer", "adamw"}})
    EXPECT_THAT(run(words).out, Not(HasSubstr("\x1b")));
}

TEST_F(InstantCommands, PrintNoEscapeCodesWhenColoursAreNotWanted) {
  if (!terminals_exist())
    GTEST_SKIP() << "this machine gives the test no terminal";
  EXPECT_THAT(run_on_terminal({"plugins", "list"}).out, HasSubstr("\x1b[1m"));
  set("NO_COLOR", "1");
  EXPECT_THAT(run_on_terminal({"plugins", "list"}).out, Not(HasSubstr("\x1b")));
}

TEST_F(InstantCommands, LoadNoLibtorch) {
  const std::string libraries = output_of(std::string("ldd ") + std::getenv("TREADLE_RUNNER"));

  EXPECT_THAT(libraries, HasSubstr("libtreadle-base.so"));
  for (const char* library : {"libtorch", "libc10", "libtbb", "libtreadle-core"})
    EXPECT_THAT(libraries, Not(HasSubstr(library)));
}

TEST_F(InstantCommands, ReportHowLongTheyTook) {
  given_document(3);
  run({"check", "points.json"});  // fills the cache
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"--help"}, {"plugins", "list"}, {"check", "points.json"}}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(run(words).code, 0);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    RecordProperty(words.front() + "_ms", std::to_string(time.count()));
    std::cout << "workflow-runner " << words.front() << ": " << time.count() << " ms\n";
  }
}

}  // namespace
}  // namespace treadle
