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
#include <treadle/base/interfaces.h>
#include <treadle/base/plugin_abi.h>
#include <treadle/base/schema.h>
#include <treadle/core/components/plugin_registry.h>

/// Of the plugin that is linked into this program; weak, as programs that open libraries have none.
extern "C" __attribute__((weak)) int treadle_plugin_entry_v1(
    const TreadlePluginHost* host) noexcept;

namespace treadle::testing {

/// A plugin seen as a host sees it: components by name, parameters as JSON that the schema checks
/// and completes. Either the plugin whose objects are linked into this test program,
///
///     const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
///     auto adam = plugin.make<Optimizer>("adam", {{"learning_rate", 0.1}});
///
/// or a built library, with the manifest that lies in it.
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

  /// The plugin of this program. Reads the schemas in `folder`, a source_path(), and runs the
  /// plugin's entry. Throws
  /// PluginError when the entry fails, DocumentError when a schema is no JSON.
  explicit PluginUnderTest(const std::filesystem::path& folder)
      : PluginUnderTest(folder, &treadle_plugin_entry_v1) {}

  struct Library {
    std::filesystem::path file;
  };
  /// Opens the library, which stays open. Throws PluginError when it cannot be opened, has no
  /// manifest or no entry, or when the entry fails.
  explicit PluginUnderTest(const Library& library);

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
                                            const ComponentContext& context = {}) const;

  /// Everything the plugin offers, by interface and name.
  std::vector<Offer> offers() const;

  /// The parameters after checking, with every default in place.
  nlohmann::json completed(std::string_view name, nlohmann::json parameters = {}) const;

  /// The parameters in a library's contract.json, by component ("data/csv"): those that a schema
  /// requires.
  const std::map<std::string, nlohmann::json>& contract_parameters() const {
    return contract_parameters_;
  }

  /// That of the component `name`, whatever its interface.
  nlohmann::json schema(std::string_view name) const;

 private:
  using Key = std::pair<std::string, std::string>;  // interface id, name
  class OwnComponents;

  PluginUnderTest(const std::filesystem::path& folder, TreadlePluginEntry entry);
  void read_interfaces(const std::filesystem::path& plugin_json);
  void read_schemas(const std::filesystem::path& folder);
  void add_interfaces(const nlohmann::json& declared);
  void run(TreadlePluginEntry entry);
  std::unique_ptr<Component> make_by(const Key& key, nlohmann::json parameters,
                                     const ComponentContext& context) const;
  nlohmann::json completed_by(const nlohmann::json& schema, nlohmann::json parameters) const;
  void do_add(std::string_view interface_id, std::string_view name,
              ComponentFactory factory) override;
  FoundComponent find(std::string_view word, std::string_view name) const override;
  std::shared_ptr<ComponentLoader> own_components();

  InterfaceTable interfaces_;
  std::map<Key, nlohmann::json> schemas_;
  std::map<std::string, nlohmann::json> contract_parameters_;
  std::map<Key, ComponentFactory> factories_;
  const PluginRegistry registry_{own_components()};
};

/// Those of `parameters` that belong to a component: by its interface and name ("data/sqlite"), or
/// by its name alone ("sqlite"); none: an empty object.
nlohmann::json parameters_of(const PluginUnderTest::Offer& offer,
                             const std::map<std::string, nlohmann::json>& parameters);

}  // namespace treadle::testing
