#include <treadle/testing/plugin/plugin_under_test.h>

#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/testing/plugin/installed_plugins.h>
#include <treadle/testing/support/source_path.h>

#include "opened_plugin.h"

namespace treadle::testing {
namespace {

std::string nobody_has(std::string_view name) {
  return "no component \"" + std::string(name) +
         "\" in this test: neither this plugin has it nor one in " +
         InstalledPlugins::folder().string();
}

}  // namespace

/// What the plugin's components may hold when a test gives them no registry: each other, and those
/// that are installed.
class PluginUnderTest::OwnComponents final : public ComponentLoader {
 public:
  explicit OwnComponents(const PluginUnderTest& plugin) : plugin_(plugin) {}

  std::vector<std::string> names(std::string_view interface_id) const override {
    std::vector<std::string> names;
    for (const auto& [key, schema] : plugin_.schemas_) {
      if (key.first == interface_id)
        names.push_back(key.second);
    }
    return names;
  }
  ComponentEntry find(std::string_view id, std::string_view name) const override {
    const Key key(id, name);
    if (const auto schema = plugin_.schemas_.find(key); schema != plugin_.schemas_.end())
      return entry(key, schema->second);
    if (const InstalledPlugins::Entry* const installed = InstalledPlugins::find(id, name))
      return entry(key, installed->schema);
    throw PluginError(nobody_has(name));
  }
  const InterfaceTable& interfaces() const override { return plugin_.interfaces_; }
  ComponentFactory load(const ComponentEntry& entry) override {
    const auto own = plugin_.factories_.find(Key(entry.interface_id, entry.name));
    return own != plugin_.factories_.end()
               ? own->second
               : InstalledPlugins::find(entry.interface_id, entry.name)->factory;
  }

 private:
  static ComponentEntry entry(const Key& key, const nlohmann::json& schema) {
    return {key.first, key.second, "", "", "", schema};
  }

  const PluginUnderTest& plugin_;
};

PluginUnderTest::PluginUnderTest(const std::filesystem::path& folder, TreadlePluginEntry entry) {
  const std::filesystem::path sources = source_path(folder);
  read_interfaces(sources / "plugin.json");
  read_schemas(sources);
  run(entry);
}

PluginUnderTest::PluginUnderTest(const Library& library) {
  const OpenedPlugin plugin = open_plugin(library.file);
  add_interfaces(plugin.manifest.value("interfaces", nlohmann::json::array()));
  for (const nlohmann::json& component : plugin.manifest.at("components")) {
    const Key key(component.at("interface").get<std::string>(),
                  component.at("name").get<std::string>());
    schemas_[key] = component.at("schema");
    if (const auto given = component.find("contract"); given != component.end())
      contract_parameters_[std::string(interfaces_.word(key.first)) + "/" + key.second] = *given;
  }
  run(plugin.entry);
}

void PluginUnderTest::run(TreadlePluginEntry entry) {
  TREADLE_EXPECTS(entry != nullptr, "no plugin is linked into this program");
  if (const std::string failure = run_entry(entry, *this); !failure.empty())
    throw PluginError("the plugin's entry failed: " + failure);
}

std::unique_ptr<Component> PluginUnderTest::make_component(const Offer& offer,
                                                           nlohmann::json parameters,
                                                           const ComponentContext& context) const {
  return make_by(Key(interfaces_.id(offer.interface_word), offer.name), std::move(parameters),
                 context);
}

std::vector<PluginUnderTest::Offer> PluginUnderTest::offers() const {
  std::map<Key, nlohmann::json> all = schemas_;
  for (const auto& [key, factory] : factories_)
    all.emplace(key, nullptr);
  std::vector<Offer> offers;
  for (auto& [key, schema] : all)
    offers.push_back({std::string(interfaces_.word(key.first)), key.second, std::move(schema)});
  return offers;
}

nlohmann::json PluginUnderTest::completed(std::string_view name, nlohmann::json parameters) const {
  return completed_by(schema(name), std::move(parameters));
}

nlohmann::json PluginUnderTest::schema(std::string_view name) const {
  for (const auto& [key, schema] : schemas_) {
    if (key.second == name)
      return schema;
  }
  throw ContractViolation("there is no schema for \"" + std::string(name) + "\"");
}

/// The interfaces that the plugin declares beside Treadle's own.
void PluginUnderTest::read_interfaces(const std::filesystem::path& plugin_json) {
  if (!std::filesystem::exists(plugin_json))
    return;
  add_interfaces(Document::read(plugin_json)->value().value("interfaces", nlohmann::json::array()));
}

void PluginUnderTest::add_interfaces(const nlohmann::json& declared) {
  for (const nlohmann::json& one : declared)
    interfaces_.add({one.at("word"), one.at("id"), one.value("summary", "")});
}

void PluginUnderTest::read_schemas(const std::filesystem::path& folder) {
  constexpr std::string_view kSuffix = ".schema.json";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::string name = file.path().filename().string();
    if (!name.ends_with(kSuffix))
      continue;
    name.resize(name.size() - kSuffix.size());
    nlohmann::json schema = expanded_schema(Document::read(file.path())->value());
    const std::string word = schema.value("x-treadle-interface", "");
    name = schema.value("x-treadle-name", name);
    schemas_[Key(interfaces_.id(word), name)] = std::move(schema);
  }
}

std::unique_ptr<Component> PluginUnderTest::make_by(const Key& key, nlohmann::json parameters,
                                                    const ComponentContext& context) const {
  const auto factory = factories_.find(key);
  TREADLE_EXPECTS(factory != factories_.end(),
                  "this plugin registers no \"" + key.second + "\" under " + key.first);
  const auto schema = schemas_.find(key);
  TREADLE_EXPECTS(schema != schemas_.end(),
                  "there is no schema for \"" + key.second + "\" under " + key.first);
  const auto document = Document::from_json(completed_by(schema->second, std::move(parameters)));
  return factory->second(Config(document->value(), "", document),
                         context.registry != nullptr ? context : ComponentContext{&registry_});
}

nlohmann::json PluginUnderTest::completed_by(const nlohmann::json& schema,
                                             nlohmann::json parameters) const {
  if (parameters.is_null())
    parameters = nlohmann::json::object();
  const auto document = Document::from_json(std::move(parameters));
  Checked checked = check(document->value(), schema, *this, *document);
  if (!checked.problems.empty())
    throw DocumentError(std::move(checked.problems));
  return std::move(checked.value);
}

void PluginUnderTest::do_add(std::string_view interface_id, std::string_view name,
                             ComponentFactory factory) {
  const bool is_new = factories_.emplace(Key(interface_id, name), std::move(factory)).second;
  TREADLE_EXPECTS(is_new, "the plugin registers \"" + std::string(name) + "\" under " +
                              std::string(interface_id) + " twice");
}

FoundComponent PluginUnderTest::find(std::string_view word, std::string_view name) const {
  const Key key(interfaces_.id(word), name);
  if (const auto schema = schemas_.find(key); schema != schemas_.end())
    return {std::make_shared<const nlohmann::json>(schema->second), std::string(name), ""};
  if (const InstalledPlugins::Entry* const entry = InstalledPlugins::find(key.first, name))
    return {std::make_shared<const nlohmann::json>(entry->schema), std::string(name), ""};
  return {nullptr, "", nobody_has(name)};
}

nlohmann::json parameters_of(const PluginUnderTest::Offer& offer,
                             const std::map<std::string, nlohmann::json>& parameters) {
  auto given = parameters.find(offer.interface_word + "/" + offer.name);
  if (given == parameters.end())
    given = parameters.find(offer.name);
  return given == parameters.end() ? nlohmann::json::object() : given->second;
}

std::shared_ptr<ComponentLoader> PluginUnderTest::own_components() {
  return std::make_shared<OwnComponents>(*this);
}

}  // namespace treadle::testing
