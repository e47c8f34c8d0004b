#include <treadle/host/catalog/manifest.h>

#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/plugin_abi.h>
#include <treadle/base/schema.h>
#include <treadle/host/catalog/elf_notes.h>

namespace treadle {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxComponents = 1000;
constexpr std::size_t kMaxInterfaces = 100;
constexpr std::size_t kMaxTextSize = 1000;

[[noreturn]] void refuse_manifest(const std::string& what) {
  throw PluginError("has a damaged manifest: " + what + "; build it again");
}

json parse_bounded(std::string_view text) {
  const auto bounded = [](int depth, json::parse_event_t, json&) {
    if (depth > kMaxDepth)
      refuse_manifest("it is nested deeper than " + std::to_string(kMaxDepth) + " levels");
    return true;
  };
  try {
    json manifest = json::parse(text, bounded);
    if (manifest.is_object())
      return manifest;
  } catch (const json::exception&) {
    refuse_manifest("it is not JSON in UTF-8");
  }
  refuse_manifest("it is not a JSON object");
}

std::string text_at(const json& object, const char* key, bool required) {
  const auto found = object.find(key);
  if (found == object.end() && !required)
    return "";
  if (found == object.end() || !found->is_string()) {
    refuse_manifest("\"" + std::string(key) + "\" must be text");
  }
  std::string text = *found;
  if (required && text.empty())
    refuse_manifest("\"" + std::string(key) + "\" is empty");
  // It is printed to terminals.
  const bool has_control = plain_text(text) != text;
  if (has_control || text.size() > kMaxTextSize) {
    refuse_manifest("\"" + std::string(key) + "\" must be one line of at most " +
                    std::to_string(kMaxTextSize) + " bytes");
  }
  return text;
}

const json& components_of(const json& manifest) {
  const auto found = manifest.find("components");
  if (found == manifest.end() || !found->is_array())
    refuse_manifest("\"components\" must be an array");
  if (found->size() > kMaxComponents) {
    refuse_manifest("it lists more than " + std::to_string(kMaxComponents) + " components");
  }
  for (const json& component : *found) {
    if (!component.is_object())
      refuse_manifest("a component must be an object");
  }
  return *found;
}

ManifestComponent read_component(const json& component) {
  return {text_at(component, "interface", true), text_at(component, "name", true),
          text_at(component, "summary", false)};
}

std::vector<InterfaceName> read_interfaces(const json& manifest) {
  std::vector<InterfaceName> interfaces;
  const auto found = manifest.find("interfaces");
  if (found == manifest.end())
    return interfaces;
  if (!found->is_array())
    refuse_manifest("\"interfaces\" must be an array");
  if (found->size() > kMaxInterfaces) {
    refuse_manifest("it lists more than " + std::to_string(kMaxInterfaces) + " interfaces");
  }
  for (const json& declared : *found) {
    if (!declared.is_object())
      refuse_manifest("an interface must be an object");
    interfaces.push_back({text_at(declared, "word", true), text_at(declared, "id", true),
                          text_at(declared, "summary", false)});
  }
  return interfaces;
}

Manifest read_manifest(const json& manifest) {
  const json version = manifest.value("manifest_version", json());
  if (!version.is_number_integer())
    refuse_manifest("\"manifest_version\" must be a whole number");
  if (version != kManifestVersion) {
    throw ForeignPlugin("was made for another runner: its manifest has version " + version.dump() +
                        ", this runner reads version " + std::to_string(kManifestVersion));
  }
  Manifest read;
  read.id = text_at(manifest, "id", true);
  read.version = text_at(manifest, "version", true);
  read.summary = text_at(manifest, "summary", false);
  read.license = text_at(manifest, "license", false);
  read.interfaces = read_interfaces(manifest);
  for (const json& component : components_of(manifest)) {
    ManifestComponent next = read_component(component);
    for (const ManifestComponent& earlier : read.components) {
      if (earlier.interface_id == next.interface_id && earlier.name == next.name) {
        refuse_manifest("it lists " + quote_text(next.name) + " (" + next.interface_id + ") twice");
      }
    }
    read.components.push_back(std::move(next));
  }
  return read;
}

}  // namespace

InterfaceTable Manifest::interface_table() const {
  InterfaceTable table;
  for (const InterfaceName& name : interfaces)
    table.add(name);
  return table;
}

Manifest parse_manifest(std::string_view text) {
  return read_manifest(parse_bounded(text));
}

ManifestSchemas::ManifestSchemas(std::string_view text)
    : manifest_(parse_bounded(text)), interfaces_(read_manifest(manifest_).interface_table()) {
  for (const json& component : components_of(manifest_)) {
    const ManifestComponent read = read_component(component);
    components_.emplace(std::pair(read.interface_id, read.name), &component);
  }
}

const json& ManifestSchemas::of(const ManifestComponent& component) const {
  const auto found = components_.find({component.interface_id, component.name});
  if (found == components_.end()) {
    refuse_manifest("it no longer lists " + quote_text(component.name) + " (" +
                    component.interface_id + ")");
  }
  const auto schema = found->second->find("schema");
  if (schema == found->second->end() || !schema->is_object())
    refuse_manifest("the schema of " + quote_text(component.name) + " must be an object");
  return *schema;
}

const json& ManifestSchemas::sound(const ManifestComponent& component) const {
  const json& schema = of(component);
  const std::vector<Problem> problems = check_schema(schema, interfaces_);
  if (!problems.empty()) {
    refuse_manifest("the schema of " + quote_text(component.name) + " (" + component.interface_id +
                    ") is wrong: " + problems.front().text());
  }
  return schema;
}

}  // namespace treadle
