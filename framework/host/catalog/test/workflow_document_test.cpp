#include <treadle/host/catalog/workflow_document.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "fake_components.h"

namespace treadle {
namespace {

using nlohmann::json;

std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

ResolvedWorkflow resolve(std::string_view text) {
  return resolve_workflow(Document::parse(text, "/home/me/my.json"), FakeComponents());
}

std::string refusal_of(std::string_view text) {
  return failure_of([&] { resolve(text); });
}

constexpr const char* kSmallest = R"({"treadle": 1, "data": {"use": "moons"}, "model": "mlp"})";

TEST(WorkflowSchema, IsSound) {
  std::string problems;
  for (const Problem& problem : check_schema(workflow_schema()))
    problems += problem.text() + "\n";
  EXPECT_EQ(problems, "");
}

TEST(WorkflowDocument, FillsInEverythingThatDoesNotDependOnTheData) {
  EXPECT_EQ(resolve(kSmallest).resolved, json::parse(R"({
      "treadle": 1, "name": "run", "seed": 0, "precision": "float32",
      "data": {"use": "moons", "rows": 100, "task": "auto"}, "transforms": [],
      "model": {"use": "mlp", "hidden": [64], "activation": "relu"},
      "optimizer": {"use": "adamw", "learning_rate": 0.001, "betas": [0.9, 0.999]},
      "schedule": {"use": "constant"},
      "training": {"use": "standard", "batch_size": 32,
        "evaluation_batch_size": 1024, "evaluate_every": 1, "drop_last": false,
        "callbacks": [], "checkpoint": {"every": "30s", "keep": 2}},
      "validation": {"use": "hold_out", "fraction": 0.2},
      "observers": [],
      "resources": {"device": "auto", "workers": "auto", "shards": 1,
        "execution": "eager", "intra_op_threads": 1}})"));
}

TEST(WorkflowDocument, ResolvesTheDocumentOfTheReadme) {
  const ResolvedWorkflow workflow = resolve(kIrisDocument);

  EXPECT_EQ(workflow.name, "iris");
  EXPECT_EQ(workflow.seed, 7U);
  EXPECT_EQ(workflow.precision, "float32");
  EXPECT_EQ(workflow.resolved["data"]["path"], "/home/me/data/iris.csv");
  EXPECT_EQ(workflow.resolved["metrics"],
            json::parse(R"([{"use": "accuracy"}, {"use": "macro_f1"}])"));
  EXPECT_EQ(workflow.resolved["schedule"], json::parse(R"({"use": "cosine", "warmup": "5%"})"));
  EXPECT_EQ(workflow.resolved["training"]["early_stopping"],
            json::parse(R"({"use": "early_stopping", "patience": "10ep", "mode": "min"})"));
}

TEST(WorkflowDocument, ResolvesToItself) {
  // Of a loop without steps the defaults of an optimizer are no part: written, they are refused.
  for (const std::string_view text :
       {std::string_view(kSmallest), std::string_view(kIrisDocument),
        std::string_view(R"({"treadle": 1, "data": "moons", "model": "mlp",
                             "training": {"use": "one_pass"}})")}) {
    const json once = resolve(text).resolved;
    EXPECT_EQ(resolve(once.dump()).resolved, once);
  }
}

TEST(WorkflowDocument, HandsOutSlotsThatKnowTheirLines) {
  const ResolvedWorkflow workflow = resolve(kIrisDocument);
  const Config optimizer = workflow.slot("optimizer");

  EXPECT_EQ(optimizer.get<double>("learning_rate"), 0.01);
  EXPECT_EQ(failure_of([&] { optimizer.fail("learning_rate", "is odd"); }),
            "/home/me/my.json:7: /optimizer/learning_rate: is odd");
}

TEST(WorkflowDocument, ReportsEveryProblemAtOnce) {
  EXPECT_EQ(
      refusal_of(
          "{\n\"treadle\": 1,\n\"name\": \"a b\",\n\"seed\": -1,\n\"precision\": \"float\",\n"
          "\"data\": {\"use\": \"csv\", \"target\": -1},\n"
          "\"model\": {\"use\": \"mlp\", \"activation\": \"rely\"},\n"
          "\"optimizer\": {\"learning_rat\": 1},\n"
          "\"schedule\": {\"use\": \"cosin\", \"warmup\": \"soon\"},\n"
          "\"metrics\": \"accuracy\",\n\"resources\": {\"workers\": \"many\"},\n"
          "\"optimiser\": {}}"),
      "/home/me/my.json:3: /name: must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$, got \"a b\"\n"
      "/home/me/my.json:4: /seed: must be >= 0, got -1\n"
      "/home/me/my.json:5: /precision: must be one of \"float32\", \"float64\", \"bf16\", "
      "\"bf16-mixed\", \"fp16-mixed\", \"fp8-tensorwise\", \"fp8-rowwise\", \"fp8-delayed\", "
      "got \"float\"; did you mean \"float32\" or \"float64\"?\n"
      "/home/me/my.json:6: /data: required key \"path\" is missing (the file to read)\n"
      "/home/me/my.json:6: /data/target: must be >= 0, got -1\n"
      "/home/me/my.json:7: /model/activation: must be one of \"relu\", \"gelu\", got \"rely\"; "
      "did you mean \"relu\"?\n"
      "/home/me/my.json:8: /optimizer/learning_rat: unknown key \"learning_rat\"; did you mean "
      "\"learning_rate\"? (optimizer adamw takes: betas, groups, learning_rate)\n"
      "/home/me/my.json:9: /schedule/use: there is no schedule \"cosin\"\n"
      "/home/me/my.json:9: /schedule/warmup: expected a duration such as \"5%\", \"10ep\" "
      "(epochs), \"500st\" (steps), \"2h\", \"30min\" or \"45s\", got \"soon\"\n"
      "/home/me/my.json:10: /metrics: expected an array, got \"accuracy\" (text)\n"
      "/home/me/my.json:11: /resources/workers: expected a whole number or \"auto\", got "
      "\"many\" (text)\n"
      "/home/me/my.json:12: /optimiser: unknown key \"optimiser\" (a workflow takes: $schema, "
      "baselines, data, explain, extensions, loss, metrics, model, name, observers, optimizer, "
      "outputs, precision, resources, "
      "schedule, search, seed, sequence, training, transforms, treadle, validation)");
}

TEST(WorkflowDocument, SaysWhatTheSmallestDocumentNeeds) {
  EXPECT_EQ(refusal_of("{}"),
            "/home/me/my.json:1: required key \"treadle\" is missing (the version of this format: "
            "1)\n"
            "/home/me/my.json:1: required key \"data\" is missing (where the rows come from)\n"
            "/home/me/my.json:1: required key \"model\" is missing (the network to train)");
  EXPECT_EQ(refusal_of("[]"), "/home/me/my.json:1: expected an object, got an array");
}

TEST(WorkflowDocument, RefusesAnotherFormatWithoutLookingFurther) {
  EXPECT_EQ(refusal_of("{\n\"treadle\": 2, \"whatever\": 3}"),
            "/home/me/my.json:2: /treadle: this document has \"treadle\": 2; this runner reads 1");
  EXPECT_EQ(refusal_of(R"({"treadle": "1", "data": "moons", "model": "mlp"})"),
            "/home/me/my.json:1: /treadle: must be 1, got \"1\"");
}

TEST(WorkflowDocument, AcceptsWhatBelongsToOthers) {
  EXPECT_EQ(refusal_of(R"({"$schema": "x.json", "treadle": 1, "data": "moons", "model": "mlp",
                           "extensions": {"anything": [1, {"at": "all"}]}})"),
            "accepted");
}

/// Loss, shards and gradients on a line each, from the second on.
std::string document_with(const char* loss, const char* shards, const char* gradients) {
  return std::string("{\"treadle\": 1, \"data\": \"moons\", \"model\": \"mlp\",\n") +
         "\"loss\": " + loss + ",\n\"resources\": {\"shards\": " + shards +
         "},\n\"training\": {\"gradients\": " + gradients + "}}";
}

std::vector<Problem> problems_of(const std::string& text) {
  try {
    resolve(text);
  } catch (const DocumentError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDocument);
    return error.problems();
  }
  return {};
}

auto is_problem(int line, const std::string& pointer, const std::vector<std::string>& words) {
  using ::testing::AllOf;
  using ::testing::Field;
  std::vector<::testing::Matcher<std::string>> parts;
  for (const std::string& word : words)
    parts.push_back(::testing::HasSubstr(word));
  return AllOf(Field(&Problem::place, Field(&Place::line, line)), Field(&Problem::pointer, pointer),
               Field(&Problem::message, ::testing::AllOfArray(parts)));
}

TEST(WorkflowDocument, RefusesShardsOfALossThatIsNoSumOverRows) {
  using ::testing::ElementsAre;
  const char* const whole = R"("truncated_bptt")";
  const auto of_shards =
      is_problem(3, "/resources/shards", {"\"correlation\"", "shards", "1", "4"});

  EXPECT_THAT(problems_of(document_with(R"("correlation")", "4", whole)), ElementsAre(of_shards));
  EXPECT_THAT(problems_of(document_with(R"(["cross_entropy", {"use": "correlation", "factor": 2}])",
                                        "4", whole)),
              ElementsAre(of_shards));
}

TEST(WorkflowDocument, RefusesMixedRowsBesideALossThatIsNoSumOverRows) {
  using ::testing::ElementsAre;
  const auto document = [](const char* loss) {
    return std::string("{\"treadle\": 1, \"data\": \"moons\", \"model\": \"mlp\",\n") +
           "\"transforms\": [\"standardize\",\n\"mixup\"],\n\"loss\": \"" + loss + "\"}";
  };

  EXPECT_THAT(problems_of(document("correlation")),
              ElementsAre(is_problem(3, "/transforms/1", {"\"correlation\"", "\"mixup\""})));
  EXPECT_THAT(problems_of(document("cross_entropy")), ElementsAre());
}

TEST(WorkflowDocument, RefusesWhatIsGivenTwice) {
  EXPECT_THAT(problems_of(R"({"treadle": 1, "data": "moons", "model": "mlp",
"metrics": ["accuracy", "macro_f1",
"accuracy"]})"),
              ::testing::ElementsAre(is_problem(3, "/metrics/2", {"\"accuracy\"", "twice"})));
}

TEST(WorkflowDocument, RefusesTwoAveragesOfTheWeights) {
  const auto document = [](const std::string& callbacks) {
    return R"({"treadle": 1, "data": "moons", "model": "mlp",
"training": {"callbacks": )" +
           callbacks + "}}";
  };
  EXPECT_THAT(problems_of(document(R"(["ema",
{"use": "swa"}])")),
              ::testing::ElementsAre(
                  is_problem(3, "/training/callbacks/1", {"\"ema\" and \"swa\"", "leave one"})));
  EXPECT_EQ(refusal_of(document(R"(["ema"])")), "accepted");
}

TEST(WorkflowDocument, AcceptsWhatLeavesBatchesWholeAndWhatCutsThoseOfASum) {
  for (const char* const shards : {"1", "\"auto\""})
    EXPECT_EQ(refusal_of(document_with(R"("correlation")", shards, R"("truncated_bptt")")),
              "accepted");
  EXPECT_EQ(refusal_of(document_with(R"("cross_entropy")", "4", R"("accumulate")")), "accepted");
}

TEST(WorkflowDocument, HasExtensionsAtTheTopAlone) {
  EXPECT_THAT(problems_of(R"({"treadle": 1, "data": "moons",
                              "model": {"use": "mlp", "extensions": {}},
                              "training": {"checkpoint": {"extensions": {}}}})"),
              ::testing::ElementsAre(is_problem(2, "/model/extensions", {"top level"}),
                                     is_problem(3, "/training/checkpoint/extensions", {})));
}

TEST(ApplyOverride, ChangesOneValue) {
  const auto document = Document::parse(kSmallest, "my.json");
  apply_override(*document, "optimizer.learning_rate=0.003");
  apply_override(*document, "data.task=regression");
  apply_override(*document, "name=a=b");

  EXPECT_EQ(document->value()["name"], "a=b");
  EXPECT_EQ(failure_of([&] { apply_override(*document, "optimizer.learning_rate"); }),
            "--set expects key=value, as in optimizer.learning_rate=0.003, got "
            "\"optimizer.learning_rate\"");
  EXPECT_EQ(failure_of([&] { apply_override(*document, "=3"); }),
            "--set expects key=value, as in optimizer.learning_rate=0.003, got \"=3\"");

  apply_override(*document, "name=run");
  const ResolvedWorkflow workflow = resolve_workflow(document, FakeComponents());
  EXPECT_EQ(workflow.resolved["optimizer"]["use"], "adamw");
  EXPECT_EQ(workflow.resolved["optimizer"]["learning_rate"], 0.003);
  EXPECT_EQ(workflow.resolved["data"]["task"], "regression");
}

TEST(ApplyOverride, IsNamedInTheProblemsItCauses) {
  const auto document = Document::parse(kSmallest, "my.json");
  apply_override(*document, "optimizer.learning_rate=-1");

  EXPECT_EQ(failure_of([&] { resolve_workflow(document, FakeComponents()); }),
            "--set optimizer.learning_rate=-1: /optimizer/learning_rate: must be > 0, got -1");
}

TEST(ReadWorkflow, ReadsAFileAndAppliesOverridesInTheirOrder) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) /
                                       ("workflow_document_test." + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "my.json") << kIrisDocument;
  const std::vector<std::string> overrides{"seed=1", "seed=2", "optimizer.learning_rate=0.5"};

  const ResolvedWorkflow workflow = read_workflow(folder / "my.json", overrides, FakeComponents());

  EXPECT_EQ(workflow.seed, 2U);
  EXPECT_EQ(workflow.resolved["optimizer"]["learning_rate"], 0.5);
  EXPECT_EQ(workflow.resolved["data"]["path"], (folder / "data/iris.csv").string());
  std::filesystem::remove_all(folder);

  EXPECT_EQ(failure_of([] { read_workflow("my.json", {}, FakeComponents()); }),
            "my.json: no such file");
}

TEST(WriteWorkflow, IsReadableAndReadsBack) {
  const json resolved = resolve(kIrisDocument).resolved;

  const std::string text = write_workflow(resolved);

  EXPECT_EQ(json::parse(text), resolved);
  EXPECT_EQ(text, R"({
  "treadle": 1,
  "name": "iris",
  "seed": 7,
  "precision": "float32",
  "data": {
    "use": "csv",
    "path": "/home/me/data/iris.csv",
    "target": "species",
    "task": "auto"
  },
  "transforms": [{"use": "standardize"}],
  "model": {
    "use": "mlp",
    "activation": "relu",
    "hidden": [16, 16]
  },
  "loss": {"use": "cross_entropy", "label_smoothing": 0.0},
  "optimizer": {
    "use": "adamw",
    "betas": [0.9, 0.999],
    "learning_rate": 0.01
  },
  "schedule": {"use": "cosine", "warmup": "5%"},
  "training": {
    "use": "standard",
    "batch_size": 16,
    "callbacks": [],
    "checkpoint": {"every": "30s", "keep": 2},
    "drop_last": false,
    "early_stopping": {
      "use": "early_stopping",
      "mode": "min",
      "patience": "10ep"
    },
    "epochs": 60,
    "evaluate_every": 1,
    "evaluation_batch_size": 1024
  },
  "validation": {"use": "k_fold", "folds": 5, "stratify": true},
  "metrics": [{"use": "accuracy"}, {"use": "macro_f1"}],
  "observers": [],
  "resources": {
    "device": "auto",
    "execution": "eager",
    "intra_op_threads": 1,
    "shards": 1,
    "workers": "auto"
  }
}
)");
}

TEST(WorkflowDocument, NamesADeviceThatAPluginOffers) {
  const auto with = [](const std::string& device) {
    return R"({"treadle": 1, "data": "moons", "model": "mlp", "optimizer": "adamw",
               "resources": {"device": ")" +
           device + "\"}}";
  };
  for (const char* device : {"auto", "cpu", "cpu:0", "cpu:12"})
    EXPECT_EQ(resolve(with(device)).resolved["resources"]["device"], device);

  using ::testing::ElementsAre;
  EXPECT_THAT(problems_of(with("cp")), ElementsAre(is_problem(2, "/resources/device", {"\"cp\""})));
  for (const char* device : {"", ":1", "cpu:", "cpu:x", "cpu:-1", "cpu:1:2"}) {
    EXPECT_THAT(problems_of(with(device)),
                ElementsAre(is_problem(2, "/resources/device", {"\"auto\"", "cuda:1"})));
  }
}

TEST(WorkflowDocument, NamesACommunicatorThatAPluginOffers) {
  const auto with = [](const std::string& communicator) {
    return R"({"treadle": 1, "data": "moons", "model": "mlp", "optimizer": "adamw",
               "resources": {"communicator": ")" +
           communicator + "\"}}";
  };
  for (const char* communicator : {"auto", "gloo"})
    EXPECT_EQ(resolve(with(communicator)).resolved["resources"]["communicator"], communicator);

  using ::testing::ElementsAre;
  for (const char* communicator : {"glo", ""}) {
    EXPECT_THAT(problems_of(with(communicator)),
                ElementsAre(is_problem(2, "/resources/communicator",
                                       {"communicator", '"' + std::string(communicator) + '"'})));
  }
}

std::string with_one_pass(const std::string& more, const std::string& of_training = "") {
  return R"({"treadle": 1, "data": "moons", "model": "mlp",)" + more +
         R"( "training": {"use": "one_pass")" + of_training + "}}";
}

TEST(WorkflowDocument, FollowsWhatAComponentExcludesAndSets) {
  const json resolved = resolve(with_one_pass("")).resolved;
  EXPECT_EQ(resolved["training"]["epochs"], 1);
  EXPECT_FALSE(resolved.contains("optimizer")) << "nor its defaults";
  EXPECT_EQ(resolve(with_one_pass("", R"(, "epochs": 1)")).resolved["training"]["epochs"], 1);
}

TEST(WorkflowDocument, RefusesWhatAComponentExcludesOrSetsOtherwise) {
  using ::testing::ElementsAre;
  EXPECT_THAT(problems_of(with_one_pass(R"("optimizer": "adamw",)",
                                        R"(, "clip": {"norm": 1}, "epochs": 2)")),
              ElementsAre(is_problem(1, "/optimizer", {"\"one_pass\"", "leave \"optimizer\" out"}),
                          is_problem(1, "/training/clip", {"leave \"clip\" out"}),
                          is_problem(1, "/training/epochs", {"takes the rows once"})));
}

TEST(WorkflowDocument, RefusesAParameterThatIsNotAMultipleAsItsSchemaDemands) {
  using ::testing::ElementsAre;
  EXPECT_EQ(refusal_of(with_one_pass("", R"(, "window": 48, "batch_size": 16)")), "accepted");
  EXPECT_THAT(problems_of(with_one_pass("", R"(, "window": 50, "batch_size": 16)")),
              ElementsAre(is_problem(1, "/training/window", {"batch_size, 16", "48 or 64"})));
  EXPECT_THAT(problems_of(with_one_pass("", R"(, "window": 5, "batch_size": 16)")),
              ElementsAre(is_problem(1, "/training/window", {"take 16"})));
  EXPECT_THAT(problems_of(with_one_pass("", R"(, "window": 64, "batch_size": "auto")")),
              ElementsAre(is_problem(1, "/training/batch_size", {"divides its window of 64"})));
}

TEST(WriteWorkflow, KeepsEveryDigit) {
  for (const double value : {0.1, 1e-300, 1.0 / 3, 123456789.123456789, 1.0}) {
    EXPECT_EQ(json::parse(write_workflow({{"x", value}}))["x"].get<double>(), value);
  }
  EXPECT_EQ(write_workflow(json::object()), "{}\n");
}

}  // namespace
}  // namespace treadle
