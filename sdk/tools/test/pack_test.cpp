#include "pack.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <treadle/base/error.h>
#include <treadle/base/plugin_abi.h>

#include "schema_oracle.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr const char* kPlugin =
    R"({"id": "org.example.opt", "version": "1.0.0", "summary": "s", "license": "MIT"})";
constexpr const char* kSchema =
    R"({"x-treadle-interface": "optimizer", "description": "d", "type": "object", "properties": {}})";

/// A plugin's folder; problems are compared without its name.
class PackTest : public ::testing::Test {
 protected:
  PackTest() {
    std::string name = (fs::temp_directory_path() / "treadle-pack-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~PackTest() override { fs::remove_all(folder_); }

  void given(const std::string& file, const std::string& text) {
    std::ofstream(folder_ / file, std::ios::trunc) << text;
    if (file != "plugin.json")
      schemas_.push_back(folder_ / file);
  }

  PackedManifest pack() { return pack_manifest(folder_ / "plugin.json", schemas_); }

  std::vector<std::string> problems() {
    std::vector<std::string> texts;
    for (const Problem& problem : pack().problems) {
      std::string text = problem.text();
      for (std::size_t at; (at = text.find(folder_.string() + "/")) != std::string::npos;) {
        text.erase(at, folder_.string().size() + 1);
      }
      texts.push_back(std::move(text));
    }
    return texts;
  }

  fs::path folder_;
  std::vector<fs::path> schemas_;
};

TEST_F(PackTest, MakesTheManifestThatHostsRead) {
  given("plugin.json", kPlugin);
  given("sgd.schema.json", kSchema);
  given("adam_w.schema.json",
        R"({"x-treadle-interface": "optimizer", "x-treadle-name": "adamw", "$schema": "x",
            "description": "e", "type": "object", "x-treadle-kind": "adaptive"})");

  const PackedManifest packed = pack();

  EXPECT_THAT(packed.problems, IsEmpty());
  EXPECT_EQ(packed.manifest,
            json::parse(R"({"manifest_version": 1, "id": "org.example.opt", "version": "1.0.0",
              "summary": "s", "license": "MIT", "components": [
                {"interface": "treadle.optimizer/0", "name": "adamw", "summary": "e",
                 "schema": {"x-treadle-interface": "optimizer", "x-treadle-name": "adamw",
                            "description": "e", "type": "object", "x-treadle-kind": "adaptive"}},
                {"interface": "treadle.optimizer/0", "name": "sgd", "summary": "d",
                 "schema": {"x-treadle-interface": "optimizer", "description": "d", "type": "object",
                            "properties": {}}}]})"));
}

TEST_F(PackTest, GivesComponentsTheParametersThatTheyAreTestedWith) {
  given("plugin.json", kPlugin);
  given("sgd.schema.json", kSchema);
  given("adam.schema.json", kSchema);
  std::ofstream(folder_ / "contract.json") << R"({"sgd": {"rate": 0.5}})";

  const json components = pack().manifest["components"];

  EXPECT_FALSE(components.at(0).contains("contract"));
  EXPECT_EQ(components.at(1)["contract"], json::parse(R"({"rate": 0.5})"));
}

TEST_F(PackTest, TellsComponentsOfOneNameApartByTheirInterface) {
  given("plugin.json", kPlugin);
  given("sgd.schema.json", kSchema);
  given("sgd_writer.schema.json",
        R"({"x-treadle-interface": "writer", "x-treadle-name": "sgd", "description": "d",
            "type": "object", "properties": {}})");
  std::ofstream(folder_ / "contract.json") << R"({"writer/sgd": {"path": "a"}})";

  const json components = pack().manifest["components"];

  ASSERT_EQ(components.size(), 2U);
  for (const json& component : components)
    EXPECT_EQ(component.contains("contract"), component["interface"] == "treadle.writer/0");
}

TEST_F(PackTest, SaysWhatIsWrongWithThoseParameters) {
  given("plugin.json", kPlugin);
  given("sgd.schema.json", kSchema);
  std::ofstream(folder_ / "contract.json") << "{\n\"sgd\": 3,\n\"sgb\": {}}";

  EXPECT_THAT(
      problems(),
      UnorderedElementsAre(
          "contract.json:2: /sgd: expected the parameters of \"sgd\" as an object, got 3",
          "contract.json:3: /sgb: the plugin offers no component \"sgb\"; contract.json has "
          "parameters by the names of components"));
}

TEST_F(PackTest, SaysWhatIsWrongWithPluginJson) {
  given("plugin.json",
        "{\n \"id\": \"Optimizers\",\n \"version\": 1,\n \"summary\": \"a\\nb\",\n \"licence\": "
        "\"MIT\"\n}");
  given("sgd.schema.json", kSchema);

  EXPECT_THAT(
      problems(),
      ElementsAre(
          "plugin.json:2: /id: expected a reversed domain name in lower case, such as "
          "\"org.example.optimizers\", got \"Optimizers\" (text)",
          "plugin.json:3: /version: expected a version such as \"1.0.0\", got 1",
          "plugin.json:4: /summary: expected one line that says what the plugin is for, got "
          "\"a\\nb\" "
          "(text)",
          "plugin.json:1: required key \"license\" is missing (an SPDX license expression, such as "
          "\"Apache-2.0\")",
          "plugin.json:5: /licence: unknown key \"licence\" (a plugin.json has: id, version, "
          "summary, "
          "license, vendor, url, interfaces)"));
}

constexpr const char* kCurves = R"({
  "id": "org.example.opt", "version": "1.0.0", "summary": "s", "license": "MIT",
  "interfaces": [{"word": "curve", "id": "org.example.curve/0", "summary": "a factor"}]})";

TEST_F(PackTest, TakesInterfacesThatThePluginDeclares) {
  given("plugin.json", kCurves);
  given("power.schema.json",
        R"({"x-treadle-interface": "curve", "description": "d", "type": "object"})");
  given("curved.schema.json",
        R"({"x-treadle-interface": "schedule", "description": "d", "type": "object",
            "properties": {"of": {"x-treadle-component": "curve"}}})");

  const PackedManifest packed = pack();

  ASSERT_THAT(packed.problems, IsEmpty());
  EXPECT_EQ(packed.manifest["interfaces"], json::parse(kCurves)["interfaces"]);
  EXPECT_EQ(packed.manifest["components"][0]["interface"], "org.example.curve/0");
}

TEST_F(PackTest, SaysWhichInterfacesThereAre) {
  given("plugin.json", kCurves);
  given("power.schema.json",
        R"({"x-treadle-interface": "curv", "description": "d", "type": "object"})");
  given("curved.schema.json",
        R"({"x-treadle-interface": "schedule", "description": "d", "type": "object",
            "properties": {"of": {"x-treadle-component": "corve"}}})");

  EXPECT_THAT(problems(),
              ElementsAre(AllOf(StartsWith("power.schema.json:1: /x-treadle-interface: "),
                                HasSubstr("unknown interface \"curv\"; did you mean \"curve\"?")),
                          AllOf(StartsWith("curved.schema.json:2: /properties/of/"),
                                HasSubstr("unknown interface \"corve\""))));
}

TEST_F(PackTest, SaysWhatIsWrongWithADeclaredInterface) {
  given("plugin.json", R"({"id": "org.example.opt", "version": "1.0.0", "summary": "s",
"license": "MIT", "interfaces": [
7,
{"word": "Curve", "id": "curve", "about": "a"},
{"word": "loss", "id": "org.example.loss/0", "summary": "a"}]})");
  given("sgd.schema.json", kSchema);

  EXPECT_THAT(
      problems(),
      ElementsAre(
          AllOf(StartsWith("plugin.json:3: /interfaces/0: "), HasSubstr("expected an object")),
          AllOf(StartsWith("plugin.json:4: /interfaces/1/word: "), HasSubstr("lower case")),
          AllOf(StartsWith("plugin.json:4: /interfaces/1/id: "), HasSubstr("a revision")),
          AllOf(StartsWith("plugin.json:4: /interfaces/1: "), HasSubstr("\"summary\" is missing")),
          AllOf(StartsWith("plugin.json:4: /interfaces/1/about: "), HasSubstr("unknown key")),
          AllOf(StartsWith("plugin.json:5: /interfaces/2: "),
                HasSubstr("\"loss\" is treadle.loss/0"))));
}

/// A schema with one parameter.
std::string with_parameter(const std::string& word, const std::string& key) {
  return json{{"x-treadle-interface", word},
              {"description", "d"},
              {"type", "object"},
              {"properties", {{key, {{"type", "string"}}}}}}
      .dump();
}

// The slot would take them for itself, and the component never see them.
TEST_F(PackTest, RefusesParametersThatDocumentsUseForThemselves) {
  const std::pair<const char*, const char*> taken[] = {
      {"model", "weights"}, {"optimizer", "groups"}, {"schedule", "warmup"}, {"data", "task"},
      {"layer", "name"},    {"layer", "tag"},        {"layer", "using"},     {"layer", "frozen"}};
  for (const auto& [word, key] : taken) {
    schemas_.clear();
    given("plugin.json", kPlugin);
    given("sgd.schema.json", with_parameter(word, key));

    EXPECT_THAT(problems(),
                ElementsAre(AllOf(StartsWith("sgd.schema.json:1: /properties/" + std::string(key)),
                                  HasSubstr("\"" + std::string(key) + "\" is taken"),
                                  HasSubstr(word), HasSubstr("rename the parameter"))));
  }
  schemas_.clear();
  given("sgd.schema.json", with_parameter("optimizer", "warmup"));
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(PackTest, RefusesParametersThatASlotOfItsOwnHides) {
  given("plugin.json", kPlugin);
  given("sum.schema.json",
        R"({"x-treadle-interface": "loss", "description": "d", "type": "object", "properties": {
            "factor": {"type": "number"},
            "terms": {"type": "array", "items": {"x-treadle-component": "loss",
                      "properties": {"factor": {"type": "number"}}}}}})");

  EXPECT_THAT(problems(), ElementsAre(AllOf(StartsWith("sum.schema.json:2: /properties/factor: "),
                                            HasSubstr("\"factor\" is taken"))));
}

TEST_F(PackTest, SaysWhatIsWrongWithASchema) {
  given("plugin.json", kPlugin);
  given("noInterface.schema.json", R"({"description": "d", "type": "object"})");
  given("untyped.schema.json", R"({"x-treadle-interface": "loss", "description": "d"})");
  given("list.schema.json", "[]");

  EXPECT_THAT(
      problems(),
      ElementsAre("noInterface.schema.json:1: the file's name must begin with a component's name "
                  "(lower case "
                  "letters, digits and underscores, such as \"adamw\"), got \"noInterface\"",
                  "noInterface.schema.json:1: required key \"x-treadle-interface\" is missing (the "
                  "interface it "
                  "implements: \"optimizer\", \"loss\", …)",
                  "untyped.schema.json:1: required key \"type\" is missing (the parameters of a "
                  "component are an "
                  "\"object\")",
                  "list.schema.json:1: expected an object, got an array"));
}

TEST_F(PackTest, FindsADefaultThatBreaksItsOwnRule) {
  given("plugin.json", kPlugin);
  given("sgd.schema.json",
        "{\"x-treadle-interface\": \"optimizer\", \"description\": \"d\", \"type\": \"object\",\n"
        " \"properties\": {\n  \"momentum\": {\"type\": \"number\", \"maximum\": 1,\n   "
        "\"default\": 2}}}");

  EXPECT_THAT(problems(),
              ElementsAre("sgd.schema.json:4: /properties/momentum/default: must be <= 1, got 2"));
}

TEST_F(PackTest, ReportsFilesThatCannotBeRead) {
  schemas_.push_back(folder_ / "absent.schema.json");

  EXPECT_THAT(problems(),
              ElementsAre("plugin.json: no such file", "absent.schema.json: no such file"));
}

TEST_F(PackTest, RefusesAPluginThatOffersNothing) {
  given("plugin.json", kPlugin);

  EXPECT_THAT(problems(), ElementsAre("plugin.json: the plugin offers nothing: there is no "
                                      "<component>.schema.json beside it"));
}

TEST_F(PackTest, RefusesOneNameInTwoFiles) {
  given("plugin.json", kPlugin);
  given("a.schema.json", kSchema);
  given("b.schema.json",
        R"({"x-treadle-interface": "optimizer", "x-treadle-name": "a", "description": "d",
            "type": "object"})");

  EXPECT_THAT(problems(),
              ElementsAre("b.schema.json: offers the optimizer \"a\", as a.schema.json does "
                          "already"));
}

TEST_F(PackTest, LimitsTheSizeOfANote) {
  const json manifest{{"id", "org.example.big"}, {"x", std::string(kNoteLimit, 'x')}};
  try {
    notes_source(manifest, false);
    FAIL() << "packed";
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()),
              "the manifest of plugin org.example.big has " +
                  std::to_string(manifest.dump().size()) +
                  " bytes, more than the 262144 that hosts read; shorten the descriptions in its "
                  "schemas, or cut the plugin in two");
  }
}

TEST_F(PackTest, IncludesTbbOnlyWhereItTakesPart) {
  const std::string include = "#include <oneapi/tbb/version.h>";

  EXPECT_EQ(notes_source(json::object(), false).find(include), std::string::npos);
  EXPECT_NE(notes_source(json::object(), true).find(include), std::string::npos);
}

/// The text of the literal in the source: what the compiler will read.
std::string unescaped(const std::string& source) {
  std::string text;
  bool inside = false;
  for (std::size_t i = source.find("notes(\n"); i < source.size(); ++i) {
    if (source[i] == '"') {
      inside = !inside;
    } else if (inside && source[i] == '\\' && (source[i + 1] == '"' || source[i + 1] == '\\')) {
      text += source[++i];
    } else if (inside && source[i] == '\\') {
      text += static_cast<char>(std::stoi(source.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else if (inside) {
      text += source[i];
    }
  }
  return text;
}

TEST_F(PackTest, EscapesWhateverAManifestContains) {
  const json manifest{{"summary", "quotes \" \\ trigraph ?\?= µ 漢 \x01 1"},
                      {"long", std::string(400, '"')}};

  EXPECT_EQ(unescaped(notes_source(manifest, false)), manifest.dump());
}

TEST(SchemaOracle, KnowsSchemasFromNonsense) {
  EXPECT_EQ(schema_mistake(json::parse(R"({"type": "object"})")), std::nullopt);
  EXPECT_NE(schema_mistake(json::parse(R"({"minimum": "low"})")), std::nullopt);
}

TEST(SchemaOracle, ChecksValues) {
  const json schema = json::parse(R"({"type": "integer", "minimum": 3})");

  EXPECT_TRUE(is_valid(3, schema));
  EXPECT_FALSE(is_valid(2, schema));
  EXPECT_FALSE(is_valid("3", schema));
}

}  // namespace
}  // namespace treadle
