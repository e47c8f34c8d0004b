#include <string>
#include <utility>

#include <treadle/base/schema.h>

#include <treadle/embedded/table_schema.h>

namespace treadle {
namespace {

using nlohmann::json;

// What graph::read_flow() reads.
const json& flow_schema() {
  static const json schema = json::parse(R"({
    "type": "array",
    "minItems": 1,
    "maxItems": 100000,
    "examples": [[{"use": "dense", "out_features": 16}, "relu"]],
    "items": {
      "x-treadle-component": "layer",
      "properties": {
        "name": {
          "type": "string", "pattern": "^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$",
          "description": "What the step's node is called instead of, say, dense_0; its parameters are then name.weight … A dot makes a group of nodes: layers.0, layers.1."
        },
        "tag": {
          "type": ["string", "object"], "pattern": "^[A-Za-z0-9_-]+$",
          "additionalProperties": {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"},
          "description": "A name for the step's output, for using and at; for a layer with several outputs, an object with a name for each."
        },
        "using": {
          "type": "array", "items": {"type": "string"},
          "description": "Tags whose values the step takes beside the stream. One that comes only later is a state: its value in the forward before."
        },
        "frozen": {
          "type": "boolean",
          "description": "Whether the step's parameters stay as they are."
        },
        "enabled": {
          "type": "boolean",
          "description": "Whether the step is done; without it the stream passes by."
        }
      }
    }
  })");
  return schema;
}

/// The schemas that others include, by name; null for a name that none has.
const json* included_schema(const std::string& name) {
  static const json table = json::parse(embedded::table_schema());
  return name == "table" ? &table : nullptr;
}

/// With the properties of the schema that `x-treadle-include` names behind its own.
json with_included(json schema) {
  const auto name = schema.find("x-treadle-include");
  if (name == schema.end() || !name->is_string())
    return schema;
  const json* const included = included_schema(name->get<std::string>());
  if (included == nullptr)
    return schema;
  schema.erase(name);
  for (const auto& [key, property] : included->at("properties").items()) {
    if (!schema["properties"].contains(key))
      schema["properties"][key] = property;
  }
  return schema;
}

}  // namespace

json expanded_schema(json schema) {
  if (!schema.is_structured())
    return schema;
  if (schema.is_object())
    schema = with_included(std::move(schema));
  const auto type = schema.is_object() ? schema.find("x-treadle-type") : schema.end();
  if (schema.is_object() && type != schema.end() && *type == "flow") {
    schema.erase("x-treadle-type");
    json expanded = flow_schema();
    expanded.update(schema);
    return expanded;
  }
  for (json& part : schema)
    part = expanded_schema(std::move(part));
  return schema;
}

}  // namespace treadle
