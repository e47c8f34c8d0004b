#include <treadle/host/catalog/manifest.h>

#include <set>
#include <utility>

#include <treadle/base/schema.h>
#include <treadle/host/catalog/elf_notes.h>

#include "targets.h"

namespace treadle::fuzz {
namespace {

constexpr std::size_t kLongestRefusal = 8000;

void promise_line(const std::string& text) {
  promise(text.size() <= 1000, "what a manifest says is at most 1000 bytes");
  if (!text.empty())
    promise_readable(text, 1000);
  promise(text.find('\n') == std::string::npos, "what a manifest says is one line");
}

void judge_schema(const ManifestSchemas& schemas, const ManifestComponent& component,
                  const InterfaceTable& interfaces) {
  try {
    const nlohmann::json& found = schemas.of(component);
    promise(found.is_object(), "a component's schema is an object");
    promise(&schemas.sound(component) == &found, "a sound schema is the component's");
    promise(check_schema(found, interfaces).empty(), "a sound schema has no problems");
  } catch (const PluginError& error) {
    promise_readable(error.what(), kLongestRefusal);
  }
}

}  // namespace

void manifest(std::string_view bytes) {
  Manifest read;
  try {
    read = parse_manifest(bytes);
  } catch (const PluginError& error) {
    return promise_readable(error.what(), kLongestRefusal);
  }
  promise(!read.id.empty() && !read.version.empty(), "a manifest has an id and a version");
  for (const std::string& text : {read.id, read.version, read.summary, read.license})
    promise_line(text);
  for (const InterfaceName& name : read.interfaces) {
    for (const std::string& text : {name.word, name.id, name.about})
      promise_line(text);
  }
  const ManifestSchemas schemas(bytes);
  std::set<std::pair<std::string, std::string>> seen;
  for (const ManifestComponent& component : read.components) {
    for (const std::string& text : {component.interface_id, component.name, component.summary})
      promise_line(text);
    promise(seen.emplace(component.interface_id, component.name).second,
            "a manifest lists a component once");
    judge_schema(schemas, component, read.interface_table());
  }
  promise(parse_manifest(nlohmann::json::parse(bytes).dump()) == read,
          "a manifest written again says the same");
}

}  // namespace treadle::fuzz
