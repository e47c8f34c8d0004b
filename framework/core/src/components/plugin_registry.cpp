#include <treadle/core/components/plugin_registry.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include <treadle/base/interfaces.h>
#include <treadle/base/near_miss.h>
#include <treadle/base/schema.h>
#include <treadle/core/components/plugin_call.h>

namespace treadle {
namespace {

using Key = std::pair<std::string, std::string>;  // interface id, name

struct Added {
  ComponentEntry entry;
  ComponentFactory factory;
  std::shared_ptr<const nlohmann::json> schema;  // the entry's; outlives remove()
};

/// A place index for configurations made in code.
class NoPlaces : public PlaceIndex {
 public:
  Place place_of(std::string_view) const override { return {}; }
};

const InterfaceTable& own_interfaces() {
  static const InterfaceTable table;
  return table;
}

}  // namespace

FoundComponent ComponentLoader::look_up(std::string_view interface_word,
                                        std::string_view name) const {
  try {
    ComponentEntry entry = find(interfaces().id(interface_word), name);
    std::string qualified_name = entry.qualified_name();
    return {std::make_shared<const nlohmann::json>(std::move(entry.schema)),
            std::move(qualified_name), ""};
  } catch (const PluginError& error) {
    return {nullptr, "", error.what()};
  }
}

const InterfaceTable& ComponentLoader::interfaces() const {
  return own_interfaces();
}

struct PluginRegistry::Impl : SchemaIndex {
  explicit Impl(std::shared_ptr<ComponentLoader> loader) : loader(std::move(loader)) {}

  const InterfaceTable& interfaces() const {
    return loader != nullptr ? loader->interfaces() : own_interfaces();
  }

  std::string spoken(std::string_view interface_id) const {
    const std::string_view word = interfaces().word(interface_id);
    return std::string(word.empty() ? interface_id : word);
  }

  std::string described(const ComponentEntry& entry) const {
    const std::string what = spoken(entry.interface_id) + " \"" + entry.name + "\"";
    return entry.plugin.empty() ? what : what + " of plugin " + entry.plugin + " " + entry.version;
  }

  /// What add() was given wins over plugins: a test or an embedding program means what it says.
  std::optional<Added> find_added(std::string_view interface_id, std::string_view name) const {
    const std::shared_lock lock(mutex);
    const auto found = added.find({std::string(interface_id), std::string(name)});
    return found == added.end() ? std::nullopt : std::optional(found->second);
  }

  std::string explain_unknown(std::string_view interface_id, std::string_view name) const {
    const std::vector<std::string> known = added_names(interface_id);
    return "no " + spoken(interface_id) + " is called \"" + std::string(name) + "\"" +
           did_you_mean(name, known) + " (no plugins were searched)";
  }

  Added resolve(std::string_view interface_id, std::string_view name) const {
    if (std::optional<Added> found = find_added(interface_id, name))
      return *std::move(found);
    if (loader == nullptr)
      throw PluginError(explain_unknown(interface_id, name));
    return {loader->find(interface_id, name), nullptr, nullptr};
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
    const std::string_view id = interfaces().id(word);
    if (id.empty())
      return {nullptr, "", interfaces().explain_unknown(word)};
    if (const std::optional<Added> found = find_added(id, name))
      return {found->schema, found->entry.qualified_name(), ""};
    if (loader == nullptr)
      return {nullptr, "", explain_unknown(id, name)};
    return loader->look_up(word, name);
  }

  const std::shared_ptr<ComponentLoader> loader;
  mutable std::shared_mutex mutex;
  std::map<Key, Added> added;
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
  const std::string origin = impl_->described(found.entry);
  const detail::RunningCall running(origin, "");
  try {
    component = found.factory(complete, ComponentContext{this});
  } catch (...) {
    detail::rethrow_as(origin + " could not be made");
  }
  if (component == nullptr) {
    throw PluginError(origin + " could not be made: its factory returned nothing");
  }
  component->set_origin(origin);
  return component;
}

std::vector<std::string> PluginRegistry::names_of(std::string_view interface_id) const {
  std::vector<std::string> names = impl_->added_names(interface_id);
  if (impl_->loader != nullptr) {
    std::vector<std::string> offered = impl_->loader->names(interface_id);
    std::move(offered.begin(), offered.end(), std::back_inserter(names));
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
  const std::string text = impl_->described(entry);
  const std::vector<Problem> problems = check_schema(entry.schema, impl_->interfaces());
  TREADLE_EXPECTS(problems.empty(),
                  "the schema of " + text + " is wrong: " + problems.front().text());
  const Key key{entry.interface_id, entry.name};
  auto schema = std::make_shared<const nlohmann::json>(entry.schema);
  const std::unique_lock lock(impl_->mutex);
  const bool is_new =
      impl_->added.try_emplace(key, Added{std::move(entry), std::move(factory), std::move(schema)})
          .second;
  TREADLE_EXPECTS(is_new, text + " has already been added");
}

bool PluginRegistry::remove_component(std::string_view interface_id, std::string_view name) {
  const std::unique_lock lock(impl_->mutex);
  return impl_->added.erase({std::string(interface_id), std::string(name)}) > 0;
}

const SchemaIndex& PluginRegistry::schemas() const {
  return *impl_;
}

std::map<std::string, std::size_t> PluginRegistry::summary() const {
  std::map<std::string, std::size_t> counts;
  for (const InterfaceName& name : impl_->interfaces().names()) {
    counts[name.word] = names_of(name.id).size();
  }
  return counts;
}

void PluginRegistry::refuse_wrong_type(std::string_view interface_id, std::string_view name) {
  const std::string_view word = own_interfaces().word(interface_id);
  const std::string what(word.empty() ? interface_id : word);
  throw PluginError("\"" + std::string(name) + "\" was registered as a " + what +
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
