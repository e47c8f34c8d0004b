#include <algorithm>
#include <array>
#include <regex>
#include <string>
#include <utility>

#include <treadle/base/document.h>
#include <treadle/base/interfaces.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/schema.h>

#include "schema_keywords.h"

namespace treadle {
namespace {

using nlohmann::json;

bool is_bool(const json& value) {
  return value.is_boolean();
}
bool is_number(const json& value) {
  return value.is_number();
}
bool is_array(const json& value) {
  return value.is_array();
}
bool is_object(const json& value) {
  return value.is_object();
}
bool is_schema(const json& value) {
  return value.is_object() || value.is_boolean();
}
bool is_anything(const json&) {
  return true;
}
bool is_count(const json& value) {
  return value.is_number_unsigned();
}

bool is_text_array(const json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), is_text);
}

bool is_choice(const json& value) {
  return value.is_array() && !value.empty();
}

bool is_branches(const json& value) {
  return is_choice(value) && std::all_of(value.begin(), value.end(), is_schema);
}

bool is_type(const json& value) {
  if (value.is_array())
    return !value.empty() && std::all_of(value.begin(), value.end(), is_type);
  return value.is_string() && !type_phrase(value.get_ref<const std::string&>()).empty();
}

bool is_shared_type(const json& value) {
  return value == "duration" || value == "counted_duration" || value == "path" ||
         value == "fraction";
}

bool is_pointer(const json& value) {
  return value.is_string() && value.get_ref<const std::string&>().starts_with('/');
}

template <typename Rule>
bool is_object_by_pointers(const json& value, const Rule& is_entry) {
  if (!value.is_object())
    return false;
  for (const auto& [pointer, entry] : value.items()) {
    if (!is_pointer(pointer) || !is_entry(entry))
      return false;
  }
  return true;
}

bool is_exclusion(const json& value) {
  return is_object_by_pointers(value, is_text);
}

bool is_setting(const json& value) {
  return is_object_by_pointers(value, [](const json& entry) {
    return entry.is_object() && entry.size() == 2 && entry.contains("value") &&
           entry.contains("why") && is_text(entry.at("why"));
  });
}

bool is_pattern(const json& value) {
  if (!value.is_string())
    return false;
  try {
    compile_pattern(value.get_ref<const std::string&>());
    return true;
  } catch (const std::regex_error&) {
    return false;
  }
}

struct Keyword {
  std::string_view name;
  bool (*is_valid)(const json&);
  std::string_view expected;
};

constexpr std::string_view kTypeNames =
    "one or several of \"string\", \"number\", \"integer\", \"boolean\", \"array\", \"object\", "
    "\"null\"";

constexpr std::array kKeywords{
    Keyword{"type", is_type, kTypeNames},
    Keyword{"enum", is_choice, "an array with at least one choice"},
    Keyword{"const", is_anything, ""},
    Keyword{"minimum", is_number, "a number"},
    Keyword{"maximum", is_number, "a number"},
    Keyword{"exclusiveMinimum", is_number, "a number"},
    Keyword{"exclusiveMaximum", is_number, "a number"},
    Keyword{"minLength", is_count, "a whole number >= 0"},
    Keyword{"maxLength", is_count, "a whole number >= 0"},
    Keyword{"pattern", is_pattern,
            "a regular expression (of at most 200 characters and 1000 repetitions, without back "
            "references)"},
    Keyword{"items", is_schema, "a schema"},
    Keyword{"minItems", is_count, "a whole number >= 0"},
    Keyword{"maxItems", is_count, "a whole number >= 0"},
    Keyword{"uniqueItems", is_bool, "true or false"},
    Keyword{"properties", is_object, "an object"},
    Keyword{"required", is_text_array, "an array of keys"},
    Keyword{"additionalProperties", is_schema, "true, false or a schema"},
    Keyword{"oneOf", is_branches, "an array of schemas"},
    Keyword{"anyOf", is_branches, "an array of schemas"},
    Keyword{"default", is_anything, ""},
    Keyword{"title", is_text, "text"},
    Keyword{"description", is_text, "text"},
    Keyword{"examples", is_array, "an array"},
    Keyword{"deprecated", is_bool, "true or false"},
    Keyword{"$schema", is_text, "text"},
    Keyword{"$comment", is_text, "text"},
    Keyword{"x-treadle-component", is_text, "the word for an interface"},
    Keyword{"x-treadle-use", is_text, "the name of a component"},
    Keyword{"x-treadle-names", is_text, "the word of an interface"},
    Keyword{"x-treadle-type", is_shared_type,
            "\"duration\", \"counted_duration\", \"path\" or \"fraction\""},
    Keyword{"x-treadle-unit", is_text, "text"},
    Keyword{"x-treadle-multiple-of", is_pointer, "a pointer into the document, \"/training/…\""},
    Keyword{"x-treadle-excludes", is_exclusion, "an object: a reason for each pointer"},
    Keyword{"x-treadle-sets", is_setting, "an object: {\"value\", \"why\"} for each pointer"},
};

constexpr std::string_view kOwnPrefix = "x-treadle-";

const Keyword* find_keyword(std::string_view name) {
  for (const Keyword& keyword : kKeywords) {
    if (keyword.name == name)
      return &keyword;
  }
  return nullptr;
}

class NoComponents final : public SchemaIndex {
 public:
  FoundComponent find(std::string_view, std::string_view) const override {
    return {nullptr, "", "no components are known here"};
  }
};

class NoPlaces final : public PlaceIndex {
 public:
  Place place_of(std::string_view) const override { return {}; }
};

bool has_slot(const json& schema) {
  if (schema.is_object() && schema.contains("x-treadle-component"))
    return true;
  return schema.is_structured() && std::any_of(schema.begin(), schema.end(), has_slot);
}

class SchemaRules {
 public:
  SchemaRules(const PlaceIndex& places, const InterfaceTable& interfaces)
      : places_(places), interfaces_(interfaces) {}

  std::vector<Problem> problems_of(const json& schema) {
    walk(schema, "", /*is_component=*/schema.is_object() && schema.contains("x-treadle-interface"));
    return std::move(problems_);
  }

 private:
  void report(const std::string& pointer, std::string message) {
    problems_.push_back({places_.place_of(pointer), pointer, std::move(message)});
  }

  void walk(const json& schema, const std::string& pointer, bool is_component) {
    if (schema.is_boolean())
      return;
    if (!schema.is_object()) {
      report(pointer, "expected a schema (an object), got " + describe_value(schema));
      return;
    }
    const std::size_t before = problems_.size();
    for (const auto& [name, value] : schema.items()) {
      check_keyword(name, value, child_pointer(pointer, name), is_component);
    }
    if (is_component)
      check_component(schema, pointer);
    if (const std::string_view word = text_keyword(schema, "x-treadle-component"); !word.empty()) {
      check_interface(word, child_pointer(pointer, "x-treadle-component"));
    }
    check_required(schema, pointer);
    check_range(schema, pointer, "minimum", "maximum");
    check_range(schema, pointer, "minLength", "maxLength");
    check_range(schema, pointer, "minItems", "maxItems");
    walk_parts(schema, pointer);
    if (problems_.size() == before)
      check_default(schema, pointer);
  }

  void walk_parts(const json& schema, const std::string& pointer) {
    if (const json* properties = object_keyword(schema, "properties")) {
      const std::string here = child_pointer(pointer, "properties");
      for (const auto& [key, property] : properties->items()) {
        walk(property, child_pointer(here, key), false);
      }
    }
    for (const std::string_view keyword : {"items", "additionalProperties"}) {
      if (const json* part = object_keyword(schema, keyword)) {
        walk(*part, child_pointer(pointer, keyword), false);
      }
    }
    for (const std::string_view keyword : {"oneOf", "anyOf"}) {
      const json* branches = array_keyword(schema, keyword);
      if (!branches)
        continue;
      const std::string here = child_pointer(pointer, keyword);
      for (std::size_t i = 0; i < branches->size(); ++i) {
        if ((*branches)[i].is_object())
          walk((*branches)[i], child_pointer(here, i), false);
      }
    }
  }

  void check_keyword(const std::string& name, const json& value, const std::string& pointer,
                     bool is_component) {
    if (const Keyword* keyword = find_keyword(name)) {
      if (!keyword->is_valid(value)) {
        report(pointer,
               "expected " + std::string(keyword->expected) + ", got " + describe_value(value));
      }
      return;
    }
    if (is_component && name.starts_with(kOwnPrefix))
      return;
    std::vector<std::string> names;
    for (const Keyword& keyword : kKeywords)
      names.emplace_back(keyword.name);
    report(pointer, "keyword " + quote_text(name) + " is not among those Treadle understands" +
                        did_you_mean(name, names));
  }

  void check_component(const json& schema, const std::string& pointer) {
    check_interface(text_keyword(schema, "x-treadle-interface"),
                    child_pointer(pointer, "x-treadle-interface"));
    if (const json* name = any_keyword(schema, "x-treadle-name")) {
      static constexpr const char* kName = "^[A-Za-z0-9][A-Za-z0-9_.-]*$";
      if (!name->is_string() ||
          !std::regex_match(name->get_ref<const std::string&>(), std::regex(kName))) {
        report(child_pointer(pointer, "x-treadle-name"),
               "expected a name of letters, digits, \"_\", \".\" and \"-\", got " +
                   describe_value(*name));
      }
    }
    if (const json* also = any_keyword(schema, "x-treadle-also")) {
      const bool are_names =
          also->is_array() && std::all_of(also->begin(), also->end(),
                                          [](const json& name) { return name.is_string(); });
      if (!are_names) {
        report(child_pointer(pointer, "x-treadle-also"),
               "expected an array of names, got " + describe_value(*also));
      }
    }
    if (const json* type = any_keyword(schema, "type"); type && *type != "object") {
      report(child_pointer(pointer, "type"),
             "a component's schema must be of type \"object\", got " + quote_value(*type));
    }
    const std::string_view about = text_keyword(schema, "description");
    if (about.empty()) {
      report(pointer, "required key \"description\" is missing (one line on what it does)");
    } else if (about.find('\n') != std::string_view::npos) {
      report(child_pointer(pointer, "description"), "must be one line");
    }
    if (schema.contains("x-treadle-component")) {
      report(child_pointer(pointer, "x-treadle-component"),
             "a component cannot be a slot itself; put the slot under \"properties\"");
    }
    const json* properties = object_keyword(schema, "properties");
    if (properties && properties->contains("use")) {
      report(child_pointer(child_pointer(pointer, "properties"), "use"),
             "key \"use\" is taken: documents name the component with it");
    }
  }

  void check_interface(std::string_view word, const std::string& pointer) {
    if (interfaces_.id(word).empty())
      report(pointer, interfaces_.explain_unknown(word) +
                          " (a plugin.json declares interfaces of its own under \"interfaces\")");
  }

  void check_required(const json& schema, const std::string& pointer) {
    const json* properties = object_keyword(schema, "properties");
    const json* required = array_keyword(schema, "required");
    if (!properties || !required)
      return;
    const std::string here = child_pointer(pointer, "required");
    for (std::size_t i = 0; i < required->size(); ++i) {
      const json& key = (*required)[i];
      if (!key.is_string() || properties->contains(key.get_ref<const std::string&>()))
        continue;
      report(child_pointer(here, i), "key " + quote_value(key) + " is not among the properties");
    }
  }

  void check_range(const json& schema, const std::string& pointer, std::string_view least,
                   std::string_view most) {
    const json* low = number_keyword(schema, least);
    const json* high = number_keyword(schema, most);
    if (low && high && compare_numbers(*low, *high) > 0) {
      report(pointer, std::string(least) + " " + low->dump() + " is more than " +
                          std::string(most) + " " + high->dump());
    }
  }

  void check_default(const json& schema, const std::string& pointer) {
    const json* value = any_keyword(schema, "default");
    if (!value || has_slot(schema))
      return;
    const Checked checked = check(*value, schema, NoComponents(), NoPlaces());
    for (const Problem& problem : checked.problems) {
      report(child_pointer(pointer, "default") + problem.pointer, problem.message);
    }
  }

  const PlaceIndex& places_;
  const InterfaceTable& interfaces_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> check_schema(const json& schema, const PlaceIndex& places,
                                  const InterfaceTable& interfaces) {
  return SchemaRules(places, interfaces).problems_of(schema);
}

std::vector<Problem> check_schema(const json& schema, const InterfaceTable& interfaces) {
  return check_schema(schema, NoPlaces(), interfaces);
}

}  // namespace treadle
