#include "pack.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string_view>
#include <utility>

#include <treadle/base/document.h>
#include <treadle/base/interfaces.h>
#include <treadle/base/json_words.h>
#include <treadle/base/plugin_abi.h>
#include <treadle/base/schema.h>

#include "schema_oracle.h"

#include <treadle/embedded/workflow_schema.h>

namespace treadle {
namespace {

using nlohmann::json;

struct ManifestKey {
  std::string_view name;
  bool required;
  const char* pattern;
  std::string_view expected;
};

constexpr ManifestKey kManifestKeys[] = {
    {"id", true, "[a-z][a-z0-9-]*(\\.[a-z0-9][a-z0-9-]*)+",
     "a reversed domain name in lower case, such as \"org.example.optimizers\""},
    {"version", true, "[0-9]+\\.[0-9]+\\.[0-9]+(-[0-9A-Za-z.-]+)?", "a version such as \"1.0.0\""},
    {"summary", true, "[^\\n]+", "one line that says what the plugin is for"},
    {"license", true, "[^\\n]+", "an SPDX license expression, such as \"Apache-2.0\""},
    {"vendor", false, "[^\\n]+", "who makes the plugin"},
    {"url", false, "[^\\s]+", "where people find more"},
};

/// Collects what is wrong with one file.
class FileProblems {
 public:
  FileProblems(const Document& document, std::vector<Problem>& problems)
      : document_(document), problems_(problems) {}

  void add(const std::string& pointer, std::string message) {
    problems_.push_back({document_.place_of(pointer), pointer, std::move(message)});
  }

  /// The text under the key, at the top, when it matches; else a problem.
  std::string text(const ManifestKey& key) { return text_in(document_.value(), "", key); }

  /// As text(), in the object that stands at `pointer`.
  std::string text_in(const json& object, const std::string& pointer, const ManifestKey& key) {
    const auto found = object.find(key.name);
    if (found == object.end()) {
      add(pointer, "required key " + quote_text(key.name) + " is missing (" +
                       std::string(key.expected) + ")");
      return "";
    }
    if (!found->is_string() ||
        !std::regex_match(found->get_ref<const std::string&>(), std::regex(key.pattern))) {
      add(child_pointer(pointer, key.name),
          "expected " + std::string(key.expected) + ", got " + describe_value(*found));
      return "";
    }
    return found->get<std::string>();
  }

 private:
  const Document& document_;
  std::vector<Problem>& problems_;
};

std::shared_ptr<Document> read_object(const std::filesystem::path& path,
                                      std::vector<Problem>& problems) {
  try {
    std::shared_ptr<Document> document = Document::read(path);
    if (document->value().is_object())
      return document;
    problems.push_back({document->place_of(""), "",
                        "expected an object, got " + describe_value(document->value())});
  } catch (const DocumentError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  return nullptr;
}

constexpr ManifestKey kInterfaceKeys[] = {
    {"word", true, "[a-z][a-z0-9_-]*",
     "the word for it in documents, in lower case, such as \"tuner\""},
    {"id", true, "[a-z][a-z0-9-]*(\\.[a-z0-9][a-z0-9-]*)+/[0-9]+",
     "a reversed domain name and a revision, such as \"org.example.tuner/0\""},
    {"summary", true, "[^\\n]+", "one line that says what it is for"},
};

/// One element of "interfaces".
json read_interface(const json& declared, const std::string& pointer, FileProblems& found) {
  json read = json::object();
  if (!declared.is_object()) {
    found.add(pointer, "expected an object, got " + describe_value(declared));
    return read;
  }
  for (const ManifestKey& key : kInterfaceKeys)
    read[std::string(key.name)] = found.text_in(declared, pointer, key);
  for (const auto& [key, value] : declared.items()) {
    if (!read.contains(key)) {
      found.add(child_pointer(pointer, key),
                "unknown key " + quote_text(key) + " (an interface has: word, id, summary)");
    }
  }
  return read;
}

/// The interfaces that plugin.json declares beside Treadle's own.
json read_interfaces(const json& list, FileProblems& found, InterfaceTable& interfaces) {
  const std::string here = child_pointer("", "interfaces");
  json read = json::array();
  if (!list.is_array()) {
    found.add(here, "expected an array of interfaces, got " + describe_value(list));
    return read;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string pointer = child_pointer(here, i);
    json declared = read_interface(list[i], pointer, found);
    const std::string word = declared.value("word", "");
    const std::string id = declared.value("id", "");
    if (word.empty() || id.empty())
      continue;
    if (const InterfaceName* other = interfaces.add({word, id, declared.value("summary", "")})) {
      found.add(pointer, "declares the interface " + quote_text(word) + " as " + id + ", but " +
                             quote_text(other->word) + " is " + other->id +
                             "; give it another word and id");
    }
    read.push_back(std::move(declared));
  }
  return read;
}

json read_plugin_json(const std::filesystem::path& path, InterfaceTable& interfaces,
                      std::vector<Problem>& problems) {
  json manifest{{"manifest_version", kManifestVersion}};
  const std::shared_ptr<Document> document = read_object(path, problems);
  if (!document)
    return manifest;
  FileProblems found(*document, problems);
  for (const ManifestKey& key : kManifestKeys) {
    if (key.required || document->value().contains(key.name)) {
      manifest[std::string(key.name)] = found.text(key);
    }
  }
  if (const auto list = document->value().find("interfaces"); list != document->value().end())
    manifest["interfaces"] = read_interfaces(*list, found, interfaces);
  for (const auto& [key, value] : document->value().items()) {
    const auto known = [&key = key](const ManifestKey& k) { return k.name == key; };
    if (key != "interfaces" &&
        std::none_of(std::begin(kManifestKeys), std::end(kManifestKeys), known)) {
      found.add(child_pointer("", key),
                "unknown key " + quote_text(key) +
                    " (a plugin.json has: id, version, summary, license, vendor, url, interfaces)");
    }
  }
  return manifest;
}

/// Has valijson try every default where it stands, as a second opinion. Slots and shared types are
/// ours alone.
void check_defaults(const json& schema, const std::string& pointer, FileProblems& found) {
  if (schema.is_array()) {
    for (std::size_t i = 0; i < schema.size(); ++i) {
      check_defaults(schema[i], child_pointer(pointer, i), found);
    }
    return;
  }
  if (!schema.is_object() || schema.contains("x-treadle-component") ||
      schema.contains("x-treadle-type")) {
    return;
  }
  if (const auto value = schema.find("default");
      value != schema.end() && !is_valid(*value, schema)) {
    found.add(child_pointer(pointer, "default"),
              "the default is not valid here, got " + describe_value(*value));
  }
  for (const char* key : {"items", "oneOf", "anyOf", "additionalProperties"}) {
    if (const auto part = schema.find(key); part != schema.end()) {
      check_defaults(*part, child_pointer(pointer, key), found);
    }
  }
  if (const auto properties = schema.find("properties"); properties != schema.end()) {
    const std::string below = child_pointer(pointer, "properties");
    for (const auto& [key, value] : properties->items()) {
      check_defaults(value, child_pointer(below, key), found);
    }
  }
}

/// The component's name: the schema's "x-treadle-name", else the file's.
std::string component_name(const std::filesystem::path& path, const json& schema,
                           FileProblems& found) {
  constexpr std::string_view kSuffix = ".schema.json";
  constexpr const char* kPattern = "[a-z][a-z0-9_]*";
  constexpr const char* kExpected =
      "a component's name (lower case letters, digits and underscores, such as \"adamw\")";
  if (schema.contains("x-treadle-name"))
    return found.text({"x-treadle-name", true, kPattern, kExpected});
  std::string name = path.filename().string();
  if (name.ends_with(kSuffix))
    name.resize(name.size() - kSuffix.size());
  if (!std::regex_match(name, std::regex(kPattern))) {
    found.add("", "the file's name must begin with " + std::string(kExpected) + ", got " +
                      quote_text(name));
  }
  return name;
}

/// Every slot of documents and flows, and every slot of this component, for `word`.
std::vector<json> known_slots(std::string_view word, const json& schema) {
  static const json workflow = json::parse(embedded::workflow_schema());
  static const json flow = expanded_schema({{"x-treadle-type", "flow"}});
  std::vector<json> slots;
  for (const json* holder : {&workflow, &flow, &schema}) {
    for (json& slot : slots_for(word, *holder))
      slots.push_back(std::move(slot));
  }
  return slots;
}

/// A parameter that has the name of a slot's own key would never reach the component.
void check_parameters(std::string_view word, const json& schema, FileProblems& found) {
  std::set<std::string> hidden;
  for (const json& slot : known_slots(word, schema)) {
    for (std::string& key : hidden_parameters(schema, slot))
      hidden.insert(std::move(key));
  }
  for (const std::string& key : hidden) {
    found.add(child_pointer(child_pointer("", "properties"), key),
              "key " + quote_text(key) +
                  " is taken: documents use it for themselves where they "
                  "name the " +
                  std::string(word) + "; rename the parameter");
  }
}

/// The manifest's entry for one schema file; null when it has problems.
json read_schema(const std::filesystem::path& path, const InterfaceTable& interfaces,
                 std::vector<Problem>& problems) {
  const std::shared_ptr<Document> document = read_object(path, problems);
  if (!document)
    return {};
  const std::size_t problems_before = problems.size();
  FileProblems found(*document, problems);
  json schema = expanded_schema(document->value());

  const std::string name = component_name(path, schema, found);
  const std::string word = found.text({"x-treadle-interface", true, "[^\\n]*",
                                       "the interface it implements: \"optimizer\", \"loss\", …"});
  if (const auto include = schema.find("x-treadle-include"); include != schema.end()) {
    found.add(child_pointer("", "x-treadle-include"),
              "expected the name of a schema that others include, \"table\", got " +
                  describe_value(*include));
  }
  if (!schema.contains("type")) {
    found.add("",
              "required key \"type\" is missing (the parameters of a component are an \"object\")");
  }
  for (Problem& problem : check_schema(schema, *document, interfaces))
    problems.push_back(std::move(problem));
  check_parameters(word, schema, found);
  if (problems.size() != problems_before)
    return {};
  if (const std::optional<std::string> mistake = schema_mistake(schema)) {
    found.add("", "this is not a JSON Schema: " + *mistake);
    return {};
  }
  check_defaults(schema, "", found);
  if (problems.size() != problems_before)
    return {};
  schema.erase("$schema");
  return {{"interface", interfaces.id(word)},
          {"name", name},
          {"summary", schema["description"]},
          {"schema", schema}};
}

/// Gives each component the parameters that contract.json, beside plugin.json, has for it: those
/// that `plugins check --contract` makes it from, where its schema requires some.
void add_contract(const std::filesystem::path& path, std::vector<json*> components,
                  std::vector<Problem>& problems) {
  const std::shared_ptr<Document> document = read_object(path, problems);
  if (!document)
    return;
  FileProblems found(*document, problems);
  for (const auto& [name, parameters] : document->value().items()) {
    const std::string pointer = child_pointer("", name);
    bool is_offered = false;
    for (json* component : components) {
      if ((*component)["name"] != name)
        continue;
      is_offered = true;
      (*component)["contract"] = parameters;
    }
    if (!is_offered) {
      found.add(pointer, "the plugin offers no component " + quote_text(name) +
                             "; contract.json has parameters by the names of components");
    } else if (!parameters.is_object()) {
      found.add(pointer, "expected the parameters of " + quote_text(name) + " as an object, got " +
                             describe_value(parameters));
    }
  }
}

}  // namespace

PackedManifest pack_manifest(const std::filesystem::path& plugin_json,
                             std::span<const std::filesystem::path> schemas) {
  PackedManifest packed;
  InterfaceTable interfaces;
  packed.manifest = read_plugin_json(plugin_json, interfaces, packed.problems);
  std::map<std::pair<std::string, std::string>, json>
      components;  // sorted: builds are reproducible
  std::map<std::pair<std::string, std::string>, std::filesystem::path> files;
  for (const std::filesystem::path& path : schemas) {
    json component = read_schema(path, interfaces, packed.problems);
    if (component.is_null())
      continue;
    const std::pair<std::string, std::string> key{component["interface"], component["name"]};
    if (const auto [earlier, is_new] = files.emplace(key, path); !is_new) {
      packed.problems.push_back({{path.string(), 0, 0},
                                 "",
                                 "offers the " + std::string(interfaces.word(key.first)) + " " +
                                     quote_text(key.second) + ", as " + earlier->second.string() +
                                     " does already"});
    }
    components[key] = std::move(component);
  }
  if (schemas.empty()) {
    packed.problems.push_back(
        {{plugin_json.string(), 0, 0},
         "",
         "the plugin offers nothing: there is no <component>.schema.json beside it"});
  }
  if (const auto contract = plugin_json.parent_path() / "contract.json";
      std::filesystem::exists(contract)) {
    std::vector<json*> offered;
    for (auto& [key, component] : components)
      offered.push_back(&component);
    add_contract(contract, std::move(offered), packed.problems);
  }
  json list = json::array();
  for (auto& [key, component] : components)
    list.push_back(std::move(component));
  packed.manifest["components"] = std::move(list);
  return packed;
}

std::string notes_source(const json& manifest, bool tbb) {
  const std::string text = manifest.dump();
  if (text.size() > kNoteLimit) {
    throw UsageError(
        "the manifest of plugin " + manifest.value("id", "") + " has " +
        std::to_string(text.size()) + " bytes, more than the " + std::to_string(kNoteLimit) +
        " that hosts read; shorten the descriptions in its schemas, or cut the plugin in two");
  }
  std::string source = "// Written by treadle-pack from plugin.json and the schemas.\n";
  if (tbb)
    source += "#include <oneapi/tbb/version.h>\n\n";
  source +=
      "#include <treadle/core/components/fingerprint.h>\n\n"
      "TREADLE_NOTE auto kNotes = treadle::fingerprint::notes(\n    \"";
  constexpr std::size_t kLineWidth = 90;
  std::size_t column = 0;
  for (const unsigned char c : text) {
    if (column >= kLineWidth) {
      source += "\"\n    \"";
      column = 0;
    }
    char escaped[8];
    if (c == '"' || c == '\\') {
      std::snprintf(escaped, sizeof escaped, "\\%c", c);
    } else if (c < 0x20 || c >= 0x7f || c == '?') {
      std::snprintf(escaped, sizeof escaped, "\\%03o", c);
    } else {
      std::snprintf(escaped, sizeof escaped, "%c", c);
    }
    source += escaped;
    column += std::char_traits<char>::length(escaped);
  }
  source += "\");\n";
  return source;
}

}  // namespace treadle
