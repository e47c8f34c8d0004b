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
      describe_parameters(property, inner, rows);
  }
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
  if (type == "number" || type == "integer") {
    for (const char* keyword : {"minimum", "maximum"}) {
      if (schema.contains(keyword))
        return schema[keyword];
    }
    if (schema.contains("exclusiveMinimum"))
      return schema["exclusiveMinimum"].get<double>() + 1;
    if (schema.contains("exclusiveMaximum"))
      return schema["exclusiveMaximum"].get<double>() - 1;
    return 1;
  }
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

/// Where a document has such a component: "optimizer", but "metrics", a list, and "callbacks"
/// inside "training". Nothing where it has none.
std::optional<Json> placed_in(const Json& properties, std::string_view interface_word,
                              const Json& component) {
  for (const auto& [key, property] : properties.items()) {
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
    if (!slot.contains("x-treadle-component") || !slot.contains("properties"))
      continue;
    if (const auto inside = placed_in(slot["properties"], interface_word, component))
      return Json{{key, *inside}};
  }
  return std::nullopt;
}

Json sample_use(std::string_view interface_word, std::string_view name, const Json& schema) {
  Json component = {{"use", name}};
  if (schema.contains("properties")) {
    for (const auto& [key, property] : schema["properties"].items()) {
      const bool has_default = property.is_object() && property.contains("default");
      if (has_default || is_required(schema, key))
        component[key] = sample_value(property);
    }
  }
  const std::optional<Json> placed =
      placed_in(workflow_schema()["properties"], interface_word, component);
  return placed ? *placed : component;
}

using Row = std::array<std::string, 6>;

/// Empty where it would be wider than `columns`.
std::string table_text(const std::vector<ParameterDescription>& parameters, std::size_t columns) {
  std::vector<Row> rows{{"PARAMETER", "TYPE", "RANGE", "DEFAULT", "UNIT", "MEANING"}};
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

}  // namespace

ComponentDescription describe_component(std::string_view interface_word, std::string_view name,
                                        const Json& schema) {
  ComponentDescription description;
  description.interface_word = interface_word;
  description.name = name;
  description.title = schema.value("title", "");
  description.about = schema.value("description", "");
  describe_parameters(schema, "", description.parameters);
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
    text += "It takes no parameters.\n";
  } else {
    const std::string table = table_text(parameters, columns);
    text += table.empty() ? list_text(parameters, columns) : table;
  }
  const bool stands_alone = sample.contains("use");
  std::string lines = write_workflow(stands_alone ? Json::array({sample}) : sample);
  lines = lines.substr(2, lines.size() - 5);  // without what is around it: a piece to paste
  text += "\nIn a document:\n" + lines + "\n";
  return text;
}

Json ComponentDescription::json() const {
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
  return {
      {"interface", interface_word},   {"name", name},    {"title", title}, {"description", about},
      {"parameters", std::move(rows)}, {"sample", sample}};
}

}  // namespace treadle
