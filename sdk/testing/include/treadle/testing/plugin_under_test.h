#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/component.h>
#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/base/interfaces.h>
#include <treadle/base/plugin_abi.h>
#include <treadle/base/schema.h>
#include <treadle/core/plugin_registry.h>
#include <treadle/testing/installed_plugins.h>

extern "C" int treadle_plugin_entry_v1(const TreadlePluginHost* host) noexcept;

namespace treadle::testing {

/// The plugin whose objects are linked into this test program, seen as a host sees it: components
/// by name, parameters as JSON that the schema beside the source checks and completes.
///
///     const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
///     auto adam = plugin.make<Optimizer>("adam", {{"learning_rate", 0.1}});
///
/// Slots inside a component may be filled with the plugin's own components, and with those of the
/// plugins that are installed with Treadle. Read-only after construction: one object may serve a
/// whole program.
class PluginUnderTest final : private Registrar, private SchemaIndex {
 public:
  /// A component that the entry registers or a schema describes: both, when the plugin is right.
  struct Offer {
    std::string interface_word;
    std::string name;
    nlohmann::json schema;  ///< null when there is none
  };

  /// Reads the schemas in `folder` and runs the plugin's entry. Throws PluginError when the entry
  /// fails, DocumentError when a schema is no JSON.
  explicit PluginUnderTest(const std::filesystem::path& folder) {
    read_interfaces(folder / "plugin.json");
    read_schemas(folder);
    std::string failure;
    const TreadlePluginHost host{
        .struct_size = sizeof(TreadlePluginHost),
        .abi_major = TREADLE_ABI_MAJOR,
        .abi_minor = TREADLE_ABI_MINOR,
        .registrar = static_cast<Registrar*>(this),
        .report_error = [](void* context,
                           const char* text) { *static_cast<std::string*>(context) = text; },
        .error_context = &failure};
    if (treadle_plugin_entry_v1(&host) != 0)
      throw PluginError("the plugin's entry failed: " + failure);
  }

  /// Makes a component of interface `T`, as a document that names it would. Throws DocumentError
  /// for parameters that the schema or the component refuses.
  template <typename T>
  std::unique_ptr<T> make(std::string_view name, nlohmann::json parameters = {},
                          const ComponentContext& context = {}) const {
    static_assert(std::is_nothrow_destructible_v<T> && std::has_virtual_destructor_v<T>,
                  "an interface's destructor is virtual and throws nothing");
    std::unique_ptr<Component> made =
        make_by(Key(T::kInterface, name), std::move(parameters), context);
    return std::unique_ptr<T>(static_cast<T*>(made.release()));
  }

  /// The plugin's own components and the installed ones, for what is built of components by name:
  /// graphs, say. Lives as long as this object.
  const PluginRegistry& registry() const { return registry_; }

  /// As make(), for tests that do not look at the interface.
  std::unique_ptr<Component> make_component(const Offer& offer, nlohmann::json parameters = {},
                                            const ComponentContext& context = {}) const {
    return make_by(Key(interfaces_.id(offer.interface_word), offer.name), std::move(parameters),
                   context);
  }

  /// Everything the plugin offers, by interface and name.
  std::vector<Offer> offers() const {
    std::map<Key, nlohmann::json> all = schemas_;
    for (const auto& [key, factory] : factories_)
      all.emplace(key, nullptr);
    std::vector<Offer> offers;
    for (auto& [key, schema] : all)
      offers.push_back({std::string(interfaces_.word(key.first)), key.second, std::move(schema)});
    return offers;
  }

  /// The parameters after checking, with every default in place.
  nlohmann::json completed(std::string_view name, nlohmann::json parameters = {}) const {
    return completed_by(schema(name), std::move(parameters));
  }

  /// That of the component `name`, whatever its interface.
  nlohmann::json schema(std::string_view name) const {
    for (const auto& [key, schema] : schemas_) {
      if (key.second == name)
        return schema;
    }
    throw ContractViolation("there is no schema for \"" + std::string(name) + "\"");
  }

 private:
  using Key = std::pair<std::string, std::string>;  // interface id, name

  /// The interfaces that the plugin declares beside Treadle's own.
  void read_interfaces(const std::filesystem::path& plugin_json) {
    if (!std::filesystem::exists(plugin_json))
      return;
    const std::shared_ptr<Document> plugin = Document::read(plugin_json);
    for (const nlohmann::json& declared :
         plugin->value().value("interfaces", nlohmann::json::array())) {
      interfaces_.add({declared.at("word"), declared.at("id"), declared.value("summary", "")});
    }
  }

  void read_schemas(const std::filesystem::path& folder) {
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

  std::unique_ptr<Component> make_by(const Key& key, nlohmann::json parameters,
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

  nlohmann::json completed_by(const nlohmann::json& schema, nlohmann::json parameters) const {
    if (parameters.is_null())
      parameters = nlohmann::json::object();
    const auto document = Document::from_json(std::move(parameters));
    Checked checked = check(document->value(), schema, *this, *document);
    if (!checked.problems.empty())
      throw DocumentError(std::move(checked.problems));
    return std::move(checked.value);
  }

  void do_add(std::string_view interface_id, std::string_view name,
              ComponentFactory factory) override {
    const bool is_new = factories_.emplace(Key(interface_id, name), std::move(factory)).second;
    TREADLE_EXPECTS(is_new, "the plugin registers \"" + std::string(name) + "\" under " +
                                std::string(interface_id) + " twice");
  }

  FoundComponent find(std::string_view word, std::string_view name) const override {
    const Key key(interfaces_.id(word), name);
    if (const auto schema = schemas_.find(key); schema != schemas_.end())
      return {std::make_shared<const nlohmann::json>(schema->second), std::string(name), ""};
    if (const InstalledPlugins::Entry* const entry = InstalledPlugins::find(key.first, name))
      return {std::make_shared<const nlohmann::json>(entry->schema), std::string(name), ""};
    return {nullptr, "", nobody_has(name)};
  }

  static std::string nobody_has(std::string_view name) {
    return "no component \"" + std::string(name) +
           "\" in this test: " + "neither this plugin has it nor one in " +
           InstalledPlugins::folder().string();
  }

  /// What the plugin's components may hold when a test gives them no registry: each other, and
  /// those that are installed.
  class OwnComponents final : public ComponentLoader {
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

  InterfaceTable interfaces_;
  std::map<Key, nlohmann::json> schemas_;
  std::map<Key, ComponentFactory> factories_;
  const PluginRegistry registry_{std::make_shared<OwnComponents>(*this)};
};

}  // namespace treadle::testing
