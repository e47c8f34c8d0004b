#include "document_keys.h"

#include <utility>

#include <treadle/host/catalog/workflow_document.h>

#include "hints.h"

namespace treadle::testing {
namespace {

using nlohmann::json;

class NoPlaces final : public PlaceIndex {
  Place place_of(std::string_view) const override { return {}; }
};

class KeyCollector {
 public:
  explicit KeyCollector(const Runtime& runtime) : runtime_(runtime) {}

  /// `value` is null for a key that is left out.
  void visit(const json& value, const json& schema, DocumentKey at) {
    for (const char* const choice : {"anyOf", "oneOf"}) {
      if (!schema.contains(choice))
        continue;
      for (const json& branch : schema[choice]) {
        if (!value.is_null() &&
            check(value, branch, runtime_.schemas(), NoPlaces()).problems.empty())
          return visit(value, branch, std::move(at));
      }
      return;
    }
    if (value.is_object() && schema.contains("x-treadle-component")) {
      const std::string word = schema["x-treadle-component"];
      const std::string name = value["use"];
      const FoundComponent found = runtime_.schemas().find(word, name);
      json merged = merged_schema(*found.schema, schema);
      merged["properties"].erase("use");
      at.component = word + "/" + name;
      at.label = at.component + ":";
      at.parameters = found.schema->value("properties", json::object());
      visit_properties(value, merged, at);
    } else if (value.is_object()) {
      at.label += at.label.back() == ':' ? "" : ".";
      visit_properties(value, schema, at);
    } else if (value.is_array() && schema.contains("items")) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        DocumentKey item = at;
        item.label += "[]";
        item.pointer += "/" + std::to_string(i);
        item.schema = schema["items"];
        keys_.push_back(item);
        visit(value[i], schema["items"], std::move(item));
      }
    }
  }

  std::vector<DocumentKey> keys_;

 private:
  void visit_properties(const json& object, const json& schema, const DocumentKey& at) {
    const json properties = schema.value("properties", json::object());
    for (const auto& [key, property] : properties.items()) {
      DocumentKey within = at;
      within.label += key;
      within.pointer += "/" + key;
      within.key = key;
      within.schema = property;
      keys_.push_back(within);
      if (object.contains(key))
        visit(object[key], property, std::move(within));
    }
  }

  const Runtime& runtime_;
};

}  // namespace

std::vector<DocumentKey> keys_of(const Runtime& runtime, const json& resolved) {
  KeyCollector collector(runtime);
  DocumentKey top;
  top.label = ":";
  collector.visit(resolved, workflow_schema(), top);
  return std::move(collector.keys_);
}

json with_another_value(Drawing& drawing, const json& resolved, const DocumentKey& key) {
  const json::json_pointer pointer(key.pointer);
  const json* const fallback = key.schema.contains("default") ? &key.schema["default"] : nullptr;
  const Spot spot{key.component, key.key, fallback, &key.parameters, 1};
  json changed = resolved;
  // A key that is there may also go.
  if (resolved.contains(pointer) && drawing.dice.chance(20)) {
    json& parent = changed[pointer.parent_pointer()];
    if (parent.is_object())
      parent.erase(pointer.back());
    else
      parent.erase(std::stoul(pointer.back()));
    return changed;
  }
  const Hint* const hint = find_hint(key.component, key.key);
  std::optional<json> value;
  if (hint != nullptr && hint->draw != nullptr)
    value = hint->draw(drawing, key.schema, spot);
  changed[pointer] = value ? *std::move(value) : draw_value(drawing, key.schema, spot);
  return changed;
}

}  // namespace treadle::testing
