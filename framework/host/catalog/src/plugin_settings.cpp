#include <treadle/host/catalog/plugin_settings.h>

#include <array>
#include <charconv>
#include <chrono>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/problem.h>
#include <treadle/host/catalog/fingerprint.h>
#include <treadle/host/catalog/plugin_lock.h>

namespace treadle {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<std::string_view, Probing>, 3> kProbingWords{{
    {"changed", Probing::kChanged},
    {"always", Probing::kAlways},
    {"never", Probing::kNever},
}};

std::string_view value_of(const EnvironmentReader& environment, const char* variable) {
  const char* value = environment(variable);
  return value == nullptr ? std::string_view() : value;
}

Probing probing_from(std::string_view source, std::string_view word) {
  for (const auto& [known, probing] : kProbingWords) {
    if (known == word)
      return probing;
  }
  throw UsageError(std::string(source) + ": expected \"changed\", \"always\" or \"never\", got " +
                   quote_text(word));
}

std::set<std::string, std::less<>> ids_from(std::string_view text) {
  std::set<std::string, std::less<>> ids;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    if (const std::string_view id = text.substr(0, comma); !id.empty())
      ids.emplace(id);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return ids;
}

std::chrono::milliseconds limit_from(std::string_view text) {
  constexpr long long kLongest = 3'600'000;
  long long milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  if (error != std::errc() || end != text.data() + text.size() || milliseconds < 1 ||
      milliseconds > kLongest) {
    throw UsageError("TREADLE_PLUGIN_PROBE_TIMEOUT_MS: expected milliseconds between 1 and " +
                     std::to_string(kLongest) + ", got " + quote_text(text));
  }
  return std::chrono::milliseconds(milliseconds);
}

fs::path cache_file(const EnvironmentReader& environment) {
  const std::string_view file = value_of(environment, "TREADLE_PLUGIN_CACHE");
  if (file.empty())
    return default_cache_file(environment);
  if (file == "off")
    return {};
  if (!fs::path(file).is_absolute()) {
    throw UsageError("TREADLE_PLUGIN_CACHE: expected an absolute path or \"off\", got " +
                     quote_text(file));
  }
  return file;
}

fs::path existing_file(const fs::path& file) {
  std::error_code error;
  if (fs::is_directory(file, error)) {
    throw UsageError("--plugin " + file.string() +
                     ": is a folder; name a plugin in it, or all of them with --plugin-dir " +
                     file.string());
  }
  if (!fs::is_regular_file(file, error))
    throw UsageError("--plugin " + file.string() + ": there is no such file");
  return fs::absolute(file).lexically_normal();
}

/// A lock that cannot be read locks nothing, so nothing is used.
void expect_lock(const fs::path& file) {
  if (file.empty())
    return;
  try {
    PluginLock::read(file);
  } catch (const DocumentError& error) {
    throw PluginError("--locked " + std::string(error.what()));
  }
}

}  // namespace

CatalogOptions catalog_options(const PluginSettings& settings,
                               const EnvironmentReader& environment) {
  CatalogOptions options;
  const fs::path libraries = library_folder();
  options.folders = search_path(settings.plugin_dirs, libraries, environment);
  for (const fs::path& file : settings.plugins)
    options.files.push_back(existing_file(file));
  expect_lock(settings.lock_file);
  options.cache_file = cache_file(environment);
  options.allow_writable = settings.allow_writable;
  options.disabled = ids_from(value_of(environment, "TREADLE_PLUGIN_DISABLE"));
  options.only = ids_from(value_of(environment, "TREADLE_PLUGIN_ALLOW"));
  options.probing = Probing::kChanged;
  if (const std::string_view word = value_of(environment, "TREADLE_PLUGIN_PROBE"); !word.empty())
    options.probing = probing_from("TREADLE_PLUGIN_PROBE", word);
  if (!settings.probing.empty())
    options.probing = probing_from("--probe", settings.probing);
  options.probe.program = default_probe_program(libraries);
  if (const std::string_view limit = value_of(environment, "TREADLE_PLUGIN_PROBE_TIMEOUT_MS");
      !limit.empty()) {
    options.probe.limit = limit_from(limit);
  }
  return options;
}

}  // namespace treadle
