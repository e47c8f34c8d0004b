#pragma once

#include <map>
#include <string>
#include <utility>

#include <treadle/base/component.h>
#include <treadle/base/error.h>
#include <treadle/host/catalog/plugin_catalog.h>

namespace treadle::internal {

using ComponentKey = std::pair<std::string, std::string>;  // interface id, name
using Factories = std::map<ComponentKey, ComponentFactory>;

/// The dynamic linker refused the library: something it needs is missing here.
class NotLoadable : public PluginError {
 public:
  using PluginError::PluginError;
};

/// Loads the plugin's library into this process, where it stays, calls its entry, and compares what
/// that registers with what the manifest lists.
///
/// The file is read again first: a library that is no longer what `plugin` says, or that does not
/// fit `host`, does not run. Throws PluginError with a sentence that begins with a verb, to be put
/// after the plugin's title.
Factories load_plugin_library(const PluginFile& plugin, const HostBuild& host);

}  // namespace treadle::internal
