#include <treadle/host/catalog/workflow_editor_schema.h>

#include <set>

#include <gtest/gtest.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include <treadle/base/random.h>
#include <treadle/host/catalog/workflow_document.h>

#include "fake_components.h"

namespace treadle {
namespace {

using nlohmann::json;

// What an editor does with the schema.
class Editor {
 public:
  Editor() : text_(compose_editor_schema(FakeComponents().listing())) {
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(text_), schema_);
  }

  bool accepts(const json& document) const {
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    return validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
  }

  const json& text() const { return text_; }

 private:
  json text_;
  valijson::Schema schema_;
};

bool runner_accepts(const json& document) {
  try {
    resolve_workflow(Document::from_json(document), FakeComponents());
    return true;
  } catch (const DocumentError&) {
    return false;
  }
}

void collect_keys(const json& value, std::set<std::string>& keys) {
  if (!value.is_structured())
    return;
  for (const auto& [key, part] : value.items()) {
    if (value.is_object())
      keys.insert(key);
    collect_keys(part, keys);
  }
}

TEST(EditorSchema, IsPlainJsonSchema) {
  std::set<std::string> keys;
  collect_keys(Editor().text(), keys);

  for (const std::string& key : keys)
    EXPECT_NE(key.substr(0, 10), "x-treadle-");
  EXPECT_EQ(Editor().text()["$schema"], "http://json-schema.org/draft-07/schema#");
}

TEST(EditorSchema, AcceptsAndRefusesWhatTheRunnerDoes) {
  const Editor editor;
  const json good = json::parse(kIrisDocument);
  EXPECT_TRUE(editor.accepts(good));

  const std::pair<const char*, const char*> changes[] = {
      {"/optimizer", R"("adamw")"},
      {"/optimizer", R"({"learning_rate": 0.1})"},
      {"/optimizer", R"({"learning_rat": 0.1})"},
      {"/optimizer", R"("adamq")"},
      {"/optimizer", R"({"use": "lookahead", "inner": {"use": "lookahead", "inner": "adamw"}})"},
      {"/optimizer", R"({"use": "lookahead", "inner": {"use": "adamw", "betas": [1, 2]}})"},
      {"/optimizer", R"("lookahead")"},
      {"/optimizer", R"({"use": "lookahead", "inner": {"learning_rate": 1}})"},
      {"/optimizer", "3"},
      {"/schedule", R"({"use": "cosine", "warmup": "soon"})"},
      {"/schedule", R"({"use": "constant", "floor": 0.5})"},
      {"/schedule", R"({"use": "cosine", "floor": "20%"})"},
      {"/schedule", R"({"use": "cosine", "floor": 1})"},
      {"/schedule", R"({"warmup": "5%"})"},
      {"/data", R"({"use": "csv", "path": "x"})"},
      {"/data", R"({"use": "csv", "path": "x", "target": 3, "task": "auto"})"},
      {"/data", R"({"use": "csv", "path": "x", "target": 3, "task": "ranking"})"},
      {"/data", R"("moons")"},
      {"/data", R"("csv")"},
      {"/model", R"({"hidden": [3]})"},
      {"/metrics", R"(["accuracy", {"use": "macro_f1"}, "x"])"},
      {"/metrics", R"([{"use": "accuracy", "x": 1}])"},
      {"/observers", R"([{"use": "log", "to": "x"}])"},
      {"/observers", R"(["log"])"},
      {"/resources", R"({"workers": 3})"},
      {"/resources", R"({"workers": 0})"},
      {"/extensions", R"({"a": 1})"},
      {"/treadle", "2"},
      {"/seeds", "2"},
      {"/training/early_stopping", R"({"mode": "max"})"},
      {"/training/early_stopping", R"({"mode": "max", "patience": "1ep"})"},
      {"/training/ema", R"({})"},
      {"/training/callbacks", R"([{"use": "early_stopping", "patience": "1ep"}])"},
      {"/training/callbacks", R"([{"patience": "1ep"}])"},
  };
  int accepted = 0;
  for (const auto& [pointer, text] : changes) {
    json changed = good;
    changed[json::json_pointer(pointer)] = json::parse(text);
    EXPECT_EQ(editor.accepts(changed), runner_accepts(changed)) << pointer << " = " << text;
    accepted += runner_accepts(changed) ? 1 : 0;
  }
  EXPECT_EQ(accepted, 13);
}

TEST(EditorSchema, AgreesWithTheRunnerOnRandomChanges) {
  const Editor editor;
  const json good = json::parse(kIrisDocument);
  const json flat = good.flatten();
  std::vector<std::string> pointers;
  for (const auto& [pointer, value] : flat.items())
    pointers.push_back(pointer);
  const json pieces[] = {nullptr,
                         true,
                         0,
                         1,
                         2.5,
                         "5%",
                         "adamw",
                         "cosine",
                         "accuracy",
                         "0.5",
                         json::array(),
                         json::object(),
                         json{{"use", "k_fold"}}};
  RandomBits bits(5);
  for (int i = 0; i < 1500; ++i) {
    json changed = good;
    json::json_pointer pointer(pointers[bits.below(pointers.size())]);
    if (bits.below(3) == 0)
      pointer = pointer.parent_pointer();
    if (bits.below(4) == 0 && !pointer.empty() && changed[pointer.parent_pointer()].is_object()) {
      changed[pointer.parent_pointer()].erase(pointer.back());
    } else {
      changed[pointer] = pieces[bits.below(std::size(pieces))];
    }
    ASSERT_EQ(editor.accepts(changed), runner_accepts(changed)) << changed;
  }
}

TEST(EditorSchema, ListsTheNamesOfASlot) {
  const json schema = Editor().text();
  const std::string reference = schema["properties"]["model"]["allOf"][0]["$ref"];
  const json slot = schema[json::json_pointer(reference.substr(1))];

  EXPECT_EQ(slot["then"]["enum"], json::array({"mlp"}));
  EXPECT_EQ(slot["else"]["allOf"][0]["if"]["properties"]["use"]["const"], "mlp");
  EXPECT_TRUE(slot["else"]["allOf"][0]["then"]["properties"].contains("hidden"));
}

TEST(EditorSchema, LeavesASlotWithoutComponentsUnfillable) {
  const json schema = compose_editor_schema({});
  valijson::Schema parsed;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), parsed);
  valijson::Validator validator;
  const json document = json::parse(kIrisDocument);
  EXPECT_FALSE(
      validator.validate(parsed, valijson::adapters::NlohmannJsonAdapter(document), nullptr));
}

}  // namespace
}  // namespace treadle
