#include <treadle/host/catalog/manifest.h>

#include <gtest/gtest.h>

#include <treadle/host/catalog/elf_notes.h>

namespace treadle {
namespace {

using nlohmann::json;

json example() {
  return {{"manifest_version", 1},
          {"id", "org.example.opt"},
          {"version", "2.0.0"},
          {"summary", "optimizers"},
          {"license", "MIT"},
          {"components",
           {{{"interface", "treadle.optimizer/0"},
             {"name", "lion"},
             {"summary", "sign of momentum"},
             {"schema", {{"type", "object"}}}}}}};
}

json with(const char* key, json value) {
  json manifest = example();
  manifest[key] = std::move(value);
  return manifest;
}

TEST(Manifest, IsReadFromTheTextOfItsNote) {
  const Manifest manifest = parse_manifest(example().dump());

  EXPECT_EQ(manifest.id, "org.example.opt");
  EXPECT_EQ(manifest.title(), "org.example.opt 2.0.0");
  EXPECT_EQ(manifest.summary, "optimizers");
  EXPECT_EQ(manifest.license, "MIT");
  ASSERT_EQ(manifest.components.size(), 1u);
  EXPECT_EQ(manifest.components[0],
            (ManifestComponent{"treadle.optimizer/0", "lion", "sign of momentum"}));
}

TEST(Manifest, GivesTheSchemaOfOneComponent) {
  const ManifestSchemas schemas(example().dump());
  EXPECT_EQ(schemas.of({"treadle.optimizer/0", "lion", ""}), json({{"type", "object"}}));
}

TEST(Manifest, GivesASoundSchemaOrSaysWhatIsWrongWithIt) {
  const ManifestComponent lion{"treadle.optimizer/0", "lion", ""};
  json broken = example();
  broken["components"][0]["schema"] = {{"properties", {{"a", {{"pattern", "("}}}}}};

  EXPECT_EQ(ManifestSchemas(example().dump()).sound(lion), json({{"type", "object"}}));
  try {
    ManifestSchemas(broken.dump()).sound(lion);
    FAIL() << "accepted";
  } catch (const PluginError& error) {
    EXPECT_STREQ(
        error.what(),
        "has a damaged manifest: the schema of \"lion\" (treadle.optimizer/0) is wrong: "
        "/properties/a/pattern: expected a regular expression (of at most 200 characters and 1000 "
        "repetitions, without back references), got \"(\" (text); build it again");
  }
}

TEST(Manifest, ToleratesKeysOfLaterReleases) {
  EXPECT_EQ(parse_manifest(with("homepage", "https://example.org").dump()).id, "org.example.opt");
}

TEST(Manifest, SaysWhatIsDamaged) {
  const json component = example()["components"][0];
  json deep = json::object();
  for (int i = 0; i < 80; ++i)
    deep = {{"a", deep}};
  const std::pair<std::string, std::string> cases[] = {
      {"{", "it is not JSON in UTF-8"},
      {"\"\xff\"", "it is not JSON in UTF-8"},
      {"[]", "it is not a JSON object"},
      {deep.dump(), "it is nested deeper than 64 levels"},
      {with("manifest_version", "1").dump(), "\"manifest_version\" must be a whole number"},
      {with("id", 7).dump(), "\"id\" must be text"},
      {with("id", "").dump(), "\"id\" is empty"},
      {with("summary", "a\x1b[2Jb").dump(), "\"summary\" must be one line of at most 1000 bytes"},
      {with("summary",
            "a\xc2\x9b"
            "2Jb")
           .dump(),
       "\"summary\" must be one line of at most 1000 bytes"},
      {with("version", std::string(1001, '1')).dump(),
       "\"version\" must be one line of at most 1000 bytes"},
      {with("components", json::object()).dump(), "\"components\" must be an array"},
      {with("components", {1}).dump(), "a component must be an object"},
      {with("components", json(1001, component)).dump(), "it lists more than 1000 components"},
      {with("components", {component, component}).dump(),
       "it lists \"lion\" (treadle.optimizer/0) twice"}};

  for (const auto& [text, what] : cases) {
    try {
      parse_manifest(text);
      ADD_FAILURE() << "accepted: " << what;
    } catch (const PluginError& error) {
      EXPECT_EQ(error.what(), "has a damaged manifest: " + what + "; build it again");
    }
  }
}

TEST(Manifest, OfAnotherVersionIsForeignNotDamaged) {
  try {
    parse_manifest(with("manifest_version", 2).dump());
    FAIL() << "accepted";
  } catch (const ForeignPlugin& error) {
    EXPECT_STREQ(
        error.what(),
        "was made for another runner: its manifest has version 2, this runner reads version "
        "1");
  }
}

TEST(Manifest, SaysThatAComponentIsGone) {
  try {
    ManifestSchemas(example().dump()).of({"treadle.optimizer/0", "tiger", ""});
    FAIL() << "found";
  } catch (const PluginError& error) {
    EXPECT_STREQ(
        error.what(),
        "has a damaged manifest: it no longer lists \"tiger\" (treadle.optimizer/0); build it "
        "again");
  }
}

}  // namespace
}  // namespace treadle
