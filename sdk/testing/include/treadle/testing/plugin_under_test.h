#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <treadle/base/component.h>
#include <treadle/base/document.h>
#include <treadle/base/error.h>
#include <treadle/base/plugin_abi.h>
#include <treadle/base/schema.h>

extern "C" int treadle_plugin_entry_v1(const TreadlePluginHost* host) noexcept;

namespace treadle::testing {

/// The plugin whose objects are linked into this test program, seen as a host sees it: components
/// by name, parameters as JSON that the schema beside the source checks and completes.
///
///     const PluginUnderTest plugin(TREADLE_PLUGIN_FOLDER);
///     auto adam = plugin.make<Optimizer>("adam", {{"learning_rate", 0.1}});
///
/// Read-only after construction: one object may serve a whole program.
class PluginUnderTest final : private Registrar, private SchemaIndex {
 public:
  /// Runs the plugin's entry. `folder` holds the schemas. Throws PluginError when the entry fails.
  explicit PluginUnderTest(std::filesystem::path folder) : folder_(std::move(folder)) {
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
    const ComponentFactory& factory = find_factory(T::kInterface, name);
    const auto document = Document::from_json(completed(name, std::move(parameters)));
    std::unique_ptr<Component> made = factory(Config(document->value(), "", document), context);
    return std::unique_ptr<T>(static_cast<T*>(made.release()));
  }

  /// The parameters after checking, with every default in place.
  nlohmann::json completed(std::string_view name, nlohmann::json parameters = {}) const {
    if (parameters.is_null())
      parameters = nlohmann::json::object();
    const auto document = Document::from_json(std::move(parameters));
    Checked checked = check(document->value(), schema(name), *this, *document);
    if (!checked.problems.empty())
      throw DocumentError(std::move(checked.problems));
    return std::move(checked.value);
  }

  nlohmann::json schema(std::string_view name) const {
    return Document::read(folder_ / (std::string(name) + ".schema.json"))->value();
  }

 private:
  using Key = std::pair<std::string, std::string>;  // interface id, name

  void do_add(std::string_view interface_id, std::string_view name,
              ComponentFactory factory) override {
    factories_[Key(interface_id, name)] = std::move(factory);
  }

  // Slots inside a component are a host's matter; a test passes nested components by itself.
  FoundComponent find(std::string_view, std::string_view name) const override {
    return {nullptr, "", "no component \"" + std::string(name) + "\" in this test"};
  }

  const ComponentFactory& find_factory(std::string_view interface_id, std::string_view name) const {
    const auto found = factories_.find(Key(interface_id, name));
    TREADLE_EXPECTS(found != factories_.end(), "this plugin registers no \"" + std::string(name) +
                                                   "\" under " + std::string(interface_id));
    return found->second;
  }

  std::filesystem::path folder_;
  std::map<Key, ComponentFactory> factories_;
};

}  // namespace treadle::testing
