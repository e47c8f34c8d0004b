#include <treadle/base/schema.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <stdexcept>
#include <utility>

#include <treadle/base/document.h>
#include <treadle/base/duration.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/utf8.h>

#include "key_finder.h"
#include "schema_keywords.h"

namespace treadle {
namespace {

using nlohmann::json;

constexpr std::size_t kMostProblems = 200;
// Millions of mistakes must not fill the memory with sentences.
constexpr std::size_t kMostKept = 10000;
// std::regex recurses for every character, and looks from each of them on.
constexpr std::size_t kLongestPatternText = 1000;
constexpr int kMaxDepth = Document::kMaxDepth;
// A thousand components for any document, and more for a large one.
constexpr std::size_t kLeastWork = 100'000;
constexpr std::size_t kWorkPerValue = 100;

std::string joined(const std::vector<std::string>& words, std::string_view last_separator) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0)
      text += i + 1 == words.size() ? last_separator : std::string_view(", ");
    text += words[i];
  }
  return text;
}

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string with_article(std::string_view noun) {
  const bool vowel = !noun.empty() && std::string_view("aeiou").find(noun[0]) != noun.npos;
  return (vowel ? "an " : "a ") + std::string(noun);
}

// What a value of the wrong kind should have been.
struct Expectation {
  std::vector<std::string> phrases;  // empty: the kind is right
  std::vector<std::string> words;    // the texts among the choices, for suggestions
  bool choices_only = true;          // no phrase names a type
};

void add_choice(Expectation& expected, const json& choice) {
  expected.phrases.push_back(quote_value(choice));
  if (choice.is_string())
    expected.words.push_back(choice.get<std::string>());
}

void add_kind(Expectation& expected, std::string phrase) {
  if (std::find(expected.phrases.begin(), expected.phrases.end(), phrase) ==
      expected.phrases.end()) {
    expected.phrases.push_back(std::move(phrase));
  }
  expected.choices_only = false;
}

bool is_one_of(const json& value, const json& choices) {
  return std::find(choices.begin(), choices.end(), value) != choices.end();
}

/// " such as "2h" or "90s"", as the schema has examples: of texts all, else the first one. Nothing
/// where it has none, or they are too long for a sentence.
std::string such_as(const json& schema) {
  constexpr std::size_t kLongest = 80;
  const json* examples = array_keyword(schema, "examples");
  if (!examples || examples->empty())
    return {};
  std::vector<std::string> words;
  for (const json& example : *examples) {
    if (words.empty() || example.is_string())
      words.push_back(example.dump());
  }
  const std::string text = joined(words, " or ");
  return text.size() > kLongest ? std::string() : " such as " + plain_text(text);
}

// The types that `value` has none of.
void expect_type(const json& value, const json& types, Expectation& expected) {
  if (types.is_string()) {
    if (!has_type(value, types.get_ref<const std::string&>())) {
      add_kind(expected, std::string(type_phrase(types.get_ref<const std::string&>())));
    }
    return;
  }
  if (!types.is_array())
    return;
  Expectation all;
  for (const json& type : types) {
    Expectation one;
    expect_type(value, type, one);
    if (one.phrases.empty())
      return;
    add_kind(all, one.phrases.front());
  }
  for (std::string& phrase : all.phrases)
    add_kind(expected, std::move(phrase));
}

struct SharedType {
  std::string_view name;
  std::string_view phrase;
  bool (*kind_fits)(const json&);
  // Makes the value what a component reads. Throws std::invalid_argument.
  void (*normalise)(json&, const std::filesystem::path& base);
};

void normalise_duration(json& value, const std::filesystem::path&) {
  Duration::parse(value.get_ref<const std::string&>());
}

// Wall time would make two equal runs differ.
void normalise_counted_duration(json& value, const std::filesystem::path&) {
  const Duration duration = Duration::parse(value.get_ref<const std::string&>());
  if (duration.unit == Duration::Unit::kSeconds) {
    throw std::invalid_argument(
        "expected a share of the training, epochs or steps (\"5%\", \"10ep\", \"500st\"), because "
        "wall time would "
        "make two runs differ; got " +
        quote_value(value));
  }
}

void normalise_path(json& value, const std::filesystem::path& base) {
  const std::string& text = value.get_ref<const std::string&>();
  if (text.empty())
    throw std::invalid_argument("expected a path, got \"\"");
  if (text.find('\0') != std::string::npos) {
    throw std::invalid_argument("expected a path, got one with a zero byte in it");
  }
  if (!base.empty())
    value = (base / text).lexically_normal().string();
  // JSON could not hold it, and the run folder's documents are JSON.
  if (first_bad_utf8(value.get_ref<const std::string&>())) {
    throw std::invalid_argument("expected a path in UTF-8, got " + describe_value(value));
  }
}

constexpr std::string_view kFractionPhrase = "a fraction such as 0.2 or \"20%\"";

void normalise_fraction(json& value, const std::filesystem::path&) {
  std::optional<double> fraction;
  if (value.is_number()) {
    fraction = value.get<double>();
  } else {
    try {
      const Duration part = Duration::parse(value.get_ref<const std::string&>());
      if (part.unit == Duration::Unit::kFraction)
        fraction = part.value;
    } catch (const std::invalid_argument&) {
      // Said better below: a duration is not what was asked for.
    }
  }
  if (!fraction || !(*fraction > 0 && *fraction < 1)) {
    throw std::invalid_argument("expected " + std::string(kFractionPhrase) +
                                ", more than 0 and less than 1, got " + describe_value(value));
  }
  if (value.is_string())
    value = *fraction;
}

bool is_text_or_number(const json& value) {
  return value.is_string() || value.is_number();
}

constexpr std::array kSharedTypes{
    SharedType{"duration", "a duration such as \"5%\", \"10ep\", \"500st\" or \"2h\"", is_text,
               normalise_duration},
    SharedType{"counted_duration", "a duration such as \"5%\", \"10ep\" or \"500st\"", is_text,
               normalise_counted_duration},
    SharedType{"path", "a path (text)", is_text, normalise_path},
    SharedType{"fraction", kFractionPhrase, is_text_or_number, normalise_fraction},
};

const SharedType* shared_type(const json& schema) {
  const std::string_view name = text_keyword(schema, "x-treadle-type");
  for (const SharedType& type : kSharedTypes) {
    if (type.name == name)
      return &type;
  }
  return nullptr;
}

/// A duration as those that make sense at this place, where the schema names some.
std::string phrase_of(const SharedType& type, const json& schema) {
  const std::string examples = type.name == "duration" ? such_as(schema) : std::string();
  return examples.empty() ? std::string(type.phrase) : "a duration" + examples;
}

Expectation branch_expectation(const json& value, const json* branches);

// Whether the value is of the right kind at all, before its details are looked at.
Expectation expectation(const json& value, const json& schema) {
  Expectation expected;
  if (const std::string_view word = text_keyword(schema, "x-treadle-component"); !word.empty()) {
    if (!value.is_string() && !value.is_object()) {
      add_kind(expected, "the name of " + with_article(word) + " or an object with \"use\"");
    }
    return expected;
  }
  if (const SharedType* type = shared_type(schema)) {
    if (!type->kind_fits(value))
      add_kind(expected, phrase_of(*type, schema));
    return expected;
  }
  if (const json* types = any_keyword(schema, "type")) {
    expect_type(value, *types, expected);
    if (types->is_string() && !expected.phrases.empty())
      expected.phrases.front() += such_as(schema);
  }
  if (!expected.phrases.empty())
    return expected;
  if (const json* only = any_keyword(schema, "const"); only && *only != value) {
    add_choice(expected, *only);
  }
  if (const json* choices = array_keyword(schema, "enum"); choices && !is_one_of(value, *choices)) {
    for (const json& choice : *choices)
      add_choice(expected, choice);
  }
  if (!expected.phrases.empty())
    return expected;
  for (const std::string_view keyword : {"oneOf", "anyOf"}) {
    expected = branch_expectation(value, array_keyword(schema, keyword));
    if (!expected.phrases.empty())
      break;
  }
  return expected;
}

// What all branches expected together, when the value is of the wrong kind for each of them.
Expectation branch_expectation(const json& value, const json* branches) {
  Expectation all;
  if (!branches)
    return all;
  for (const json& branch : *branches) {
    Expectation one = expectation(value, branch);
    if (one.phrases.empty())
      return {};
    all.choices_only = all.choices_only && one.choices_only;
    std::move(one.phrases.begin(), one.phrases.end(), std::back_inserter(all.phrases));
    std::move(one.words.begin(), one.words.end(), std::back_inserter(all.words));
  }
  return all;
}

std::string sentence(const Expectation& expected, const json& value) {
  if (expected.choices_only) {
    const std::string must = expected.phrases.size() == 1 ? "must be " : "must be one of ";
    const std::string text = must + joined(expected.phrases, ", ") + ", got " + quote_value(value);
    if (!value.is_string())
      return text;
    // To suggest every choice would be to list them twice.
    const std::string& word = value.get_ref<const std::string&>();
    const bool narrows = near_misses(word, expected.words).size() < expected.phrases.size();
    return narrows ? text + did_you_mean(word, expected.words) : text;
  }
  std::string text =
      "expected " + joined(expected.phrases, " or ") + ", got " + describe_value(value);
  if (value.is_string())
    text += did_you_mean(value.get_ref<const std::string&>(), expected.words);
  return text;
}

// How many values there are in it, itself included.
std::size_t count_values(const json& value) {
  std::size_t count = 1;
  if (value.is_structured()) {
    for (const json& part : value)
      count += count_values(part);
  }
  return count;
}

/// What one check may cost. Depth alone bounds nothing: a component that holds itself twice, by its
/// defaults or in branches, doubles the work with each level.
struct Budget {
  std::size_t work = 0;    // values that may still be copied
  std::size_t untold = 0;  // problems that were counted only

  bool is_spent() const { return work == 0; }
  void spend(std::size_t values) { work -= std::min(work, values); }
};

class Walker {
 public:
  Walker(const SchemaIndex& index, const PlaceIndex& places, const KeyFinder& keys,
         const std::filesystem::path& base, std::vector<Problem>& problems,
         std::vector<UsedComponent>& used, Budget& budget)
      : index_(index),
        places_(places),
        keys_(keys),
        base_(base),
        problems_(problems),
        used_(used),
        budget_(budget) {}

  // Where a value stands, and how the object it belongs to is called in messages.
  struct Spot {
    std::string pointer;
    int depth = 0;
    std::string owner;  // "optimizer adamw"; empty: named after schema or key
    bool open = false;  // unknown keys are somebody else's business
  };

  void walk(json& value, const json& schema, const Spot& spot) {
    if (budget_.is_spent())
      return;
    if (schema.is_boolean()) {
      if (schema == false)
        report(spot.pointer, "must be left out");
      return;
    }
    const bool may_nest = value.is_structured() || schema.contains("x-treadle-component");
    if (may_nest && spot.depth > kMaxDepth) {
      report(spot.pointer, "is nested more than " + std::to_string(kMaxDepth) +
                               " levels deep; a component's defaults may contain the component");
      return;
    }
    if (const Expectation expected = expectation(value, schema); !expected.phrases.empty()) {
      report(spot.pointer, sentence(expected, value));
      return;
    }
    if (!text_keyword(schema, "x-treadle-component").empty()) {
      walk_slot(value, schema, spot);
      return;
    }
    if (const SharedType* type = shared_type(schema)) {
      try {
        type->normalise(value, base_);
      } catch (const std::invalid_argument& refused) {
        const std::string phrase = phrase_of(*type, schema);
        report(spot.pointer, phrase == type->phrase
                                 ? refused.what()
                                 : "expected " + phrase + ", got " + quote_value(value));
        return;
      }
    }
    if (value.is_number())
      check_number(value, schema, spot);
    if (value.is_string())
      check_text(value, schema, spot);
    if (value.is_array())
      walk_array(value, schema, spot);
    if (value.is_object())
      walk_object(value, schema, spot);
    walk_branches(value, schema, spot);
  }

 private:
  void report(std::string pointer, std::string message, bool plugin_at_fault = false) {
    if (problems_.size() == kMostKept) {
      ++budget_.untold;
      return;
    }
    problems_.push_back({Place{}, std::move(pointer), std::move(message), plugin_at_fault});
  }

  void walk_slot(json& value, const json& slot, const Spot& spot) {
    const std::string word(text_keyword(slot, "x-treadle-component"));
    if (value.is_string())
      value = json{{"use", value}};
    if (!value.contains("use")) {
      // `--set optimizer.learning_rate=…` must work where the slot was left to its default.
      const json* fallback = default_use(slot);
      if (!fallback) {
        report(spot.pointer,
               "required key \"use\" is missing (the name of " + with_article(word) + ")");
        return;
      }
      value["use"] = *fallback;
    }
    const json& use = value["use"];
    if (!use.is_string()) {
      report(child_pointer(spot.pointer, "use"),
             "expected the name of " + with_article(word) + ", got " + describe_value(use));
      return;
    }
    const FoundComponent found = index_.find(word, use.get_ref<const std::string&>());
    Spot inside = spot;
    if (!found.schema) {
      report(child_pointer(spot.pointer, "use"), found.problem, found.plugin_at_fault);
      // The slot's own keys can still be checked; whose the others are is not known.
      inside.open = true;
      const json own = merged_schema(json::object(), slot);
      walk_object(value, own, inside);
      return;
    }
    for (const std::string& key : hidden_parameters(*found.schema, slot)) {
      report(child_pointer(spot.pointer, "use"),
             "the " + word + " " + quote_value(use) + " has a parameter " + quote_text(key) +
                 ", a key that the document uses for itself here; the plugin must rename the "
                 "parameter",
             /*plugin_at_fault=*/true);
    }
    inside.owner = word + " " + use.get<std::string>();
    inside.open = false;
    const json merged = merged_schema(*found.schema, slot);
    budget_.spend(count_values(merged));
    walk(value, merged, inside);
    used_.push_back(
        {word, value["use"].get<std::string>(), spot.pointer, component_parameters(value, slot)});
  }

  void walk_branches(json& value, const json& schema, const Spot& spot) {
    for (const std::string_view keyword : {"oneOf", "anyOf"}) {
      const json* branches = array_keyword(schema, keyword);
      if (!branches || branches->empty())
        continue;
      Spot inside = spot;
      inside.open = spot.open || object_keyword(schema, "properties");
      std::size_t matches = 0;
      json accepted;
      std::optional<std::vector<Problem>> closest;
      for (const json& branch : *branches) {
        std::vector<Problem> problems;
        std::vector<UsedComponent> used;
        json attempt = value;
        budget_.spend(count_values(value));
        Walker(index_, places_, keys_, base_, problems, used, budget_)
            .walk(attempt, branch, inside);
        if (budget_.is_spent())
          return;
        if (problems.empty()) {
          if (matches++ == 0) {
            accepted = std::move(attempt);
            std::move(used.begin(), used.end(), std::back_inserter(used_));
          }
        } else if (expectation(value, branch).phrases.empty() &&
                   (!closest || problems.size() < closest->size())) {
          closest = std::move(problems);
        }
      }
      if (matches == 0) {
        TREADLE_EXPECTS(closest, "the kind of a value is checked before its branches");
        std::move(closest->begin(), closest->end(), std::back_inserter(problems_));
      } else if (matches > 1 && keyword == "oneOf") {
        report(spot.pointer,
               "fits " + std::to_string(matches) + " of the allowed forms, and must fit only one");
      } else {
        value = std::move(accepted);
      }
    }
  }

  void check_number(const json& value, const json& schema, const Spot& spot) {
    struct Bound {
      std::string_view keyword;
      std::string_view sign;
      bool (*holds)(int comparison);
    };
    constexpr std::array kBounds{
        Bound{"minimum", ">=", [](int comparison) { return comparison >= 0; }},
        Bound{"exclusiveMinimum", ">", [](int comparison) { return comparison > 0; }},
        Bound{"maximum", "<=", [](int comparison) { return comparison <= 0; }},
        Bound{"exclusiveMaximum", "<", [](int comparison) { return comparison < 0; }},
    };
    for (const Bound& bound : kBounds) {
      const json* limit = number_keyword(schema, bound.keyword);
      if (!limit || bound.holds(compare_numbers(value, *limit)))
        continue;
      report(spot.pointer,
             "must be " + std::string(bound.sign) + " " + limit->dump() + ", got " + value.dump());
      return;
    }
  }

  void check_text(const json& value, const json& schema, const Spot& spot) {
    const std::string& text = value.get_ref<const std::string&>();
    const std::size_t length = count_characters(text);
    if (const json* least = number_keyword(schema, "minLength");
        least && length < least->get<std::size_t>()) {
      report(spot.pointer, "must have at least " + counted(least->get<std::size_t>(), "character") +
                               ", got " + quote_value(value));
      return;
    }
    if (const json* most = number_keyword(schema, "maxLength");
        most && length > most->get<std::size_t>()) {
      report(spot.pointer, "must have at most " + counted(most->get<std::size_t>(), "character") +
                               ", got " + std::to_string(length));
      return;
    }
    const std::string pattern(text_keyword(schema, "pattern"));
    if (pattern.empty())
      return;
    if (text.size() > kLongestPatternText) {
      report(spot.pointer,
             "must match " + pattern + ", got text of " + counted(length, "character"));
    } else if (!std::regex_search(text, compile_pattern(pattern))) {
      report(spot.pointer, "must match " + pattern + ", got " + quote_value(value));
    }
  }

  void walk_array(json& value, const json& schema, const Spot& spot) {
    const std::size_t size = value.size();
    if (const json* least = number_keyword(schema, "minItems");
        least && size < least->get<std::size_t>()) {
      report(spot.pointer, "must have at least " + counted(least->get<std::size_t>(), "element") +
                               ", got " + std::to_string(size));
    }
    if (const json* most = number_keyword(schema, "maxItems");
        most && size > most->get<std::size_t>()) {
      report(spot.pointer, "must have at most " + counted(most->get<std::size_t>(), "element") +
                               ", got " + std::to_string(size));
    }
    if (const json* unique = any_keyword(schema, "uniqueItems"); unique && *unique == true) {
      std::map<json, std::size_t> seen;
      for (std::size_t i = 0; i < size; ++i) {
        const auto [first, is_new] = seen.emplace(value[i], i);
        if (is_new)
          continue;
        report(child_pointer(spot.pointer, i), quote_value(value[i]) + " stands here twice (also " +
                                                   "as element " + std::to_string(first->second) +
                                                   "); remove one");
      }
    }
    if (const json* items = any_keyword(schema, "items"); items && !items->is_array()) {
      for (std::size_t i = 0; i < size; ++i) {
        walk(value[i], *items, Spot{child_pointer(spot.pointer, i), spot.depth + 1, "", false});
      }
    }
  }

  void walk_object(json& value, const json& schema, const Spot& spot) {
    static const json kNone = json::object();
    const json* declared = object_keyword(schema, "properties");
    const json& properties = declared ? *declared : kNone;
    const json* additional = any_keyword(schema, "additionalProperties");
    const bool closed = is_closed(schema) && !spot.open;

    std::vector<std::string> keys;
    for (const auto& [key, unused] : value.items())
      keys.push_back(key);
    std::set<std::string> misspelt;  // required keys that are there in another spelling
    for (const std::string& key : keys) {
      const Spot inside{child_pointer(spot.pointer, key), spot.depth + 1, "", false};
      if (const auto property = properties.find(key); property != properties.end()) {
        walk(value[key], *property, inside);
      } else if (closed) {
        report_unknown_key(key, value, properties, schema, spot, misspelt);
      } else if (additional && additional->is_object()) {
        walk(value[key], *additional, inside);
      }
    }
    for (const auto& [key, property] : properties.items()) {
      if (value.contains(key))
        continue;
      const json* fallback = any_keyword(property, "default");
      if (!fallback)
        continue;
      value[key] = *fallback;
      walk(value[key], property, Spot{child_pointer(spot.pointer, key), spot.depth + 1, "", false});
    }
    const json* required = array_keyword(schema, "required");
    if (!required)
      return;
    for (const json& key : *required) {
      if (!key.is_string() || value.contains(key.get_ref<const std::string&>()))
        continue;
      if (misspelt.count(key.get_ref<const std::string&>()) > 0)
        continue;
      std::string message = "required key " + quote_value(key) + " is missing";
      if (const json* property = any_keyword(properties, key.get_ref<const std::string&>())) {
        const std::string_view help = text_keyword(*property, "description");
        if (!help.empty())
          message += " (" + std::string(help) + ")";
      }
      report(spot.pointer, std::move(message));
    }
  }

  void report_unknown_key(const std::string& key, const json& value, const json& properties,
                          const json& schema, const Spot& spot, std::set<std::string>& misspelt) {
    std::vector<std::string> takes;
    std::vector<std::string> free;  // not there yet: only --set may mean a key that is
    for (const auto& [name, unused] : properties.items()) {
      if (name == "use" && !spot.owner.empty())
        continue;
      takes.push_back(name);
      if (!value.contains(name))
        free.push_back(name);
    }
    const std::vector<std::string> near = near_misses(key, free);
    if (!near.empty())
      misspelt.insert(near.front());
    const bool is_override =
        places_.place_of(child_pointer(spot.pointer, key)).file.starts_with("--set ");
    const std::vector<std::string>& meant = is_override ? takes : free;

    std::string owner = spot.owner;
    if (owner.empty())
      owner = text_keyword(schema, "title");
    if (owner.empty())
      owner = last_key(spot.pointer);
    if (owner.find_first_not_of("0123456789") == std::string::npos)
      owner = "this object";
    std::string suggestion = did_you_mean(key, meant);
    // What is not shown needs no suggestion.
    if (suggestion.empty() && problems_.size() < kMostProblems)
      suggestion = keys_.suggestion(key, spot.pointer);
    report(child_pointer(spot.pointer, key),
           "unknown key " + quote_text(key) + suggestion + " (" + owner +
               (takes.empty() ? " takes no keys" : " takes: " + joined(takes, ", ")) + ")");
  }

  const SchemaIndex& index_;
  const PlaceIndex& places_;
  const KeyFinder& keys_;
  const std::filesystem::path& base_;
  std::vector<Problem>& problems_;
  std::vector<UsedComponent>& used_;
  Budget& budget_;
};

}  // namespace

SchemaIndex::~SchemaIndex() = default;

std::vector<std::string> SchemaIndex::names(std::string_view) const {
  return {};
}

json merged_schema(const json& component, const json& slot) {
  json merged = component;
  merged.erase("x-treadle-component");
  merged.erase("x-treadle-type");
  merged["type"] = "object";
  json& properties = merged["properties"];
  if (!properties.is_object())
    properties = json::object();
  if (const json* own = object_keyword(slot, "properties"))
    properties.update(*own);
  properties["use"] = {{"type", "string"}};
  if (const json* required = array_keyword(slot, "required")) {
    json& all = merged["required"];
    for (const json& key : *required)
      all.push_back(key);
  }
  return merged;
}

json component_parameters(json value, const json& slot) {
  value.erase("use");
  if (const json* own = object_keyword(slot, "properties")) {
    for (const auto& [key, unused] : own->items())
      value.erase(key);
  }
  return value;
}

std::vector<std::string> hidden_parameters(const json& component, const json& slot) {
  std::vector<std::string> hidden;
  const json* parameters = object_keyword(component, "properties");
  const json* own = object_keyword(slot, "properties");
  if (!parameters || !own)
    return hidden;
  for (const auto& [key, unused] : own->items()) {
    if (parameters->contains(key))
      hidden.push_back(key);
  }
  return hidden;
}

std::vector<json> slots_for(std::string_view interface_word, const json& schema) {
  std::vector<json> slots;
  if (text_keyword(schema, "x-treadle-component") == interface_word)
    slots.push_back(schema);
  if (!schema.is_structured())
    return slots;
  for (const json& part : schema) {
    std::vector<json> inner = slots_for(interface_word, part);
    std::move(inner.begin(), inner.end(), std::back_inserter(slots));
  }
  return slots;
}

Checked check(const json& value, const json& schema, const SchemaIndex& index,
              const PlaceIndex& places, std::string pointer, const std::filesystem::path& base) {
  Checked checked{value, {}};
  Budget budget{kLeastWork + kWorkPerValue * count_values(value)};
  const KeyFinder keys(checked.value, schema, index, pointer);
  Walker walker(index, places, keys, base, checked.problems, checked.components, budget);
  walker.walk(checked.value, schema, Walker::Spot{pointer, 0, "", false});

  std::vector<Problem>& problems = checked.problems;
  if (budget.is_spent()) {
    problems = {
        Problem{Place{}, pointer,
                "cannot be checked: its components name each other too often; a component's "
                "defaults may contain the component"}};
  }
  const std::size_t count = problems.size() + budget.untold;
  if (count > kMostProblems)
    problems.resize(kMostProblems);
  for (Problem& problem : problems)
    problem.place = places.place_of(problem.pointer);
  // In the order of the text; what has no line comes last.
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    if (a.place.line == 0 || b.place.line == 0)
      return a.place.line != 0 && b.place.line == 0;
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  if (count > kMostProblems) {
    problems.push_back({Place{problems.front().place.file, 0, 0}, "",
                        "has " + std::to_string(count - kMostProblems) + " more problems"});
  }
  return checked;
}

}  // namespace treadle
