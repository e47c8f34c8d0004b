#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/interfaces.h>

namespace treadle {

/// One component that a manifest announces.
struct ManifestComponent {
  std::string interface_id;  ///< "treadle.optimizer/0"
  std::string name;          ///< "adamw"
  std::string summary;       ///< one line

  bool operator==(const ManifestComponent&) const = default;
};

/// The manifest of a plugin. The schemas stay in the text of the note: a scan needs none of them.
struct Manifest {
  std::string id;       ///< "org.treadle.optimizers"
  std::string version;  ///< "1.0.0"
  std::string summary;  ///< one line
  std::string license;
  std::vector<InterfaceName> interfaces;  ///< beside Treadle's own
  std::vector<ManifestComponent> components;

  /// "org.treadle.optimizers 1.0.0"
  std::string title() const { return id + " " + version; }
  /// The interfaces its components may implement and use: Treadle's own and those it declares.
  InterfaceTable interface_table() const;

  bool operator==(const Manifest&) const = default;
};

/// Reads the text of a manifest note. The text is a stranger's: it is bounded in depth, must be
/// UTF-8, and every value is checked. Throws PluginError (ForeignPlugin when it has another
/// version) with a sentence that begins with a verb, to be put after the file's name.
Manifest parse_manifest(std::string_view text);

/// The schemas in the text of a manifest note, which is parsed once for all of them.
class ManifestSchemas {
 public:
  /// Throws PluginError as above.
  explicit ManifestSchemas(std::string_view text);
  ManifestSchemas(const ManifestSchemas&) = delete;
  ManifestSchemas& operator=(const ManifestSchemas&) = delete;

  /// The schema of a component, as it stands in the note. Throws PluginError when it is not there.
  const nlohmann::json& of(const ManifestComponent& component) const;
  /// As of(). Throws also when check_schema() finds something wrong with it: what checks documents
  /// relies on that, and the note may have been written by anything.
  const nlohmann::json& sound(const ManifestComponent& component) const;

 private:
  nlohmann::json manifest_;
  InterfaceTable interfaces_;
  /// (interface id, name) -> its object in manifest_
  std::map<std::pair<std::string, std::string>, const nlohmann::json*> components_;
};

}  // namespace treadle
