#include "schema_values.h"

#include <algorithm>
#include <cmath>

#include "hints.h"

namespace treadle::testing {
namespace {

using nlohmann::json;

constexpr int kDeepest = 6;
constexpr int kChance = 25;  // of a key that may be left out
constexpr std::int64_t kMostAboveLeast = 7;

json draw_integer(Drawing& drawing, const json& schema) {
  const auto least = std::max<std::int64_t>(schema.value("minimum", std::int64_t{-3}), -3);
  const auto most = std::min(schema.value("maximum", least + kMostAboveLeast),
                             least < 0 ? std::int64_t{3} : least + kMostAboveLeast);
  return drawing.dice.whole(least, most);
}

/// Around the default, up to ten times more or less; without one, within the bounds.
json draw_number(Drawing& drawing, const json& schema, const Spot& spot) {
  Dice& dice = drawing.dice;
  const json fallback = schema.contains("default") ? schema["default"]
                        : spot.fallback != nullptr ? *spot.fallback
                                                   : json();
  const bool excludes_least = schema.contains("exclusiveMinimum");
  const bool excludes_most = schema.contains("exclusiveMaximum");
  const double least =
      excludes_least ? schema["exclusiveMinimum"].get<double>() : schema.value("minimum", -1.0);
  const double most = excludes_most ? schema["exclusiveMaximum"].get<double>()
                                    : schema.value("maximum", std::max(least, 0.0) + 1);
  if (!excludes_least && schema.contains("minimum") && dice.chance(5))
    return least;
  double value = dice.between(least, most);
  if (fallback.is_number() && fallback.get<double>() > 0 && dice.chance(60)) {
    value = fallback.get<double>() * std::pow(10, dice.between(-1, 1));
  } else if (least >= 0 && !schema.contains("maximum") && !excludes_most && dice.chance(50)) {
    value = std::pow(10, dice.between(-2, 1));
  }
  value = dice.short_number(value);
  const bool is_within =
      (excludes_least ? value > least : value >= least) &&
      (excludes_most ? value < most : !schema.contains("maximum") || value <= most);
  return is_within ? value : least + (most - least) / 2;
}

json draw_duration(Drawing& drawing, bool counted) {
  Dice& dice = drawing.dice;
  switch (dice.below(counted ? 4 : 5)) {
    case 0:
      return std::to_string(5 * dice.whole(1, 19)) + "%";
    case 1:
      return std::to_string(dice.whole(1, 3)) + "ep";
    case 2:
      return std::to_string(dice.whole(0, 2)) + ".5ep";
    case 3:
      return std::to_string(dice.whole(1, 9)) + "st";
    default:
      return "0.0" + std::to_string(dice.whole(1, 9)) + "s";
  }
}

json draw_text(Drawing& drawing, const json& schema, const Spot& spot) {
  const std::string kind = schema.value("x-treadle-type", "");
  if (kind == "duration" || kind == "counted_duration")
    return draw_duration(drawing, kind == "counted_duration");
  if (kind == "fraction")
    return std::to_string(drawing.dice.whole(10, 60)) + "%";
  if (kind == "path")
    return (drawing.folder / "written.prom").string();
  const std::vector<std::string> known = known_names(drawing, spot.key);
  if (!known.empty())
    return drawing.dice.one_of(known);
  return "n" + std::to_string(drawing.dice.below(10));
}

json draw_object(Drawing& drawing, const json& schema, const Spot& spot,
                 json object = json::object()) {
  const json required = schema.value("required", json::array());
  const json properties = schema.value("properties", json::object());
  for (const auto& [key, property] : properties.items()) {
    if (object.contains(key))
      continue;
    const bool must = std::find(required.begin(), required.end(), key) != required.end();
    Spot within = spot;
    within.key = key;
    within.fallback = property.contains("default") ? &property["default"] : nullptr;
    ++within.depth;
    if (const Hint* const hint = find_hint(spot.component, key)) {
      if (!must && !drawing.dice.chance(hint->percent))
        continue;
      if (hint->draw != nullptr) {
        if (auto value = hint->draw(drawing, property, within))
          object[key] = *std::move(value);
        continue;
      }
    } else if (!must && (within.depth > kDeepest || !drawing.dice.chance(kChance))) {
      continue;
    }
    object[key] = draw_value(drawing, property, within);
  }
  const json others = schema.value("additionalProperties", json(false));
  if (others.is_object()) {
    for (const std::string& name : drawing.dice.some_of(known_names(drawing, spot.key))) {
      Spot within = spot;
      ++within.depth;
      object[name] = draw_value(drawing, others, within);
    }
  } else if (others == true && spot.parameters != nullptr) {
    // Values of the component's own parameters for a part of the model.
    const json& parameters = *spot.parameters;
    for (const auto& [key, property] : parameters.items()) {
      Spot within = spot;
      within.key = key;
      within.fallback = property.contains("default") ? &property["default"] : nullptr;
      ++within.depth;
      if (!object.contains(key) && drawing.dice.chance(kChance))
        object[key] = draw_value(drawing, property, within);
    }
  } else if (others == true) {
    object["note"] = drawing.dice.below(10);
  }
  return object;
}

json draw_array(Drawing& drawing, const json& schema, const Spot& spot) {
  const json& items = schema.value("items", json::object());
  if (items.value("x-treadle-component", "") == "layer" && !drawing.flow.empty())
    return drawing.flow;
  const std::size_t least = schema.value("minItems", std::size_t{0});
  const std::size_t most =
      std::min(schema.value("maxItems", least + 2), std::max(least, std::size_t{1}) + 1);
  const std::size_t count = least + drawing.dice.below(most - least + 1);
  json array = json::array();
  for (int attempt = 0; array.size() < count && attempt < 20; ++attempt) {
    Spot within = spot;
    within.fallback = nullptr;
    ++within.depth;
    json item = draw_value(drawing, items, within);
    if (!schema.value("uniqueItems", false) ||
        std::find(array.begin(), array.end(), item) == array.end())
      array.push_back(std::move(item));
  }
  return array;
}

}  // namespace

json draw_value(Drawing& drawing, const json& schema, const Spot& spot) {
  if (schema.contains("const"))
    return schema["const"];
  if (schema.contains("enum"))
    return schema["enum"][drawing.dice.below(schema["enum"].size())];
  for (const char* const choice : {"anyOf", "oneOf"}) {
    if (schema.contains(choice))
      return draw_value(drawing, schema[choice][drawing.dice.below(schema[choice].size())], spot);
  }
  if (schema.contains("x-treadle-component"))
    return draw_component(drawing, schema, spot);
  const json type = schema.value("type", json("object"));
  const std::string is = type.is_array() ? type[drawing.dice.below(type.size())] : type;
  if (is == "boolean")
    return drawing.dice.chance(50);
  if (is == "integer")
    return draw_integer(drawing, schema);
  if (is == "number" && schema.value("x-treadle-type", "") == "fraction")
    return drawing.dice.short_number(drawing.dice.between(0.1, 0.6));
  if (is == "number")
    return draw_number(drawing, schema, spot);
  if (is == "array")
    return draw_array(drawing, schema, spot);
  return is == "string" ? draw_text(drawing, schema, spot) : draw_object(drawing, schema, spot);
}

json draw_component(Drawing& drawing, const json& slot, const Spot& spot) {
  const std::string word = slot["x-treadle-component"];
  if (slot.contains("x-treadle-use"))
    return draw_component(drawing, slot, slot["x-treadle-use"].get<std::string>(), spot);
  std::vector<std::string> names;
  for (const CatalogComponent& component : drawing.runtime.catalog().components(word))
    names.push_back(component.component->name);
  const std::string name = drawing.dice.one_of(preferred(drawing, word, std::move(names)));
  return draw_component(drawing, slot, name, spot);
}

json draw_component(Drawing& drawing, const json& slot, const std::string& name, const Spot& spot) {
  const std::string word = slot["x-treadle-component"];
  const FoundComponent found = drawing.runtime.schemas().find(word, name);
  json merged = merged_schema(*found.schema, slot);
  merged["properties"].erase("use");
  merged.erase("additionalProperties");
  const json own = found.schema->value("properties", json::object());
  Spot within = spot;
  within.component = word + "/" + name;
  within.parameters = &own;
  json component = draw_object(drawing, merged, within, settled_keys(drawing, within.component));
  for (auto key = component.begin(); key != component.end();)
    key = key->is_null() ? component.erase(key) : std::next(key);
  component["use"] = name;
  return component;
}

bool works_on(const json& component, TargetKind kind) {
  const json kinds = component.value("x-treadle-target", json());
  return kinds.is_null() || kinds == name_of(kind) ||
         (kinds.is_array() && std::find(kinds.begin(), kinds.end(), name_of(kind)) != kinds.end());
}

std::vector<std::string> components_for(const Runtime& runtime, const std::string& interface_word,
                                        TargetKind kind) {
  std::vector<std::string> names;
  for (const CatalogComponent& component : runtime.catalog().components(interface_word)) {
    if (works_on(runtime.catalog().schema(component), kind))
      names.push_back(component.component->name);
  }
  return names;
}

}  // namespace treadle::testing
