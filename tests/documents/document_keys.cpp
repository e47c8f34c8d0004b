#include "document_keys.h"

#include <algorithm>
#include <map>
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

json value_at(const json& document, const std::string& pointer) {
  const json::json_pointer place(pointer);
  return document.contains(place) ? document[place] : json();
}

bool says_nothing(const json& value) {
  return value.is_null() || (value.is_object() && value.empty());
}

std::string name_in(const json& value) {
  return value.is_object() ? value.value("use", "") : "";
}

}  // namespace

std::vector<DocumentKey> keys_of(const Runtime& runtime, const json& resolved) {
  KeyCollector collector(runtime);
  DocumentKey top;
  top.label = ":";
  collector.visit(resolved, workflow_schema(), top);
  return std::move(collector.keys_);
}

std::set<std::string> changed_labels(const Runtime& runtime, const json& before,
                                     const json& after) {
  std::map<std::string, std::string> changed;  // label by pointer
  std::set<std::string> other_components;
  for (const json* const document : {&before, &after}) {
    for (const DocumentKey& key : keys_of(runtime, *document)) {
      const json one = value_at(before, key.pointer);
      const json other = value_at(after, key.pointer);
      if (one == other || (says_nothing(one) && says_nothing(other)))
        continue;
      changed.emplace(key.pointer, key.label);
      if (name_in(one) != name_in(other))
        other_components.insert(key.pointer);
    }
  }
  const auto is_within = [](const std::string& pointer, const std::string& outer) {
    return pointer.starts_with(outer + "/");
  };
  std::set<std::string> labels;
  for (const auto& [pointer, label] : changed) {
    const std::string& at = pointer;
    const bool is_part =
        std::any_of(other_components.begin(), other_components.end(),
                    [&](const std::string& outer) { return is_within(at, outer); });
    const bool has_parts = !other_components.contains(at) &&
                           std::any_of(changed.begin(), changed.end(), [&](const auto& inner) {
                             return is_within(inner.first, at);
                           });
    if (!is_part && !has_parts)
      labels.insert(label);
  }
  return labels;
}

json with_another_value(Drawing& drawing, const json& resolved, const DocumentKey& key) {
  const json::json_pointer pointer(key.pointer);
  if (resolved.contains(pointer) && drawing.dice.chance(20)) {
    json changed = resolved;
    json& parent = changed[pointer.parent_pointer()];
    if (parent.is_object())
      parent.erase(pointer.back());
    else
      parent.erase(std::stoul(pointer.back()));
    return changed;
  }
  return with_drawn_value(drawing, resolved, key);
}

json with_drawn_value(Drawing& drawing, const json& resolved, const DocumentKey& key) {
  const json* const fallback = key.schema.contains("default") ? &key.schema["default"] : nullptr;
  const Spot spot{key.component, key.key, fallback, &key.parameters, 1};
  const Hint* const hint = find_hint(key.component, key.key);
  std::optional<json> value;
  if (hint != nullptr && hint->draw != nullptr)
    value = hint->draw(drawing, key.schema, spot);
  json changed = resolved;
  changed[json::json_pointer(key.pointer)] =
      value ? *std::move(value) : draw_value(drawing, key.schema, spot);
  return changed;
}

}  // namespace treadle::testing
