#include <treadle/core/plugin_registry.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>

#include <treadle/base/interfaces.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/schema.h>
#include <treadle/core/plugin_call.h>

namespace treadle {
namespace {

using Key = std::pair<std::string, std::string>;  // interface id, name

struct Added {
  ComponentEntry entry;
  ComponentFactory factory;
};

/// A place index for configurations made in code.
class NoPlaces : public PlaceIndex {
 public:
  Place place_of(std::string_view) const override { return {}; }
};

std::string spoken(std::string_view interface_id) {
  const std::string_view word = interface_word(interface_id);
  return std::string(word.empty() ? interface_id : word);
}

std::string described(const ComponentEntry& entry) {
  const std::string what = spoken(entry.interface_id) + " \"" + entry.name + "\"";
  return entry.plugin.empty() ? what : what + " of plugin " + entry.plugin + " " + entry.version;
}

}  // namespace

struct PluginRegistry::Impl : SchemaIndex {
  explicit Impl(std::shared_ptr<ComponentLoader> loader) : loader(std::move(loader)) {}

  /// What add() was given wins over plugins: a test or an embedding program means what it says.
  Added resolve(std::string_view interface_id, std::string_view name) const {
    {
      const std::shared_lock lock(mutex);
      const auto found = added.find({std::string(interface_id), std::string(name)});
      if (found != added.end())
        return found->second;
    }
    if (loader != nullptr)
      return {loader->find(interface_id, name), nullptr};
    const std::vector<std::string> known = added_names(interface_id);
    throw PluginError("no " + spoken(interface_id) + " is called \"" + std::string(name) + "\"" +
                      did_you_mean(name, known) + " (no plugins were searched)");
  }

  std::vector<std::string> added_names(std::string_view interface_id) const {
    const std::shared_lock lock(mutex);
    std::vector<std::string> names;
    for (const auto& [key, value] : added) {
      if (key.first == interface_id)
        names.push_back(key.second);
    }
    return names;
  }

  FoundComponent find(std::string_view word, std::string_view name) const override {
    try {
      const Added found = resolve(interface_id(word), name);
      const std::lock_guard lock(schema_mutex);
      const auto kept =
          schemas.try_emplace({std::string(word), std::string(name)}, found.entry.schema);
      return {&kept.first->second, found.entry.qualified_name(), ""};
    } catch (const PluginError& error) {
      return {nullptr, "", error.what()};
    }
  }

  const std::shared_ptr<ComponentLoader> loader;
  mutable std::shared_mutex mutex;
  std::map<Key, Added> added;
  // FoundComponent points at a schema, so those that were asked for are kept.
  mutable std::mutex schema_mutex;
  mutable std::map<Key, nlohmann::json> schemas;
};

PluginRegistry::PluginRegistry(std::shared_ptr<ComponentLoader> loader)
    : impl_(std::make_unique<Impl>(std::move(loader))) {}

PluginRegistry::~PluginRegistry() = default;

std::unique_ptr<Component> PluginRegistry::make_component(std::string_view interface_id,
                                                          std::string_view name,
                                                          const Config& config) const {
  Added found = impl_->resolve(interface_id, name);
  nlohmann::json parameters = config.json();
  parameters.erase("use");
  const NoPlaces nowhere;
  const PlaceIndex& places = config.places() ? *config.places() : nowhere;
  Checked checked = check(parameters, found.entry.schema, *impl_, places, config.pointer());
  if (!checked.problems.empty())
    throw DocumentError(std::move(checked.problems));

  if (!found.factory)
    found.factory = impl_->loader->load(found.entry);
  const Config complete(std::move(checked.value), config.pointer(), config.places());
  std::unique_ptr<Component> component;
  try {
    component = found.factory(complete, ComponentContext{this});
  } catch (...) {
    detail::rethrow_as(described(found.entry) + " could not be made");
  }
  if (component == nullptr) {
    throw PluginError(described(found.entry) + " could not be made: its factory returned nothing");
  }
  component->set_origin(described(found.entry));
  return component;
}

std::vector<std::string> PluginRegistry::names_of(std::string_view interface_id) const {
  std::vector<std::string> names = impl_->added_names(interface_id);
  if (impl_->loader != nullptr) {
    std::map<std::string, std::vector<std::string>> qualified;
    for (const ComponentEntry& entry : impl_->loader->entries()) {
      if (entry.interface_id == interface_id) {
        qualified[entry.name].push_back(entry.qualified_name());
      }
    }
    for (const auto& [name, offers] : qualified) {
      if (offers.size() == 1) {
        names.push_back(name);
      } else {
        names.insert(names.end(), offers.begin(), offers.end());
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

ComponentEntry PluginRegistry::describe_component(std::string_view interface_id,
                                                  std::string_view name) const {
  return impl_->resolve(interface_id, name).entry;
}

void PluginRegistry::add_component(ComponentEntry entry, ComponentFactory factory) {
  TREADLE_EXPECTS(factory != nullptr, "a component needs a factory");
  TREADLE_EXPECTS(check_schema(entry.schema).empty(),
                  "the schema of " + described(entry) +
                      " is wrong: " + check_schema(entry.schema).front().text());
  const Key key{entry.interface_id, entry.name};
  const std::string text = described(entry);
  const std::unique_lock lock(impl_->mutex);
  const bool is_new =
      impl_->added.try_emplace(key, Added{std::move(entry), std::move(factory)}).second;
  TREADLE_EXPECTS(is_new, text + " has already been added");
}

bool PluginRegistry::remove_component(std::string_view interface_id, std::string_view name) {
  const std::unique_lock lock(impl_->mutex);
  return impl_->added.erase({std::string(interface_id), std::string(name)}) > 0;
}

std::map<std::string, std::size_t> PluginRegistry::summary() const {
  std::map<std::string, std::size_t> counts;
  for (const InterfaceName& name : interface_names()) {
    counts[std::string(name.word)] = names_of(name.id).size();
  }
  return counts;
}

void PluginRegistry::refuse_wrong_type(std::string_view interface_id, std::string_view name) {
  throw PluginError("\"" + std::string(name) + "\" was registered as a " + spoken(interface_id) +
                    " but is not one: its class must derive from the interface's class");
}

NestedComponent nested_component(const Config& config, std::string_view key) {
  const Config slot = config.child(key);
  nlohmann::json parameters = slot.json();
  parameters.erase("use");
  return {slot.get<std::string>("use"),
          Config(std::move(parameters), slot.pointer(), slot.places())};
}

}  // namespace treadle
