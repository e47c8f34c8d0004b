#include <treadle/host/catalog/workflow_editor_schema.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <treadle/base/schema.h>
#include <treadle/host/catalog/workflow_document.h>

namespace treadle {
namespace {

using nlohmann::json;

constexpr std::string_view kOwnPrefix = "x-treadle-";

// What documents may write for the shared types, as far as draft-07 can say it.
const json& shared_types() {
  static const json types = {
      {"path", {{"type", "string"}, {"minLength", 1}}},
      {"duration", {{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)?(%|ep|st|h|min|s)$"}}},
      {"counted_duration", {{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)?(%|ep|st)$"}}},
      {"fraction",
       {{"anyOf",
         {{{"type", "number"}, {"exclusiveMinimum", 0}, {"exclusiveMaximum", 1}},
          {{"type", "string"}, {"pattern", "^[0-9]+(\\.[0-9]+)?%$"}}}}}},
  };
  return types;
}

class Composer {
 public:
  explicit Composer(std::span<const ListedComponent> components) {
    for (const ListedComponent& component : components) {
      by_interface_[component.interface_word].push_back(&component);
    }
  }

  json compose(const json& schema) {
    json composed = plain(schema);
    composed["definitions"] = std::move(definitions_);
    return composed;
  }

 private:
  // The same schema without our extensions.
  json plain(const json& schema) {
    if (!schema.is_object())
      return schema;
    if (schema.contains("x-treadle-component"))
      return slot_reference(schema);
    json result = json::object();
    for (const auto& [key, value] : schema.items()) {
      if (!key.starts_with(kOwnPrefix))
        result[key] = value;
    }
    for (const std::string_view keyword : {"items", "additionalProperties"}) {
      if (result.contains(keyword))
        result[std::string(keyword)] = plain(schema.at(keyword));
    }
    for (const std::string_view keyword : {"oneOf", "anyOf"}) {
      if (!result.contains(keyword))
        continue;
      for (json& branch : result[std::string(keyword)]) {
        json open = branch;
        // The outer schema checks the keys, as check() does.
        if (schema.contains("properties") && open.is_object() &&
            !open.contains("additionalProperties")) {
          open["additionalProperties"] = true;
        }
        branch = plain(open);
      }
    }
    const bool is_object = result.value("type", json()) == "object";
    if (result.contains("properties")) {
      for (auto& [key, property] : result["properties"].items())
        property = plain(property);
    }
    if ((result.contains("properties") || is_object) && !result.contains("additionalProperties")) {
      result["additionalProperties"] = false;
    }
    add_shared_type(schema, result);
    return result;
  }

  static void add_shared_type(const json& schema, json& result) {
    const auto type = schema.find("x-treadle-type");
    if (type != schema.end() && shared_types().contains(*type)) {
      result.erase("type");
      result.update(shared_types()[type->get<std::string>()]);
    }
    const auto unit = schema.find("x-treadle-unit");
    if (unit != schema.end()) {
      const std::string help = result.value("description", "");
      result["description"] = help + (help.empty() ? "in " : ", in ") + unit->get<std::string>();
    }
  }

  json slot_reference(const json& slot) {
    json result = {{"allOf", {{{"$ref", "#/definitions/" + slot_definition(slot)}}}}};
    for (const char* keyword : {"description", "default", "title", "examples", "deprecated"}) {
      if (slot.contains(keyword))
        result[keyword] = slot[keyword];
    }
    return result;
  }

  // Slots that accept the same things share a definition, which also ends the recursion of
  // components that hold components of their own kind.
  std::string slot_definition(const json& slot) {
    const std::string word = slot["x-treadle-component"];
    json kept = {{"x-treadle-component", word}};
    for (const char* keyword : {"properties", "required"}) {
      if (slot.contains(keyword))
        kept[keyword] = slot[keyword];
    }
    const std::string fallback = default_use(slot);
    const auto [known, is_new] = names_.try_emplace(kept.dump() + fallback, "");
    if (!is_new)
      return known->second;
    const std::string name = word + "-" + std::to_string(++slots_of_[word]);
    known->second = name;
    json definition = slot_schema(word, kept, fallback);
    definitions_[name] = std::move(definition);
    return name;
  }

  static std::string default_use(const json& slot) {
    json fallback =
        slot.contains("x-treadle-use") ? slot["x-treadle-use"] : slot.value("default", json());
    if (fallback.is_object())
      fallback = fallback.value("use", json());
    return fallback.is_string() ? fallback.get<std::string>() : "";
  }

  json slot_schema(const std::string& word, const json& slot, const std::string& fallback) {
    json names = json::array();
    json choices = json::array();
    json short_forms = json::array();
    for (const ListedComponent* component : by_interface_[word]) {
      names.push_back(component->name);
      const json merged = merged_schema(*component->schema, slot);
      if (can_stand_alone(merged))
        short_forms.push_back(component->name);
      json then = plain(merged);
      then.erase("$schema");
      json when = {{"properties", {{"use", {{"const", component->name}}}}}};
      if (component->name != fallback)
        when["required"] = {"use"};
      choices.push_back({{"if", std::move(when)}, {"then", std::move(then)}});
    }
    json object = {{"properties", {{"use", {{"enum", names}}}}}};
    if (names.empty())
      object = false;
    if (!choices.empty())
      object["allOf"] = std::move(choices);
    const bool has_fallback = std::find(names.begin(), names.end(), fallback) != names.end();
    if (!has_fallback && object.is_object())
      object["required"] = {"use"};
    json text = short_forms.empty() ? json(false) : json{{"enum", std::move(short_forms)}};
    return {{"type", {"string", "object"}},
            {"if", {{"type", "string"}}},
            {"then", std::move(text)},
            {"else", std::move(object)}};
  }

  // Whether the name alone will do.
  static bool can_stand_alone(const json& merged) {
    return !merged.contains("required") || merged["required"].empty();
  }

  std::map<std::string, std::vector<const ListedComponent*>> by_interface_;
  std::map<std::string, std::string> names_;
  std::map<std::string, int> slots_of_;
  json definitions_ = json::object();
};

}  // namespace

json compose_editor_schema(std::span<const ListedComponent> components) {
  json schema = Composer(components).compose(workflow_schema());
  // A pipeline is a document as well; its stages are documents in turn, which have these keys.
  const json object = {{"type", "object"}};
  schema["properties"]["stages"] = {
      {"type", "object"},
      {"minProperties", 1},
      {"description",
       "of a pipeline: its stages by name, each a run, predictions or an evaluation"},
      {"additionalProperties",
       {{"type", "object"},
        {"minProperties", 1},
        {"maxProperties", 1},
        {"properties", {{"run", object}, {"predict", object}, {"evaluate", object}}},
        {"additionalProperties", false}}}};
  return schema;
}

}  // namespace treadle
