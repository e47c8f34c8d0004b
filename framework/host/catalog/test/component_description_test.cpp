#include <treadle/host/catalog/component_description.h>

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/document.h>

#include "fake_components.h"

namespace treadle {
namespace {

using nlohmann::json;

TEST(ComponentDescription, IsATableAndASample) {
  EXPECT_EQ(describe_component("optimizer", "adamw", FakeComponents().schema("optimizer", "adamw"))
                .text(),
            R"(optimizer adamw (AdamW)
  Adam with decoupled weight decay.

PARAMETER      TYPE             RANGE               DEFAULT      MEANING
betas          array of number  exactly 2 elements  [0.9,0.999]
learning_rate  number           > 0                 0.001        step size

Keys of every optimizer:

KEY     TYPE             DEFAULT  MEANING
groups  array of object  -        parameter groups with their own optimizer settings; the first group that matches a parameter applies

In a document:
  "optimizer": {
    "use": "adamw",
    "betas": [0.9, 0.999],
    "learning_rate": 0.001
  }
)");
}

TEST(ComponentDescription, SpeaksOfEveryKindOfParameter) {
  const json schema = json::parse(R"({"required": ["to"], "properties": {
      "a": {"enum": ["x", 1]}, "b": {"type": ["string", "null"]}, "c": {"const": 3},
      "d": {"oneOf": [{"type": "integer", "minimum": 1, "maximum": 9}, {"const": "auto"}]},
      "e": {"x-treadle-component": "loss"}, "f": {"x-treadle-type": "fraction"},
      "g": {"type": "array", "uniqueItems": true, "items": {"type": "boolean"}},
      "h": {"type": "object", "properties": {"i": {"type": "integer", "x-treadle-unit": "ms"}}},
      "j": {}, "k": {"type": "string", "deprecated": true, "description": "old",
                     "pattern": "^a", "maxLength": 3},
      "l": {"type": "array", "items": {"type": "number", "minimum": 0}},
      "to": {"type": "string", "default": "x"}}})");
  std::string rows;
  for (const ParameterDescription& row : describe_component("observer", "log", schema).parameters) {
    rows += row.name + " | " + row.type + " | " + row.range + " | " + row.fallback + " | " +
            row.unit + " | " + row.help + "\n";
  }
  EXPECT_EQ(rows,
            "a | one of \"x\", 1 |  |  |  | \n"
            "b | text or null |  |  |  | \n"
            "c | 3 |  |  |  | \n"
            "d | integer or \"auto\" | >= 1 and <= 9 |  |  | \n"
            "e | component (loss) |  |  |  | \n"
            "f | fraction | > 0 and < 1 |  |  | \n"
            "g | array of true or false | no element twice |  |  | \n"
            "h | object |  |  |  | \n"
            "h.i | integer |  |  | ms | \n"
            "j | anything |  |  |  | \n"
            "k | text | at most 3 characters and matches ^a |  |  | deprecated: old\n"
            "l | array of number | each >= 0 |  |  | \n"
            "to | text |  | required |  | \n");
}

TEST(ComponentDescription, SaysSoWhenThereIsNothingToSet) {
  EXPECT_EQ(describe_component("metric", "accuracy", FakeComponents().schema("metric", "accuracy"))
                .text(),
            "metric accuracy\n\nIt takes no parameters of its own.\n\nKeys of every metric:\n\n"
            "KEY     TYPE  RANGE                 DEFAULT  MEANING\n"
            "target  text  at least 1 character  -        the target of this metric; absent: every "
            "target it supports\n\nIn a document:\n"
            "  \"metrics\": [{\"use\": \"accuracy\"}]\n");
  EXPECT_THAT(describe_component("transform", "plain", json::object()).text(),
              ::testing::StartsWith("transform plain\n\nIt takes no parameters.\n\nIn a "));
}

TEST(ComponentDescription, ShowsAloneWhatStandsWithinOthers) {
  const json schema = json::parse(R"({"required": ["out_features"], "properties": {
      "bias": {"type": "boolean", "default": true}, "out_features": {"type": "integer", "minimum": 1}}})");
  const std::string text = describe_component("layer", "dense", schema).text();

  EXPECT_EQ(text.substr(text.find("In a document")),
            "In a document:\n  {\"use\": \"dense\", \"bias\": true, \"out_features\": 1}\n");
}

TEST(ComponentDescription, GivesSamplesThatAreAccepted) {
  const FakeComponents components;
  for (const ListedComponent& component : components.listing()) {
    // No sample can know which optimizers there are; callbacks and gradients stand in "training",
    // and a device and a communicator are names alone.
    if (component.name == "lookahead" || component.interface_word == "callback" ||
        component.interface_word == "gradients" || component.interface_word == "device" ||
        component.interface_word == "communicator" || component.interface_word == "tuner")
      continue;
    const json sample =
        describe_component(component.interface_word, component.name, *component.schema).sample;
    const json& value = sample.begin()->is_array() ? (*sample.begin())[0] : *sample.begin();
    EXPECT_EQ(value["use"], component.name);
    const json slot = {{"x-treadle-component", component.interface_word}};
    const auto nowhere = Document::from_json(json::object());
    for (const Problem& problem : check(value, slot, components, *nowhere).problems) {
      ADD_FAILURE() << component.name << ": " << problem.text();
    }
  }
}

TEST(ComponentDescription, NamesADeviceAndACommunicatorAsDocumentsDo) {
  EXPECT_EQ(describe_component("device", "cpu", {{"properties", json::object()}}).sample,
            json::parse(R"({"resources": {"device": "cpu"}})"));
  EXPECT_EQ(describe_component("communicator", "gloo", {{"properties", json::object()}}).sample,
            json::parse(R"({"resources": {"communicator": "gloo"}})"));
}

TEST(ComponentDescription, ListsTheKeysOfTheSlotAsWell) {
  const auto keys_of = [](const std::string& word, const std::string& name) {
    std::vector<std::string> names;
    for (const ParameterDescription& row : describe_component(word, name, json::object()).slot_keys)
      names.push_back(row.name);
    return names;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(keys_of("schedule", "cosine"), ElementsAre("warmup"));
  EXPECT_THAT(keys_of("loss", "mse"), ElementsAre("factor", "target"));
  EXPECT_THAT(keys_of("layer", "dense"), ElementsAre("enabled", "frozen", "name", "tag", "using"));
  EXPECT_THAT(keys_of("model", "mlp"), ElementsAre("weights", "weights.from", "weights.path",
                                                   "weights.strict", "weights.to"));
  EXPECT_THAT(keys_of("training", "standard"), ::testing::IsSupersetOf({"epochs", "clip.norm"}));
  EXPECT_THAT(keys_of("callback", "early_stopping"), ElementsAre());
  EXPECT_EQ(describe_component("schedule", "cosine", json::object()).json()["slot_keys"][0]["name"],
            "warmup");
}

TEST(ComponentDescription, TakesWrittenExamplesFirst) {
  const json schema = json::parse(R"({"required": ["when", "factor", "share"],
      "examples": [{"when": {"above": 1}}], "properties": {
      "when": {"type": "object", "properties": {"above": {"type": "number"}}},
      "factor": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000},
      "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5},
      "file": {"type": "string", "default": "a"}}})");

  EXPECT_EQ(describe_component("layer", "it", schema).sample,
            json::parse(R"({"use": "it", "when": {"above": 1}, "factor": 0.5, "share": 0.25,
                            "file": "a"})"));
}

TEST(ComponentDescription, PutsACallbackIntoTheTraining) {
  const json schema = FakeComponents().schema("callback", "early_stopping");

  EXPECT_EQ(describe_component("callback", "early_stopping", schema).sample,
            json::parse(R"({"training": {"early_stopping": {"mode": "min", "patience": "5%"}}})"));
  EXPECT_EQ(describe_component("callback", "other", schema).sample,
            json::parse(R"({"training": {"callbacks": [
                {"use": "other", "mode": "min", "patience": "5%"}]}})"));
}

TEST(ComponentDescription, IsAlsoJson) {
  const json described =
      describe_component("data", "csv", FakeComponents().schema("data", "csv")).json();

  EXPECT_EQ(described["interface"], "data");
  EXPECT_EQ(described["name"], "csv");
  EXPECT_EQ(described["parameters"][0],
            json::parse(R"({"name": "path", "type": "path", "required": true,
                            "help": "the file to read"})"));
  EXPECT_EQ(described["sample"]["data"]["path"], "data/file");
}

TEST(ComponentDescription, FitsTheWindowWithoutBreakingWords) {
  const json schema = {
      {"title", "a rule"},
      {"description", "A rule whose description has considerably more words than fit a line."},
      {"properties",
       {{"learning_rate",
         {{"type", "number"},
          {"exclusiveMinimum", 0},
          {"default", 0.001},
          {"description", "the length of a step, before the schedule has multiplied it"}}},
        {"mode", {{"enum", {"first", "second", "third"}}, {"description", "which of them"}}}}}};
  const std::string whole = describe_component("optimizer", "rule", schema).text() + " default";
  for (const std::size_t columns : {40U, 60U, 80U}) {
    const std::string narrow = describe_component("optimizer", "rule", schema).text(columns);
    // The piece of a document at the end is to be copied.
    std::istringstream text(narrow.substr(0, narrow.find("In a document:")));
    for (std::string line; std::getline(text, line);) {
      EXPECT_LE(line.size(), columns) << line;
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        if (word.find_first_of("(){}[],\"") == std::string::npos) {
          EXPECT_THAT(whole, ::testing::HasSubstr(word)) << columns;
        }
      }
    }
  }
}

}  // namespace
}  // namespace treadle
