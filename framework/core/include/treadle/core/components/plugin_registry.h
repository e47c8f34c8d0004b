#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/component.h>
#include <treadle/base/config.h>
#include <treadle/base/error.h>

namespace treadle {

struct FoundComponent;
class InterfaceTable;
class SchemaIndex;

/// The description of a component, available without creating one.
struct ComponentEntry {
  std::string interface_id;  ///< "treadle.optimizer/0"
  std::string name;          ///< "adamw"
  std::string plugin;        ///< "org.treadle.optimizers"; empty for components added in code
  std::string version;       ///< of the plugin
  std::string summary;       ///< one line
  nlohmann::json schema;     ///< of its parameters

  /// "org.treadle.optimizers/adamw"
  std::string qualified_name() const { return plugin.empty() ? name : plugin + "/" + name; }
};

/// Where a registry's components come from: the catalog of plugins, as the host presents it.
/// Thread-safe. (core must not depend on the catalog: this is the seam.)
class ComponentLoader {
 public:
  virtual ~ComponentLoader();

  /// Every name that find() resolves for an interface: the plain one, or the qualified ones where
  /// several plugins offer it. In any order. Reads no schema.
  virtual std::vector<std::string> names(std::string_view interface_id) const = 0;
  /// Resolves a plain or qualified name; throws PluginError with near misses and where it looked,
  /// or with the candidates when several plugins offer the name.
  virtual ComponentEntry find(std::string_view interface_id, std::string_view name) const = 0;
  /// The schemas that documents are checked against. The default calls find().
  virtual FoundComponent look_up(std::string_view interface_word, std::string_view name) const;
  /// The interfaces that components may implement. The default: Treadle's own.
  virtual const InterfaceTable& interfaces() const;
  /// Loads the plugin if need be. Throws PluginError.
  virtual ComponentFactory load(const ComponentEntry& entry) = 0;
};

/// The typed face over everything plugins offer: `registry.make<Optimizer>("adamw", config)`.
///
/// Thread-safe. Components made by it may outlive it; plugins stay loaded for the life of the
/// process.
class PluginRegistry {
 public:
  /// Without a loader it has only components from add(): enough for unit tests.
  explicit PluginRegistry(std::shared_ptr<ComponentLoader> loader = nullptr);
  ~PluginRegistry();

  /// Makes the component `name` (plain or "plugin/name") that implements Interface. The parameters
  /// are checked against its schema first and defaults filled in: DocumentError lists every
  /// problem. Unknown and ambiguous names, and whatever a plugin throws that is not a
  /// treadle::Error, are PluginErrors naming plugin and component.
  template <typename Interface>
  std::unique_ptr<Interface> make(std::string_view name, const Config& config = Config()) const {
    return std::unique_ptr<Interface>(
        cast<Interface>(make_component(Interface::kInterface, name, config), name));
  }
  /// The same where an interface is known by its id alone, "treadle.optimizer/0".
  std::unique_ptr<Component> make_component(std::string_view interface_id, std::string_view name,
                                            const Config& config) const;

  /// Names for make<Interface>(), sorted; the qualified ones where a plain name is ambiguous.
  template <typename Interface>
  std::vector<std::string> names() const {
    return names_of(Interface::kInterface);
  }

  template <typename Interface>
  ComponentEntry describe(std::string_view name) const {
    return describe_component(Interface::kInterface, name);
  }

  /// Offers a component from code, under a plain name. Throws ContractViolation when the name is
  /// taken.
  template <typename Interface>
  void add(std::string_view name, ComponentFactory factory,
           nlohmann::json schema = {{"type", "object"}, {"additionalProperties", true}}) {
    add_component(
        {std::string(Interface::kInterface), std::string(name), "", "", "", std::move(schema)},
        std::move(factory));
  }

  /// Takes back what add() offered; false when there was no such thing.
  template <typename Interface>
  bool remove(std::string_view name) {
    return remove_component(Interface::kInterface, name);
  }

  /// The components that documents may name: those added in code, then the loader's. Lives as long
  /// as the registry.
  const SchemaIndex& schemas() const;

  /// How many components there are per interface word.
  std::map<std::string, std::size_t> summary() const;

 private:
  template <typename Interface>
  static Interface* cast(std::unique_ptr<Component> component, std::string_view name) {
    auto* typed = dynamic_cast<Interface*>(component.get());
    if (typed == nullptr)
      refuse_wrong_type(Interface::kInterface, name);
    static_cast<void>(component.release());  // typed owns it now
    return typed;
  }
  [[noreturn]] static void refuse_wrong_type(std::string_view interface_id, std::string_view name);

  std::vector<std::string> names_of(std::string_view interface_id) const;
  ComponentEntry describe_component(std::string_view interface_id, std::string_view name) const;
  void add_component(ComponentEntry entry, ComponentFactory factory);
  bool remove_component(std::string_view interface_id, std::string_view name);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A slot of a document: which component, and its parameters.
struct NestedComponent {
  std::string name;
  Config parameters;
};
/// The value under `key` in `config`, whose schema has x-treadle-component.
NestedComponent nested_component(const Config& config, std::string_view key);

/// Makes the component that stands in `config` under `key`: how one component is made of others.
/// Null when there is none.
template <typename Interface>
std::unique_ptr<Interface> make_nested(const ComponentContext& context, const Config& config,
                                       std::string_view key) {
  if (!config.has(key))
    return nullptr;
  TREADLE_EXPECTS(context.registry != nullptr,
                  "a component that holds others is made by a registry");
  const NestedComponent nested = nested_component(config, key);
  return context.registry->make<Interface>(nested.name, nested.parameters);
}

}  // namespace treadle
