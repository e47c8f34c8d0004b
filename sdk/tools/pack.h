#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/problem.h>

namespace treadle {

/// What a plugin's folder says the plugin offers, checked.
struct PackedManifest {
  nlohmann::json manifest;        ///< as hosts read it, see treadle/base/plugin_abi.h
  std::vector<Problem> problems;  ///< every mistake in all files; the manifest is void unless empty
};

/// Reads `plugin.json` ({"id", "version", "summary", "license"}) and the schemas
/// (`<component>.schema.json`), and `contract.json` where there is one beside plugin.json
/// ({"<component>": {parameters}}), and checks them. Files that cannot be read are problems as
/// well.
PackedManifest pack_manifest(const std::filesystem::path& plugin_json,
                             std::span<const std::filesystem::path> schemas);

/// The C++ source that puts the manifest and the fingerprint of its own compilation into a library.
/// With `tbb`, the TBB headers it is compiled against take part in the fingerprint. Throws
/// UsageError when the manifest is longer than a note may be.
std::string notes_source(const nlohmann::json& manifest, bool tbb);

}  // namespace treadle
