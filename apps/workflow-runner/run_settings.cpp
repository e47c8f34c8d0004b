#include "run_settings.h"

#include <algorithm>
#include <set>

namespace treadle::cli {
namespace {

using Json = nlohmann::json;

void flatten(const Json& value, const std::string& path, Settings& settings) {
  if (!value.is_object()) {
    settings[path] = value;
    return;
  }
  for (const auto& [key, inner] : value.items())
    flatten(inner, path.empty() ? key : path + "." + key, settings);
}

}  // namespace

Settings settings_of(const RunRecord& run) {
  Json document = run.document;
  for (const char* key : {"treadle", "name", "extensions", "$schema"})
    document.erase(key);
  Settings settings;
  flatten(document, "", settings);
  return settings;
}

Json setting_in(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? Json() : found->second;
}

std::vector<std::string> differing_keys(const std::vector<Settings>& all) {
  std::set<std::string> keys;
  for (const Settings& one : all) {
    for (const auto& [key, value] : one)
      keys.insert(key);
  }
  std::vector<std::string> differing;
  for (const std::string& key : keys) {
    if (std::any_of(all.begin(), all.end(), [&](const Settings& one) {
          return setting_in(one, key) != setting_in(all.front(), key);
        }))
      differing.push_back(key);
  }
  return differing;
}

}  // namespace treadle::cli
