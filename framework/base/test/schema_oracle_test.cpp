// valijson, an independent implementation of JSON Schema, must accept and reject what check() does,
// wherever our two departures from the standard are spelt out for it.

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include <treadle/base/random.h>
#include <treadle/base/schema.h>

#include "test/no_places.h"

namespace treadle {
namespace {

using nlohmann::json;

class NoComponents final : public SchemaIndex {
 public:
  FoundComponent find(std::string_view, std::string_view) const override {
    return {nullptr, "", "none"};
  }
};

// Says `additionalProperties: false` where our walker takes it for granted.
json spelt_out(const json& schema, bool in_branch_of_properties = false) {
  if (!schema.is_object())
    return schema;
  json result = schema;
  const bool has_properties = schema.contains("properties");
  const bool is_closed = has_properties || schema.value("type", json()) == "object";
  if (!schema.contains("additionalProperties") && is_closed && !in_branch_of_properties) {
    result["additionalProperties"] = false;
  }
  if (has_properties) {
    for (auto& [key, property] : result["properties"].items())
      property = spelt_out(property);
  }
  for (const char* keyword : {"items", "additionalProperties"}) {
    if (result.contains(keyword))
      result[keyword] = spelt_out(result[keyword]);
  }
  for (const char* keyword : {"oneOf", "anyOf"}) {
    if (!result.contains(keyword))
      continue;
    for (json& branch : result[keyword]) {
      branch = spelt_out(branch, has_properties || in_branch_of_properties);
    }
  }
  // Defaults are filled in by us and ignored by the standard: without them both see one value.
  result.erase("default");
  return result;
}

class Oracle {
 public:
  explicit Oracle(const json& schema) : text_(spelt_out(schema)) {
    valijson::SchemaParser parser;
    const valijson::adapters::NlohmannJsonAdapter adapter(text_);
    parser.populateSchema(adapter, schema_);
  }

  bool accepts(const json& value) const {
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    const valijson::adapters::NlohmannJsonAdapter adapter(value);
    return validator.validate(schema_, adapter, nullptr);
  }

 private:
  json text_;
  valijson::Schema schema_;
};

bool walker_accepts(const json& value, const json& schema) {
  return check(value, schema, NoComponents(), NoPlaces()).problems.empty();
}

const char* const kSchemas[] = {
    R"({"type": "number", "minimum": -1, "exclusiveMaximum": 10})",
    R"({"type": "integer", "exclusiveMinimum": 0, "maximum": 5})",
    R"({"type": ["string", "null"], "minLength": 1, "maxLength": 3})",
    R"({"type": "string", "pattern": "^[a-c]+$"})",
    R"({"enum": ["relu", "gelu", 3, null, [1]]})",
    R"({"const": {"a": 1}})",
    R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3,
        "uniqueItems": true})",
    R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"]})",
    R"({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": true})",
    R"({"type": "object", "properties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "string"}})",
    R"({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "number"}}})",
    R"({"type": "object"})",
    R"({"properties": {"a": {"type": "integer"}}})",
    R"({"oneOf": [{"type": "integer", "minimum": 1}, {"const": "auto"}]})",
    R"({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 3}]})",
    R"({"anyOf": [{"type": "integer", "maximum": 2}, {"type": "number", "minimum": 3},
                  {"type": "array", "items": {"type": "boolean"}}]})",
    R"({"properties": {"a": {"type": "integer"}, "b": {"type": "number"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minimum": 1}}}]})",
    R"({"type": "object", "required": ["list"], "properties": {"list": {"type": "array",
        "items": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["use"],
        "properties": {"use": {"type": "string"}, "a": {"type": "boolean"}}}]}}}})",
};

// Seeds for the mutations: most schemas accept at least one of them.
const char* const kValues[] = {
    "null",
    "true",
    "0",
    "1",
    "3",
    "5",
    "-1",
    "10",
    "2.5",
    "9.99",
    "3.0",
    R"("")",
    R"("ab")",
    R"("abcd")",
    R"("auto")",
    R"("relu")",
    "[]",
    "[1]",
    "[1, 2]",
    "[1, 1]",
    "[true, false]",
    "[1, 2, 3, 4]",
    R"([[1], "x"])",
    "{}",
    R"({"a": 1})",
    R"({"a": 1, "b": "x"})",
    R"({"a": 1, "b": 2})",
    R"({"b": 1.5})",
    R"({"b": 0.5})",
    R"({"a": 1, "c": "x"})",
    R"({"x": [1, 2.5]})",
    R"({"list": ["a", {"use": "b", "a": true}]})",
    R"({"list": [{"use": 1}]})",
    R"({"list": []})",
};

// Replaces, removes or adds something small somewhere in `value`.
json mutated(json value, RandomBits& bits) {
  const json pieces[] = {nullptr,
                         true,
                         0,
                         1,
                         3,
                         -2,
                         2.5,
                         7.0,
                         "a",
                         "auto",
                         json::array(),
                         json::object(),
                         json::array({1}),
                         json{{"a", 1}}};
  const json piece = pieces[bits.below(std::size(pieces))];
  const char* const keys[] = {"a", "b", "c", "use", "list"};
  json* at = &value;
  while (at->is_structured() && !at->empty() && bits.below(3) > 0) {
    at = &*std::next(at->begin(), static_cast<std::ptrdiff_t>(bits.below(at->size())));
  }
  if (at->is_object() && bits.below(2) == 0) {
    (*at)[keys[bits.below(std::size(keys))]] = piece;
  } else if (at->is_array() && bits.below(2) == 0) {
    at->push_back(piece);
  } else if (at->is_structured() && !at->empty() && bits.below(2) == 0) {
    at->erase(at->begin());
  } else {
    *at = piece;
  }
  return value;
}

TEST(SchemaOracle, AgreesOnTheTable) {
  int accepted = 0;
  int rejected = 0;
  for (const char* text : kSchemas) {
    const json schema = json::parse(text);
    EXPECT_TRUE(check_schema(schema).empty()) << text;
    const Oracle oracle(schema);
    for (const char* value_text : kValues) {
      const json value = json::parse(value_text);
      const bool expected = oracle.accepts(value);
      EXPECT_EQ(walker_accepts(value, schema), expected) << value_text << " against " << text;
      ++(expected ? accepted : rejected);
    }
  }
  // Neither side may win by always giving one answer.
  EXPECT_GT(accepted, 80);
  EXPECT_GT(rejected, 200);
}

TEST(SchemaOracle, AgreesOnMutations) {
  RandomBits bits(2024);
  int accepted = 0;
  for (const char* text : kSchemas) {
    const json schema = json::parse(text);
    const Oracle oracle(schema);
    for (int i = 0; i < 1500; ++i) {
      json value = json::parse(kValues[bits.below(std::size(kValues))]);
      for (std::uint64_t edits = 1 + bits.below(3); edits > 0; --edits)
        value = mutated(value, bits);
      const bool expected = oracle.accepts(value);
      accepted += expected ? 1 : 0;
      ASSERT_EQ(walker_accepts(value, schema), expected) << value << " against " << text;
    }
  }
  EXPECT_GT(accepted, 2000);
}

TEST(SchemaOracle, AcceptsWhatCheckingLeftBehind) {
  RandomBits bits(7);
  const json schema = json::parse(R"({"type": "object", "properties": {
      "a": {"type": "integer", "default": 1}, "b": {"type": "number", "minimum": 0, "default": 0.5},
      "list": {"type": "array", "items": {"type": "object", "properties": {
          "use": {"type": "string", "default": "x"}, "c": {"type": "boolean"}}}, "default": [{}]}}})");
  const Oracle oracle(schema);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    json value = json::parse(R"({"a": 1, "list": [{"c": true}, {}]})");
    for (std::uint64_t edits = 1 + bits.below(2); edits > 0; --edits)
      value = mutated(value, bits);
    const Checked checked = check(value, schema, NoComponents(), NoPlaces());
    if (!checked.problems.empty())
      continue;
    ++accepted;
    EXPECT_TRUE(oracle.accepts(checked.value)) << checked.value;
    EXPECT_EQ(check(checked.value, schema, NoComponents(), NoPlaces()).value, checked.value);
  }
  EXPECT_GT(accepted, 300);
}

}  // namespace
}  // namespace treadle
