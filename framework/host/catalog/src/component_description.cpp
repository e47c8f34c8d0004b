#include <treadle/host/catalog/component_description.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <treadle/base/json_words.h>
#include <treadle/base/schema.h>
#include <treadle/base/text_wrap.h>
#include <treadle/host/catalog/workflow_document.h>

namespace treadle {
namespace {

using Json = nlohmann::json;

// How a table speaks of types: shorter than a sentence would.
std::string type_words(const Json& schema);

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty())
      text += separator;
    text += word;
  }
  return text;
}

std::string choice_words(const Json& choices) {
  std::vector<std::string> words;
  for (const Json& choice : choices)
    words.push_back(choice.dump());
  return joined(words, ", ");
}

std::string plain_type_words(const Json& type) {
  if (type.is_array()) {
    std::vector<std::string> words;
    for (const Json& one : type)
      words.push_back(plain_type_words(one));
    return joined(words, " or ");
  }
  static const std::vector<std::pair<std::string_view, std::string_view>> kWords{
      {"string", "text"}, {"integer", "integer"}, {"boolean", "true or false"}};
  const std::string name = type.get<std::string>();
  for (const auto& [key, word] : kWords) {
    if (key == name)
      return std::string(word);
  }
  return name;
}

std::string type_words(const Json& schema) {
  if (!schema.is_object())
    return "anything";
  if (schema.contains("x-treadle-component")) {
    return "component (" + schema["x-treadle-component"].get<std::string>() + ")";
  }
  if (schema.contains("x-treadle-type")) {
    auto words = schema["x-treadle-type"].get<std::string>();
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
  }
  if (schema.contains("enum"))
    return "one of " + choice_words(schema["enum"]);
  if (schema.contains("const"))
    return schema["const"].dump();
  for (const char* keyword : {"oneOf", "anyOf"}) {
    if (!schema.contains(keyword))
      continue;
    std::vector<std::string> words;
    for (const Json& branch : schema[keyword]) {
      std::string word = type_words(branch);
      if (std::find(words.begin(), words.end(), word) == words.end()) {
        words.push_back(std::move(word));
      }
    }
    return joined(words, " or ");
  }
  if (!schema.contains("type"))
    return "anything";
  if (schema["type"] == "array" && schema.contains("items")) {
    return "array of " + type_words(schema["items"]);
  }
  return plain_type_words(schema["type"]);
}

// "exactly 2 elements", "1 to 3 characters"; empty when any number will do.
std::string count_words(const Json& schema, const char* least, const char* most,
                        const std::string& noun) {
  const auto counted = [&](const Json& count) {
    return count.dump() + " " + noun + (count == 1 ? "" : "s");
  };
  const bool has_least = schema.contains(least);
  const bool has_most = schema.contains(most);
  if (has_least && has_most) {
    if (schema[least] == schema[most])
      return "exactly " + counted(schema[least]);
    return schema[least].dump() + " to " + counted(schema[most]);
  }
  if (has_least)
    return "at least " + counted(schema[least]);
  return has_most ? "at most " + counted(schema[most]) : "";
}

std::string range_words(const Json& schema) {
  struct Limit {
    const char* keyword;
    std::string_view sign;
  };
  static constexpr std::array kLimits{Limit{"exclusiveMinimum", "> "}, Limit{"minimum", ">= "},
                                      Limit{"exclusiveMaximum", "< "}, Limit{"maximum", "<= "}};
  if (!schema.is_object())
    return "";
  std::vector<std::string> words;
  for (const Limit& limit : kLimits) {
    if (schema.contains(limit.keyword)) {
      words.push_back(std::string(limit.sign) + schema[limit.keyword].dump());
    }
  }
  const auto add = [&](std::string word) {
    if (!word.empty())
      words.push_back(std::move(word));
  };
  add(count_words(schema, "minLength", "maxLength", "character"));
  add(count_words(schema, "minItems", "maxItems", "element"));
  if (schema.contains("pattern"))
    add("matches " + schema["pattern"].get<std::string>());
  if (schema.value("uniqueItems", false))
    words.push_back("no element twice");
  if (words.empty() && schema.contains("items")) {
    const std::string each = range_words(schema["items"]);
    return each.empty() ? "" : "each " + each;
  }
  for (const char* keyword : {"oneOf", "anyOf"}) {
    if (!schema.contains(keyword))
      continue;
    for (const Json& branch : schema[keyword]) {
      const std::string range = range_words(branch);
      if (!range.empty())
        words.push_back(range);
    }
  }
  if (schema.value("x-treadle-type", "") == "fraction")
    words.push_back("> 0 and < 1");
  return joined(words, " and ");
}

bool is_required(const Json& schema, const std::string& key) {
  const auto required = schema.find("required");
  return required != schema.end() &&
         std::find(required->begin(), required->end(), key) != required->end();
}

/// Where a value is an object or a list of such, the object; else the property itself.
const Json& object_within(const Json& property) {
  const auto branches = property.find("anyOf");
  if (branches == property.end() || !branches->front().contains("properties") ||
      branches->front().contains("x-treadle-component"))
    return property;
  return branches->front();
}

void describe_parameters(const Json& schema, const std::string& prefix,
                         std::vector<ParameterDescription>& rows) {
  if (!schema.contains("properties"))
    return;
  for (const auto& [key, property] : schema["properties"].items()) {
    ParameterDescription row;
    row.name = prefix + key;
    row.type = type_words(property);
    row.range = range_words(property);
    if (property.is_object()) {
      row.unit = property.value("x-treadle-unit", "");
      row.help = property.value("description", "");
      if (property.contains("default"))
        row.fallback = property["default"].dump();
      if (property.value("deprecated", false))
        row.help = "deprecated: " + row.help;
    }
    if (is_required(schema, key))
      row.fallback = "required";
    const std::string inner = row.name + ".";
    rows.push_back(std::move(row));
    if (property.is_object())
      describe_parameters(object_within(property), inner, rows);
  }
}

/// Within the bounds, and where it can be between them: the largest factor is nobody's choice.
Json sample_number(const Json& schema, bool is_whole) {
  if (schema.contains("minimum"))
    return schema["minimum"];
  const char* const most_keyword = schema.contains("maximum") ? "maximum" : "exclusiveMaximum";
  const bool has_most = schema.contains(most_keyword);
  if (!schema.contains("exclusiveMinimum")) {
    if (!has_most)
      return 1;
    return schema.contains("maximum") ? schema["maximum"]
                                      : Json(schema[most_keyword].get<double>() - 1);
  }
  if (is_whole)
    return schema["exclusiveMinimum"].get<std::int64_t>() + 1;
  const double least = schema["exclusiveMinimum"].get<double>();
  const double above = least + 0.5;
  const bool fits = !has_most || above < schema[most_keyword].get<double>();
  return fits ? above : (least + schema[most_keyword].get<double>()) / 2;
}

// A value that the schema accepts, as good as can be guessed.
Json sample_value(const Json& schema) {
  if (!schema.is_object())
    return nullptr;
  if (schema.contains("examples") && !schema["examples"].empty())
    return schema["examples"][0];
  for (const char* keyword : {"default", "const"}) {
    if (schema.contains(keyword))
      return schema[keyword];
  }
  if (schema.contains("enum"))
    return schema["enum"][0];
  for (const char* keyword : {"oneOf", "anyOf"}) {
    if (schema.contains(keyword))
      return sample_value(schema[keyword][0]);
  }
  if (schema.contains("x-treadle-component"))
    return "…";
  static const Json kTypical = {
      {"duration", "5%"}, {"counted_duration", "5%"}, {"path", "data/file"}, {"fraction", 0.2},
      {"string", "…"},    {"boolean", true},          {"null", nullptr}};
  if (schema.contains("x-treadle-type")) {
    return kTypical.value(schema["x-treadle-type"].get<std::string>(), Json("…"));
  }
  Json type = schema.value("type", Json("string"));
  if (type.is_array())
    type = type[0];
  if (type == "number" || type == "integer")
    return sample_number(schema, type == "integer");
  if (type == "array") {
    Json elements = Json::array();
    const std::size_t count = schema.value("minItems", std::size_t{1});
    while (elements.size() < count && schema.contains("items")) {
      elements.push_back(sample_value(schema["items"]));
    }
    return elements;
  }
  if (type == "object") {
    Json object = Json::object();
    if (!schema.contains("properties"))
      return object;
    for (const auto& [key, property] : schema["properties"].items()) {
      if (is_required(schema, key))
        object[key] = sample_value(property);
    }
    return object;
  }
  return kTypical.value(type.get<std::string>(), Json("…"));
}

/// Whether one of the slots is for this component alone.
bool has_key_of_its_own(const Json& properties, const Json& component) {
  return std::any_of(properties.begin(), properties.end(), [&](const Json& slot) {
    return slot.is_object() && slot.value("x-treadle-use", Json()) == component.at("use");
  });
}

/// Borrows networks that are at home within a model: no place to show one in.
constexpr std::string_view kComparedWith = "baselines";

/// Where a document has such a component: "optimizer", but "metrics", a list, "callbacks" inside
/// "training", and a device only by its name. Nothing where it has none.
std::optional<Json> placed_in(const Json& properties, std::string_view interface_word,
                              const Json& component) {
  for (const auto& [key, property] : properties.items()) {
    if (key == kComparedWith)
      continue;
    // "loss" is one or a list of them.
    const Json slot = property.contains("anyOf") ? property["anyOf"][0] : property;
    const Json fixed = slot.value("x-treadle-use", Json());
    if (slot.value("x-treadle-component", "") == interface_word &&
        (fixed.is_null() || fixed == component.at("use"))) {
      Json placed = component;
      if (!fixed.is_null())
        placed.erase("use");
      return Json{{key, placed}};
    }
    const Json items = property.value("items", Json::object());
    if (items.value("x-treadle-component", "") == interface_word &&
        !has_key_of_its_own(properties, component))
      return Json{{key, Json::array({component})}};
    if (slot.value("x-treadle-names", "") == interface_word)
      return Json{{key, component.at("use")}};
    if (!slot.contains("properties"))
      continue;
    if (const auto inside = placed_in(slot["properties"], interface_word, component))
      return Json{{key, *inside}};
  }
  return std::nullopt;
}

/// The parameters that the plugin's author wrote down as an example; empty where there is none.
Json written_sample(const Json& schema) {
  const Json examples = schema.value("examples", Json::array());
  return examples.empty() || !examples[0].is_object() ? Json::object() : examples[0];
}

Json sample_use(std::string_view interface_word, std::string_view name, const Json& schema) {
  Json component = written_sample(schema);
  component["use"] = name;
  if (schema.contains("properties")) {
    for (const auto& [key, property] : schema["properties"].items()) {
      const bool has_default = property.is_object() && property.contains("default");
      if (!component.contains(key) && (has_default || is_required(schema, key)))
        component[key] = sample_value(property);
    }
  }
  const std::optional<Json> placed =
      placed_in(workflow_schema()["properties"], interface_word, component);
  return placed ? *placed : component;
}

/// What documents themselves say of every component of the interface: the properties of the slots
/// it may stand in, in the document or as a step of a flow.
std::vector<ParameterDescription> describe_slots(std::string_view interface_word,
                                                 std::string_view name) {
  std::vector<Json> slots = slots_for(interface_word, workflow_schema());
  const std::vector<Json> steps =
      slots_for(interface_word, expanded_schema({{"x-treadle-type", "flow"}}));
  slots.insert(slots.end(), steps.begin(), steps.end());
  Json all = {{"properties", Json::object()}};
  for (const Json& slot : slots) {
    const Json fixed = slot.value("x-treadle-use", Json());
    if (slot.contains("properties") && (fixed.is_null() || fixed == name))
      all["properties"].update(slot["properties"]);
  }
  std::vector<ParameterDescription> rows;
  describe_parameters(all, "", rows);
  return rows;
}

Json rows_json(const std::vector<ParameterDescription>& parameters) {
  Json rows = Json::array();
  for (const ParameterDescription& row : parameters) {
    Json entry = {{"name", row.name}, {"type", row.type}, {"help", row.help}};
    entry["required"] = row.fallback == "required";
    if (!row.range.empty())
      entry["range"] = row.range;
    if (!row.unit.empty())
      entry["unit"] = row.unit;
    if (!row.fallback.empty() && row.fallback != "required") {
      entry["default"] = Json::parse(row.fallback);
    }
    rows.push_back(std::move(entry));
  }
  return rows;
}

using Row = std::array<std::string, 6>;

/// Empty where it would be wider than `columns`.
std::string table_text(std::string_view subject,
                       const std::vector<ParameterDescription>& parameters, std::size_t columns) {
  std::vector<Row> rows{{std::string(subject), "TYPE", "RANGE", "DEFAULT", "UNIT", "MEANING"}};
  for (const ParameterDescription& row : parameters) {
    rows.push_back({row.name, row.type, row.range, row.fallback.empty() ? "-" : row.fallback,
                    row.unit, row.help});
  }
  std::array<std::size_t, 6> widths{};
  for (std::size_t column = 0; column < widths.size(); ++column) {
    for (std::size_t i = 1; i < rows.size(); ++i) {
      widths[column] = std::max(widths[column], display_columns(rows[i][column]));
    }
    // A column in which nobody has anything to say is left out with its heading.
    if (widths[column] > 0) {
      widths[column] = std::max(widths[column], display_columns(rows[0][column]));
    }
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (widths[column] == 0)
        continue;
      line += row[column];
      line.append(widths[column] - display_columns(row[column]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (display_columns(line) > columns)
      return {};
    text += line + "\n";
  }
  return text;
}

/// Each parameter with its facts, and below it what it means.
std::string list_text(const std::vector<ParameterDescription>& parameters, std::size_t columns) {
  std::size_t width = 0;
  for (const ParameterDescription& row : parameters)
    width = std::max(width, display_columns(row.name) + 2);
  width = std::min(width, columns / 3);
  std::string text;
  for (const ParameterDescription& row : parameters) {
    std::string facts = row.type;
    if (!row.range.empty())
      facts += ", " + row.range;
    if (!row.unit.empty())
      facts += ", in " + row.unit;
    if (!row.fallback.empty())
      facts += row.fallback == "required" ? ", required" : ", default " + row.fallback;
    const std::string about = row.help.empty() ? facts : row.help + " (" + facts + ")";
    const std::string left = row.name + "  ";
    text += display_columns(left) <= width
                ? hanging_text(left, width, about, columns)
                : row.name + "\n" + hanging_text("", width, about, columns);
  }
  return text;
}

std::string rows_text(std::string_view subject, const std::vector<ParameterDescription>& parameters,
                      std::size_t columns) {
  const std::string table = table_text(subject, parameters, columns);
  return table.empty() ? list_text(parameters, columns) : table;
}

}  // namespace

ComponentDescription describe_component(std::string_view interface_word, std::string_view name,
                                        const Json& schema) {
  ComponentDescription description;
  description.interface_word = interface_word;
  description.name = name;
  description.title = schema.value("title", "");
  description.about = schema.value("description", "");
  describe_parameters(schema, "", description.parameters);
  description.slot_keys = describe_slots(interface_word, name);
  description.sample = sample_use(interface_word, name, schema);
  return description;
}

std::string ComponentDescription::text(std::size_t columns) const {
  std::string text = interface_word + " " + name;
  if (!title.empty() && title != name)
    text += " (" + title + ")";
  text += "\n";
  if (!about.empty())
    text += hanging_text("", 2, about, columns);
  text += "\n";
  if (parameters.empty()) {
    text +=
        slot_keys.empty() ? "It takes no parameters.\n" : "It takes no parameters of its own.\n";
  } else {
    text += rows_text("PARAMETER", parameters, columns);
  }
  if (!slot_keys.empty())
    text += "\nKeys of every " + interface_word + ":\n\n" + rows_text("KEY", slot_keys, columns);
  const bool stands_alone = sample.contains("use");
  std::string lines = write_workflow(stands_alone ? Json::array({sample}) : sample);
  lines = lines.substr(2, lines.size() - 5);  // without what is around it: a piece to paste
  text += "\nIn a document:\n" + lines + "\n";
  return text;
}

Json ComponentDescription::json() const {
  return {{"interface", interface_word},
          {"name", name},
          {"title", title},
          {"description", about},
          {"parameters", rows_json(parameters)},
          {"slot_keys", rows_json(slot_keys)},
          {"sample", sample}};
}

}  // namespace treadle
