#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include <treadle/base/config.h>
#include <treadle/base/provided.h>

namespace treadle {

class PluginRegistry;

/// Base of every object that a plugin provides: destruction, origin, and optional interfaces
/// (ask()) beside its own.
class Component : public Provided {
 public:
  virtual ~Component();
  Component(const Component&) = delete;
  Component& operator=(const Component&) = delete;

  /// The optional interface `Ability`, or null when this component does not offer it. The pointer
  /// lives as long as the component.
  template <typename Ability>
  Ability* ask() {
    return static_cast<Ability*>(do_ask(Ability::kInterface));
  }
  template <typename Ability>
  const Ability* ask() const {
    return const_cast<Component*>(this)->ask<Ability>();
  }

 protected:
  Component();

 private:
  /// Returns `static_cast<Ability*>(this)` for each optional interface this class implements, by
  /// id; null for every other id. **Rationale:** a virtual function added to a published interface
  /// would break plugins that are already compiled; a new interface with an id of its own does not.
  virtual void* do_ask(std::string_view interface_id);
};

/// The environment in which a component is created.
struct ComponentContext {
  /// Makes nested components; null in unit tests that need none. Outlives the component.
  const PluginRegistry* registry = nullptr;
};

/// Makes one component from checked parameters. Called from any thread.
using ComponentFactory =
    std::function<std::unique_ptr<Component>(const Config&, const ComponentContext&)>;

/// Registers the components of a plugin in its entry function. Valid for that call only.
class Registrar {
 public:
  virtual ~Registrar();

  /// Offers `T`, a class derived from one of the interfaces in treadle/core, under `name`. T is
  /// constructed from (const Config&, const ComponentContext&) or (const Config&). When T has an
  /// optional interface beside its main one, the compiler cannot choose between them: name the main
  /// one, `add<CsvData, DataProvider>("csv")`.
  template <typename T, typename Interface = T>
  void add(std::string_view name) {
    static_assert(std::is_base_of_v<Component, T> && std::is_base_of_v<Interface, T>);
    do_add(Interface::kInterface, name, [](const Config& config, const ComponentContext& context) {
      if constexpr (std::is_constructible_v<T, const Config&, const ComponentContext&>) {
        return std::unique_ptr<Component>(std::make_unique<T>(config, context));
      } else {
        return std::unique_ptr<Component>(std::make_unique<T>(config));
      }
    });
  }

 private:
  virtual void do_add(std::string_view interface_id, std::string_view name,
                      ComponentFactory factory) = 0;
};

}  // namespace treadle
