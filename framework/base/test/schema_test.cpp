#include <treadle/base/schema.h>

#include <map>

#include <gmock/gmock.h>

#include <treadle/base/document.h>

#include "test/no_places.h"

namespace treadle {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

class Components final : public SchemaIndex {
 public:
  Components() {
    add("optimizer", "adamw", R"({
      "type": "object",
      "properties": {
        "learning_rate": {"type": "number", "exclusiveMinimum": 0, "default": 0.001},
        "betas": {"type": "array", "items": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
                  "minItems": 2, "maxItems": 2, "default": [0.9, 0.999]},
        "weight_decay": {"type": "number", "minimum": 0, "default": 0.01}}})");
    add("optimizer", "lookahead", R"({
      "type": "object", "required": ["inner"],
      "properties": {
        "inner": {"x-treadle-component": "optimizer", "description": "the optimizer to wrap"},
        "every": {"type": "integer", "minimum": 1, "default": 5}}})");
    add("optimizer", "endless", R"({
      "type": "object",
      "properties": {"inner": {"x-treadle-component": "optimizer", "default": "endless"}}})");
    add("data", "csv", R"({
      "type": "object", "required": ["path", "target"],
      "properties": {
        "path": {"type": "string", "x-treadle-type": "path", "description": "the file to read"},
        "target": {"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 0}],
                   "description": "the column to predict, by name or index"}}})");
    add("schedule", "cosine", R"({"type": "object"})");
    add("metric", "accuracy", R"({"type": "object"})");
    add("metric", "f1", R"({"type": "object", "properties": {
        "average": {"enum": ["macro", "micro"], "default": "macro"}}})");
  }

  FoundComponent find(std::string_view interface_word, std::string_view name) const override {
    const auto found = schemas_.find(std::string(interface_word) + " " + std::string(name));
    if (found == schemas_.end()) {
      return {nullptr, "",
              "there is no " + std::string(interface_word) + " \"" + std::string(name) + "\""};
    }
    return {std::make_shared<const json>(found->second), "test/" + std::string(name), ""};
  }

  std::vector<std::string> names(std::string_view interface_word) const override {
    std::vector<std::string> names;
    for (const auto& [key, unused] : schemas_) {
      if (key.starts_with(std::string(interface_word) + " "))
        names.push_back(key.substr(interface_word.size() + 1));
    }
    return names;
  }

 private:
  void add(const std::string& word, const std::string& name, const char* schema) {
    schemas_[word + " " + name] = json::parse(schema);
  }
  std::map<std::string, json> schemas_;
};

Checked check_text(std::string_view value, std::string_view schema,
                   const std::filesystem::path& base = {}) {
  return check(json::parse(value), json::parse(schema), Components(), NoPlaces(), "", base);
}

// The problems' texts, "pointer: message".
std::vector<std::string> problems(std::string_view value, std::string_view schema) {
  std::vector<std::string> texts;
  for (const Problem& problem : check_text(value, schema).problems)
    texts.push_back(problem.text());
  return texts;
}

json accepted(std::string_view value, std::string_view schema) {
  const Checked checked = check_text(value, schema);
  for (const Problem& problem : checked.problems)
    ADD_FAILURE() << problem.text();
  const Checked again = check(checked.value, json::parse(schema), Components(), NoPlaces());
  EXPECT_EQ(again.value, checked.value);
  EXPECT_THAT(again.problems, IsEmpty());
  return checked.value;
}

TEST(Schema, SaysOneSentenceForEachKindOfMistake) {
  struct Case {
    const char* value;
    const char* schema;
    const char* sentence;
  };
  const Case cases[] = {
      {R"("fast")", R"({"type": "number"})", "expected a number, got \"fast\" (text)"},
      {"5.0", R"({"type": "integer"})", "expected a whole number, got 5.0"},
      {"3", R"({"type": "string"})", "expected text, got 3"},
      {"null", R"({"type": ["boolean", "array"]})", "expected true or false or an array, got null"},
      {"[]", R"({"type": "object"})", "expected an object, got an array"},
      {"{}", R"({"type": "null"})", "expected null, got an object"},
      {R"("rely")", R"({"enum": ["relu", "gelu"]})",
       "must be one of \"relu\", \"gelu\", got \"rely\"; did you mean \"relu\"?"},
      {R"("float16")", R"({"enum": ["float32", "float64"]})",
       "must be one of \"float32\", \"float64\", got \"float16\""},
      {"4", R"({"type": "integer", "enum": [1, 2]})", "must be one of 1, 2, got 4"},
      {"4", R"({"type": "string", "enum": ["a"]})", "expected text, got 4"},
      {"2", R"({"const": 1})", "must be 1, got 2"},
      {"-1", R"({"exclusiveMinimum": 0})", "must be > 0, got -1"},
      {"0.0", R"({"exclusiveMinimum": 0})", "must be > 0, got 0.0"},
      {"0", R"({"minimum": 1})", "must be >= 1, got 0"},
      {"9007199254740993", R"({"maximum": 9007199254740992})",
       "must be <= 9007199254740992, got 9007199254740993"},
      {"18446744073709551615", R"({"maximum": -1})", "must be <= -1, got 18446744073709551615"},
      {"1", R"({"exclusiveMaximum": 1})", "must be < 1, got 1"},
      {R"("")", R"({"minLength": 1})", "must have at least 1 character, got \"\""},
      {R"("üüü")", R"({"maxLength": 2})", "must have at most 2 characters, got 3"},
      {R"("a b")", R"({"pattern": "^[a-z]+$"})", "must match ^[a-z]+$, got \"a b\""},
      {"[1]", R"({"minItems": 2})", "must have at least 2 elements, got 1"},
      {"[1, 2]", R"({"maxItems": 1})", "must have at most 1 element, got 2"},
      {"[1, 2, 1]", R"({"uniqueItems": true})",
       "/2: 1 stands here twice (also as element 0); remove one"},
      {"[1, true]", R"({"items": {"type": "integer"}})", "/1: expected a whole number, got true"},
      {"{}", R"({"required": ["path"], "properties": {"path": {"description": "the file"}}})",
       "required key \"path\" is missing (the file)"},
      {"{}", R"({"required": ["path"]})", "required key \"path\" is missing"},
      {R"({"a": 1})", R"({"type": "object"})", "/a: unknown key \"a\" (this object takes no keys)"},
      {R"({"b": 1})", R"({"title": "a grid", "properties": {"rows": {}}})",
       "/b: unknown key \"b\" (a grid takes: rows)"},
      {R"({"x": {"row": 1}})",
       R"({"properties": {"x": {"properties": {"rows": {}, "columns": {}}}}})",
       "/x/row: unknown key \"row\"; did you mean \"rows\"? (x takes: columns, rows)"},
      {R"({"a": "x"})", R"({"additionalProperties": {"type": "integer"}})",
       "/a: expected a whole number, got \"x\" (text)"},
      {R"("many")", R"({"oneOf": [{"type": "integer"}, {"const": "auto"}]})",
       "expected a whole number or \"auto\", got \"many\" (text)"},
      {R"("aut")", R"({"oneOf": [{"type": "integer"}, {"const": "auto"}]})",
       "expected a whole number or \"auto\", got \"aut\" (text); did you mean \"auto\"?"},
      {"300", R"({"oneOf": [{"type": "integer", "maximum": 256}, {"const": "auto"}]})",
       "must be <= 256, got 300"},
      {"3", R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
       "fits 2 of the allowed forms, and must fit only one"},
      {R"("fast")", R"({"x-treadle-type": "duration"})",
       "expected a duration such as \"5%\", \"10ep\" (epochs), \"500st\" (steps), \"2h\", "
       "\"30min\" "
       "or \"45s\", got \"fast\""},
      {"5", R"({"x-treadle-type": "duration"})",
       "expected a duration such as \"5%\", \"10ep\", \"500st\" or \"2h\", got 5"},
      // Where only some make sense, examples name them.
      {"20", R"({"type": "string", "x-treadle-type": "duration", "examples": ["2h", "90s"]})",
       "expected a duration such as \"2h\" or \"90s\", got 20"},
      {R"("2 hours")", R"({"x-treadle-type": "duration", "examples": ["2h", "90s"]})",
       "expected a duration such as \"2h\" or \"90s\", got \"2 hours\""},
      {"8", R"({"type": "string", "examples": ["8GiB"]})", "expected text such as \"8GiB\", got 8"},
      {"0.5", R"({"type": "array", "examples": [[0, 1], [2, 3]]})",
       "expected an array such as [0,1], got 0.5"},
      {R"("2h")", R"({"type": "object", "examples": [{"time": "2h"}]})",
       "expected an object such as {\"time\":\"2h\"}, got \"2h\" (text)"},
      {R"("2h")", R"({"x-treadle-type": "counted_duration"})",
       "expected a share of the training, epochs or steps (\"5%\", \"10ep\", \"500st\"), because "
       "wall time would make "
       "two runs differ; got \"2h\""},
      {"1.5", R"({"x-treadle-type": "fraction"})",
       "expected a fraction such as 0.2 or \"20%\", more than 0 and less than 1, got 1.5"},
      {R"("10ep")", R"({"x-treadle-type": "fraction"})",
       "expected a fraction such as 0.2 or \"20%\", more than 0 and less than 1, got \"10ep\" "
       "(text)"},
      {"[]", R"({"x-treadle-type": "fraction"})",
       "expected a fraction such as 0.2 or \"20%\", got an array"},
      {"1", R"({"x-treadle-type": "path"})", "expected a path (text), got 1"},
      {R"("")", R"({"x-treadle-type": "path"})", "expected a path, got \"\""},
      {"1", "false", "must be left out"},
  };
  for (const Case& wrong : cases) {
    EXPECT_THAT(problems(wrong.value, wrong.schema), ElementsAre(wrong.sentence)) << wrong.schema;
  }
}

TEST(Schema, FillsDefaultsAndNormalisesSharedTypes) {
  EXPECT_EQ(accepted(R"({"b": {}})",
                     R"({"properties": {"a": {"type": "integer", "default": 3},
                         "b": {"properties": {"c": {"default": "x"}}},
                         "d": {"properties": {"e": {"default": 1}}},
                         "f": {"properties": {"g": {"default": 2}}, "default": {}}}})"),
            json::parse(R"({"a": 3, "b": {"c": "x"}, "f": {"g": 2}})"));
  EXPECT_EQ(accepted(R"({"a": "20%", "b": 0.5, "c": "5%"})",
                     R"({"properties": {"a": {"x-treadle-type": "fraction"},
                         "b": {"type": ["number", "string"], "x-treadle-type": "fraction"},
                         "c": {"type": "string", "x-treadle-type": "duration"}}})"),
            json::parse(R"({"a": 0.2, "b": 0.5, "c": "5%"})"));
}

TEST(Schema, MakesPathsAbsolute) {
  const char* schema = R"({"properties": {"a": {"x-treadle-type": "path"},
                           "b": {"type": "array", "items": {"x-treadle-type": "path"}}}})";

  EXPECT_EQ(check_text(R"({"a": "../x/iris.csv", "b": ["/abs/y.csv", "~/z.csv"]})", schema,
                       "/home/me/project")
                .value,
            json::parse(R"({"a": "/home/me/x/iris.csv",
                            "b": ["/abs/y.csv", "/home/me/project/~/z.csv"]})"));
  EXPECT_EQ(check_text(R"({"a": "x.csv"})", schema).value["a"], "x.csv");

  const Checked refused = check_text(R"({"a": "x.csv"})", schema, "/home/caf\xE9");
  ASSERT_EQ(refused.problems.size(), 1U);
  EXPECT_EQ(refused.problems[0].message,
            "expected a path in UTF-8, got \"/home/caf\xEF\xBF\xBD/x.csv\" (text)");
}

TEST(Schema, AcceptsWhatABranchAcceptsAndFillsItsDefaults) {
  const char* schema = R"({"anyOf": [{"type": "integer"},
                           {"properties": {"every": {"type": "integer"}, "unit": {"default": "epoch"}},
                            "required": ["every"]}]})";
  EXPECT_EQ(accepted("3", schema), 3);
  EXPECT_EQ(accepted(R"({"every": 2})", schema), json::parse(R"({"every": 2, "unit": "epoch"})"));
  EXPECT_THAT(problems(R"({"every": "x"})", schema),
              ElementsAre("/every: expected a whole number, got \"x\" (text)"));
}

TEST(Schema, LeavesKeysToTheOuterSchemaInsideBranches) {
  const char* schema = R"({"properties": {"rows": {"type": "integer"}, "share": {"type": "number"}},
      "oneOf": [{"required": ["rows"], "properties": {"rows": {}}},
                {"required": ["share"], "properties": {"share": {}}}]})";
  EXPECT_EQ(accepted(R"({"rows": 1})", schema), json::parse(R"({"rows": 1})"));
  EXPECT_THAT(problems("{}", schema), ElementsAre("required key \"rows\" is missing"));
  EXPECT_THAT(problems(R"({"rows": 1, "share": 0.5})", schema),
              ElementsAre("fits 2 of the allowed forms, and must fit only one"));
}

constexpr const char* kOptimizerSlot =
    R"({"x-treadle-component": "optimizer", "default": {"use": "adamw"}})";

TEST(SchemaSlot, ExpandsNamesAndFillsTheComponentsDefaults) {
  const json expected = json::parse(R"({"use": "adamw", "learning_rate": 0.001,
                                        "betas": [0.9, 0.999], "weight_decay": 0.01})");
  EXPECT_EQ(accepted(R"("adamw")", kOptimizerSlot), expected);
  EXPECT_EQ(accepted(R"({"use": "adamw"})", kOptimizerSlot), expected);
  EXPECT_EQ(accepted("{}", kOptimizerSlot), expected);
  EXPECT_EQ(accepted("{}", R"({"properties": {"optimizer": {"x-treadle-component": "optimizer",
                               "default": "adamw"}}})")["optimizer"],
            expected);
}

TEST(SchemaSlot, ChecksParametersByTheNamedComponent) {
  EXPECT_THAT(
      problems(R"({"use": "adamw", "learning_rat": 1, "betas": [0.9, 1], "weight_decay": "x"})",
               kOptimizerSlot),
      ElementsAre("/betas/1: must be < 1, got 1",
                  "/learning_rat: unknown key \"learning_rat\"; did you mean "
                  "\"learning_rate\"? (optimizer adamw takes: betas, learning_rate, "
                  "weight_decay)",
                  "/weight_decay: expected a number, got \"x\" (text)"));
  EXPECT_THAT(problems(R"({"use": "cosine", "x": 1})", R"({"x-treadle-component": "schedule"})"),
              ElementsAre("/x: unknown key \"x\" (schedule cosine takes no keys)"));
}

TEST(SchemaSlot, NamesTheSlotThatAKeyBelongsTo) {
  const char* schema = R"({"type": "object", "title": "a workflow", "properties": {
      "optimizer": {"x-treadle-component": "optimizer", "default": "adamw"},
      "schedule": {"x-treadle-component": "schedule"}}})";
  EXPECT_THAT(problems(R"({"betas": [0.9, 0.99]})", schema),
              ElementsAre("/betas: unknown key \"betas\"; did you mean \"optimizer.betas\"? "
                          "(a workflow takes: optimizer, schedule)"));
  EXPECT_THAT(problems(R"({"path": "a", "schedule": {"use": "cosine"}})", schema),
              ElementsAre("/path: unknown key \"path\" (a workflow takes: optimizer, schedule)"));
}

TEST(SchemaSlot, LooksForAMisplacedKeyInTheWholeDocument) {
  const char* schema = R"({"type": "object", "title": "a workflow", "properties": {
      "data": {"x-treadle-component": "data"},
      "optimizer": {"x-treadle-component": "optimizer", "default": "adamw"},
      "schedule": {"x-treadle-component": "schedule", "default": "cosine"},
      "training": {"type": "object", "properties": {
          "epochs": {"type": "integer"},
          "clip": {"type": "object", "properties": {"norm": {"type": "number"}}},
          "metrics": {"type": "array", "items": {"x-treadle-component": "metric"}}}}}})";
  const std::pair<const char*, const char*> kCases[] = {
      // above, beside and below the object
      {R"({"training": {"schedule": "cosine"}})",
       "/training/schedule: unknown key \"schedule\"; did you mean \"schedule\" at the top "
       "level? "},
      {R"({"training": {"betas": [0.9, 1]}})",
       "/training/betas: unknown key \"betas\"; did you mean \"optimizer.betas\"? "},
      {R"({"optimizer": {"epochs": 3}})",
       "/optimizer/epochs: unknown key \"epochs\"; did you mean \"training.epochs\"? "},
      {R"({"norm": 3})", "/norm: unknown key \"norm\"; did you mean \"training.clip.norm\"? "},
      // a component's name
      {R"({"training": {"f1": {}}})",
       "/training/f1: unknown key \"f1\"; it is a component (metric): write {\"use\": \"f1\"} in "
       "\"training.metrics\" "},
      {R"({"csv": "a"})",
       "/csv: unknown key \"csv\"; it is a component (data): write {\"use\": \"csv\"} in "
       "\"data\" "},
      // another component's
      {R"({"every": 5})",
       "/every: unknown key \"every\"; did you mean \"optimizer.every\" with {\"use\": "
       "\"lookahead\"}? "},
      {R"({"optimizer": {"every": 5}})", "/optimizer/every: unknown key \"every\" "},
  };
  for (const auto& [document, message] : kCases) {
    const std::vector<std::string> texts = problems(document, schema);
    ASSERT_EQ(texts.size(), 1U) << document;
    EXPECT_THAT(texts[0], testing::StartsWith(std::string(message) + "("));
  }
}

TEST(SchemaSlot, CallsAMisspeltRequiredKeyOneMistake) {
  const char* slot = R"({"x-treadle-component": "data"})";
  EXPECT_THAT(problems(R"({"use": "csv", "paht": "a", "target": 1})", slot),
              ElementsAre("/paht: unknown key \"paht\"; did you mean \"path\"? (data csv takes: "
                          "path, target)"));
  EXPECT_THAT(problems(R"("csv")", slot),
              ElementsAre("required key \"path\" is missing (the file to read)",
                          "required key \"target\" is missing (the column to predict, by name or "
                          "index)"));
}

TEST(SchemaSlot, AddsItsOwnProperties) {
  const char* slot = R"({"x-treadle-component": "schedule", "required": ["warmup"],
      "properties": {"warmup": {"x-treadle-type": "duration"}, "after": {"default": 1}}})";
  EXPECT_EQ(accepted(R"({"use": "cosine", "warmup": "5%"})", slot),
            json::parse(R"({"use": "cosine", "warmup": "5%", "after": 1})"));
  EXPECT_THAT(problems(R"("cosine")", slot), ElementsAre("required key \"warmup\" is missing"));
  EXPECT_THAT(problems(R"({"use": "cosine", "warmup": "5%", "warm": 1})", slot),
              ElementsAre("/warm: unknown key \"warm\" (schedule cosine takes: after, warmup)"));
}

TEST(SchemaSlot, ReportsAnUnknownComponentAndWhatCanStillBeChecked) {
  EXPECT_THAT(problems(R"({"use": "adamq", "learning_rat": 1})", kOptimizerSlot),
              ElementsAre("/use: there is no optimizer \"adamq\""));
  EXPECT_THAT(problems(R"({"use": "cosin", "warmup": 3, "x": 1})",
                       R"({"x-treadle-component": "schedule",
                           "properties": {"warmup": {"x-treadle-type": "duration"}}})"),
              ElementsAre("/use: there is no schedule \"cosin\"",
                          "/warmup: expected a duration such as \"5%\", \"10ep\", \"500st\" or "
                          "\"2h\", got 3"));
}

TEST(SchemaSlot, SaysHowToFillIt) {
  const char* slot = R"({"x-treadle-component": "optimizer"})";
  EXPECT_THAT(problems("3", slot),
              ElementsAre("expected the name of an optimizer or an object with \"use\", got 3"));
  EXPECT_THAT(problems("{}", slot),
              ElementsAre("required key \"use\" is missing (the name of an optimizer)"));
  EXPECT_THAT(problems(R"({"use": 3})", slot),
              ElementsAre("/use: expected the name of an optimizer, got 3"));
  EXPECT_THAT(problems("true", R"({"x-treadle-component": "model"})"),
              ElementsAre("expected the name of a model or an object with \"use\", got true"));
}

TEST(SchemaSlot, NestsToAnyDepth) {
  const char* slot = R"({"x-treadle-component": "optimizer"})";
  EXPECT_EQ(accepted(R"({"use": "lookahead", "inner": {"use": "lookahead", "inner": "adamw"}})",
                     slot)["inner"]["inner"]["weight_decay"],
            0.01);
  EXPECT_THAT(problems(R"({"use": "lookahead", "inner": {"use": "lookahead",
                           "inner": {"use": "adamw", "learning_rate": 0}}})",
                       slot),
              ElementsAre("/inner/inner/learning_rate: must be > 0, got 0"));
  EXPECT_THAT(problems(R"("lookahead")", slot),
              ElementsAre("required key \"inner\" is missing (the optimizer to wrap)"));
}

TEST(SchemaSlot, SurvivesADefaultThatContainsItself) {
  const std::vector<std::string> texts =
      problems(R"("endless")", R"({"x-treadle-component": "optimizer"})");
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_THAT(texts[0], testing::EndsWith("is nested more than 64 levels deep; a component's "
                                          "defaults may contain the component"));
}

TEST(SchemaSlot, MayBeOneBranchOfSeveral) {
  const char* schema = R"({"oneOf": [{"x-treadle-component": "metric"}, {"type": "null"}]})";
  EXPECT_EQ(accepted("null", schema), nullptr);
  EXPECT_EQ(accepted(R"("f1")", schema), json::parse(R"({"use": "f1", "average": "macro"})"));
  EXPECT_THAT(
      problems(R"({"use": "f1", "average": "macr"})", schema),
      ElementsAre("/average: must be one of \"macro\", \"micro\", got \"macr\"; did you mean "
                  "\"macro\"?"));
  EXPECT_THAT(
      problems("7", schema),
      ElementsAre("expected the name of a metric or an object with \"use\" or null, got 7"));
}

TEST(Schema, ReportsEverythingAtOnceInTheOrderOfTheText) {
  const auto document =
      Document::parse("{\n \"z\": \"x\",\n \"a\": 1,\n \"m\": [1,\n \"y\"]\n}", "my.json");
  document->set("b", "no");
  const json schema = json::parse(R"({"properties": {"z": {"type": "integer"},
      "a": {"type": "string"}, "b": {"type": "integer"},
      "m": {"items": {"type": "integer"}}, "q": {}}, "required": ["q"]})");

  std::vector<std::string> texts;
  for (const Problem& problem :
       check(document->value(), schema, Components(), *document).problems) {
    texts.push_back(problem.text());
  }

  EXPECT_THAT(texts, ElementsAre("my.json:1: required key \"q\" is missing",
                                 "my.json:2: /z: expected a whole number, got \"x\" (text)",
                                 "my.json:3: /a: expected text, got 1",
                                 "my.json:5: /m/1: expected a whole number, got \"y\" (text)",
                                 "--set b=no: /b: expected a whole number, got \"no\" (text)"));
}

TEST(Schema, StopsListingAfterTwoHundredProblems) {
  const Checked checked =
      check(json(std::vector<int>(1000, 7)), json::parse(R"({"items": {"type": "string"}})"),
            Components(), NoPlaces());
  ASSERT_EQ(checked.problems.size(), 201U);
  EXPECT_EQ(checked.problems.back().message, "has 800 more problems");
}

TEST(Schema, DoesNotHandLongTextToTheRegularExpression) {
  EXPECT_THAT(problems('"' + std::string(1000000, 'a') + '"', R"({"pattern": "^(a|b)*$"})"),
              ElementsAre("must match ^(a|b)*$, got text of 1000000 characters"));
}

TEST(Schema, CountsProblemsThatItDoesNotKeep) {
  const Checked checked =
      check(json(std::vector<int>(100000, 7)), json::parse(R"({"items": {"type": "string"}})"),
            Components(), NoPlaces());
  ASSERT_EQ(checked.problems.size(), 201U);
  EXPECT_EQ(checked.problems.back().message, "has 99800 more problems");
}

// Backtracking would take longer than there is time.
TEST(Schema, MatchesPatternsInBoundedTime) {
  const std::string text = '"' + std::string(500, 'a') + "b\"";
  EXPECT_THAT(problems(text, R"({"pattern": "^(a+)+$"})"),
              ElementsAre(testing::StartsWith("must match ^(a+)+$, got \"aaa")));
}

TEST(Schema, RefusesPatternsThatCouldTakeTheirTime) {
  for (const std::string& pattern :
       {std::string("((a{90}){90}){90}"), std::string("(a*)\\1"),
        std::string("a{99999999999999999999}"), std::string("a{,1001}"), std::string(201, 'a'),
        std::string(100000, '(')}) {
    const std::vector<Problem> problems = check_schema(json{{"pattern", pattern}});
    ASSERT_EQ(problems.size(), 1U) << pattern;
    EXPECT_THAT(problems[0].message,
                testing::StartsWith("expected a regular expression (of at most 200 characters and "
                                    "1000 repetitions, without back references), got "));
  }
  EXPECT_THAT(check_schema(json{{"pattern", "^[a-z]{1,10}(-[0-9]{1,99})?$"}}), testing::IsEmpty());
}

// Its packer refuses it; a component added in code meets the slot here first.
TEST(SchemaSlot, RefusesAComponentWithAParameterOfItsOwnName) {
  const json slot = json::parse(R"({"x-treadle-component": "metric",
      "properties": {"average": {"type": "number"}, "weight": {"type": "number"}}})");

  const Checked checked = check("f1", slot, Components(), NoPlaces());

  ASSERT_EQ(checked.problems.size(), 1U);
  EXPECT_EQ(checked.problems[0].pointer, "/use");
  EXPECT_TRUE(checked.problems[0].plugin_at_fault);
  EXPECT_THAT(
      checked.problems[0].message,
      testing::AllOf(testing::HasSubstr("metric \"f1\""),
                     testing::HasSubstr("parameter \"average\""), testing::HasSubstr("rename")));
}

TEST(SchemaSlot, LeavesTheComponentItsOwnParameters) {
  const json slot = json::parse(R"({"x-treadle-component": "metric",
      "properties": {"weight": {"type": "number"}}})");

  EXPECT_EQ(component_parameters(json{{"use", "f1"}, {"weight", 2}, {"average", "micro"}}, slot),
            (json{{"average", "micro"}}));
}

// 2^64 components, each named by the defaults of another.
TEST(SchemaSlot, SurvivesADefaultThatContainsItselfTwice) {
  class Doubled final : public SchemaIndex {
   public:
    FoundComponent find(std::string_view, std::string_view) const override {
      return {std::make_shared<const json>(schema_), "x/twice", ""};
    }

   private:
    json schema_ = json::parse(R"({"properties": {
        "a": {"x-treadle-component": "optimizer", "default": {"use": "twice"}},
        "b": {"x-treadle-component": "optimizer", "default": {"use": "twice"}}}})");
  };

  const Checked checked =
      check("twice", json::parse(R"({"x-treadle-component": "optimizer"})"), Doubled(), NoPlaces());

  ASSERT_EQ(checked.problems.size(), 1U);
  EXPECT_EQ(
      checked.problems[0].message,
      "cannot be checked: its components name each other too often; a component's defaults may "
      "contain the component");
}

std::vector<std::string> faults(std::string_view schema) {
  std::vector<std::string> texts;
  for (const Problem& problem : check_schema(json::parse(schema)))
    texts.push_back(problem.text());
  return texts;
}

TEST(CheckSchema, FindsNothingWrongWithASoundComponent) {
  EXPECT_THAT(faults(R"({"$schema": "http://json-schema.org/draft-07/schema#",
      "x-treadle-interface": "optimizer", "x-treadle-name": "adamw", "x-treadle-anything": [1],
      "title": "AdamW", "description": "Adam with decoupled weight decay.", "type": "object",
      "required": ["inner"],
      "properties": {
        "rate": {"type": "number", "exclusiveMinimum": 0, "default": 0.1, "x-treadle-unit": "1/step"},
        "keep": {"oneOf": [{"type": "integer", "minimum": 1}, {"const": "all"}], "default": "all"},
        "warmup": {"type": "string", "x-treadle-type": "duration", "default": "5%"},
        "inner": {"x-treadle-component": "optimizer", "default": "sgd"},
        "more": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        "never": false}})"),
              IsEmpty());
}

TEST(CheckSchema, SaysWhatIsWrong) {
  struct Case {
    const char* schema;
    const char* sentence;
  };
  const Case cases[] = {
      {"3", "expected a schema (an object), got 3"},
      {R"({"allOf": []})", "/allOf: keyword \"allOf\" is not among those Treadle understands"},
      {R"({"properties": {"a": {"minimun": 1}}})",
       "/properties/a/minimun: keyword \"minimun\" is not among those Treadle understands; did you "
       "mean \"minimum\"?"},
      {R"({"items": {"x-treadle-componet": "loss"}})",
       "/items/x-treadle-componet: keyword \"x-treadle-componet\" is not among those Treadle "
       "understands; did you mean \"x-treadle-component\"?"},
      {R"({"type": "float"})",
       "/type: expected one or several of \"string\", \"number\", \"integer\", \"boolean\", "
       "\"array\", \"object\", \"null\", got \"float\" (text)"},
      {R"({"enum": []})", "/enum: expected an array with at least one choice, got an array"},
      {R"({"minimum": "0"})", "/minimum: expected a number, got \"0\" (text)"},
      {R"({"minLength": -1})", "/minLength: expected a whole number >= 0, got -1"},
      {R"({"pattern": "["})",
       "/pattern: expected a regular expression (of at most 200 characters and 1000 repetitions, "
       "without back references), got \"[\" (text)"},
      {R"({"items": [{}]})", "/items: expected a schema, got an array"},
      {R"({"required": "a"})", "/required: expected an array of keys, got \"a\" (text)"},
      {R"({"required": ["a", "b"], "properties": {"a": {}}})",
       "/required/1: key \"b\" is not among the properties"},
      {R"({"minimum": 2, "maximum": 1})", "minimum 2 is more than maximum 1"},
      {R"({"type": "integer", "default": "x"})",
       "/default: expected a whole number, got \"x\" (text)"},
      {R"({"properties": {"a": {"properties": {"b": {}}, "default": {"c": 1}}}})",
       "/properties/a/default/c: unknown key \"c\" (this object takes: b)"},
      {R"({"x-treadle-type": "date"})",
       "/x-treadle-type: expected \"duration\", \"counted_duration\", \"path\" or \"fraction\", "
       "got \"date\" (text)"},
      {R"({"x-treadle-component": "optimiser"})",
       "/x-treadle-component: unknown interface \"optimiser\"; did you mean \"optimizer\"? (a "
       "plugin.json declares interfaces of its "
       "own under \"interfaces\")"},
      {R"({"oneOf": [{"type": "x"}]})",
       "/oneOf/0/type: expected one or several of \"string\", \"number\", \"integer\", "
       "\"boolean\", "
       "\"array\", \"object\", \"null\", got \"x\" (text)"},
      {R"({"x-treadle-interface": "los", "description": "x"})",
       "/x-treadle-interface: unknown interface \"los\"; did you mean \"loss\"? (a plugin.json "
       "declares interfaces of its "
       "own under \"interfaces\")"},
      {R"({"x-treadle-interface": "loss"})",
       "required key \"description\" is missing (one line on what it does)"},
      {R"({"x-treadle-interface": "loss", "description": "a\nb"})",
       "/description: must be one line"},
      {R"({"x-treadle-interface": "loss", "description": "x", "type": "array"})",
       "/type: a component's schema must be of type \"object\", got \"array\""},
      {R"({"x-treadle-interface": "loss", "description": "x", "x-treadle-also": "huber"})",
       "/x-treadle-also: expected an array of names, got \"huber\" (text)"},
      {R"({"x-treadle-interface": "loss", "description": "x", "x-treadle-name": "a/b"})",
       "/x-treadle-name: expected a name of letters, digits, \"_\", \".\" and \"-\", got \"a/b\" "
       "(text)"},
      {R"({"x-treadle-interface": "loss", "description": "x", "properties": {"use": {}}})",
       "/properties/use: key \"use\" is taken: documents name the component with it"},
      {R"({"x-treadle-interface": "loss", "description": "x", "x-treadle-component": "loss"})",
       "/x-treadle-component: a component cannot be a slot itself; put the slot under "
       "\"properties\""},
  };
  for (const Case& wrong : cases) {
    EXPECT_THAT(faults(wrong.schema), ElementsAre(wrong.sentence)) << wrong.schema;
  }
}

TEST(CheckSchema, NamesTheLine) {
  const auto document =
      Document::parse("{\"type\": \"object\",\n\"maximun\": 1}", "sgd.schema.json");
  const std::vector<Problem> problems = check_schema(document->value(), *document);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].place.text(), "sgd.schema.json:2");
}

}  // namespace
}  // namespace treadle
