#include "runtime/run_record.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <ATen/Version.h>
#include <torch/version.h>

#include <treadle/base/hash.h>
#include <treadle/base/json_words.h>
#include <treadle/base/version.h>
#include <treadle/engine/thread_budget.h>
#include <treadle/host/catalog/plugin_lock.h>

namespace treadle::internal {
namespace {

nlohmann::json plugins_of(const PluginLock& plugins) {
  nlohmann::json list = nlohmann::json::array();
  for (const PluginLock::Entry& plugin : plugins.entries()) {
    list.push_back({{"id", plugin.id},
                    {"version", plugin.version},
                    {"build_id", plugin.build_id},
                    {"sha256", plugin.sha256}});
  }
  return list;
}

/// What a record has under a key, as it may stand in a message: whoever wrote it may be anybody.
std::string text_in(const nlohmann::json& record, const char* key, const char* missing) {
  if (!record.is_object() || !record.contains(key))
    return missing;
  const nlohmann::json& value = record.at(key);
  return value.is_string() ? plain_text(value.get<std::string>()) : quote_value(value);
}

/// "version 0.1.0 (build 1234)"; by its bytes where it has no build.
std::string plugin_words(const nlohmann::json& plugin) {
  const std::string build = text_in(plugin, "build_id", "");
  return "version " + text_in(plugin, "version", "unknown") + " (" +
         (build.empty() ? "SHA-256 " + text_in(plugin, "sha256", "unknown") : "build " + build) +
         ")";
}

/// One build is one, though installing it changes where its file looks for libraries.
bool are_alike(const nlohmann::json& plugin, const nlohmann::json& other) {
  const std::string build = text_in(plugin, "build_id", "");
  return plugin == other || (!build.empty() && build == text_in(other, "build_id", "") &&
                             text_in(plugin, "version", "") == text_in(other, "version", ""));
}

/// A "VmHWM:   1234 kB" line of /proc/self/status, in bytes.
std::int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string name;
  while (status >> name) {
    std::int64_t kilobytes = 0;
    if (name == key && status >> kilobytes)
      return kilobytes * 1024;
    status.ignore(1 << 20, '\n');
  }
  return 0;
}

struct Compared {
  const char* key;
  const char* missing = "";  ///< what a record without the key means
};
constexpr Compared kCompared[] = {{"treadle"},        {"libtorch"},      {"blas"},
                                  {"cpu_capability"}, {"device", "cpu"}, {"data_hash"},
                                  {"weights_hash"}};

/// Of the files of weights that trainings start from; empty where there are none to start from.
std::string weights_hash(const nlohmann::json& resolved) {
  const nlohmann::json& model = resolved.at("model");
  if (!model.contains("weights"))
    return "";
  const auto hash_of = [](const nlohmann::json& file) {
    const std::filesystem::path path = file.at("path").get<std::string>();
    return std::filesystem::exists(path) ? hash_file(path) : "missing";
  };
  const nlohmann::json& weights = model.at("weights");
  if (weights.is_object())
    return hash_of(weights);
  std::string all;
  for (const nlohmann::json& file : weights)
    all += hash_of(file) + " ";
  return hash_text(all);
}

}  // namespace

nlohmann::json program_record(const PluginLock& plugins) {
  return {{"treadle", std::string(version())},
          {"libtorch", libtorch_version()},
          {"blas", engine::blas_name()},
          {"cpu_capability", cpu_capability()},
          {"plugins", plugins_of(plugins)}};
}

nlohmann::json environment_record(const PluginLock& plugins, const nlohmann::json& resolved,
                                  const DataFacts& data, const std::string& device, int workers) {
  nlohmann::json record = program_record(plugins);
  record["device"] = device;
  record["data_hash"] = data.hash;
  record["data_rows"] = data.rows;
  record["workers"] = workers;
  if (!data.source.empty())
    record["source_hash"] = data.source;
  if (std::string weights = weights_hash(resolved); !weights.empty())
    record["weights_hash"] = std::move(weights);
  return record;
}

std::vector<std::string> differences(const nlohmann::json& before, const nlohmann::json& now,
                                     const DifferenceWords& words) {
  std::vector<std::string> found;
  const auto add = [&](const std::string& what, const std::string& first,
                       const std::string& second) {
    found.push_back(what + words.was + first + words.is + second + words.end);
  };
  for (const auto& [key, missing] : kCompared) {
    if (text_in(before, key, missing) != text_in(now, key, missing))
      add(key, text_in(before, key, "unknown"), text_in(now, key, "unknown"));
  }
  std::map<std::string, nlohmann::json> old_plugins;
  for (const nlohmann::json& plugin : before.value("plugins", nlohmann::json::array()))
    old_plugins[text_in(plugin, "id", "")] = plugin;
  for (const nlohmann::json& plugin : now.at("plugins")) {
    const auto id = plugin.at("id").get<std::string>();
    const auto old = old_plugins.find(id);
    if (old == old_plugins.end()) {
      found.push_back("plugin " + id + words.is_new);
    } else if (!are_alike(old->second, plugin)) {
      add("plugin " + id, plugin_words(old->second), plugin_words(plugin));
    }
  }
  return found;
}

std::string cpu_capability() {
  const std::string config = at::show_config();
  const std::string label = "CPU capability usage: ";
  const std::size_t begin = config.find(label);
  if (begin == std::string::npos)
    return "unknown";
  const std::size_t end = config.find('\n', begin);
  return config.substr(begin + label.size(), end - begin - label.size());
}

std::string libtorch_version() {
  return TORCH_VERSION;
}

std::int64_t peak_memory_bytes() {
  return status_bytes("VmHWM:");
}
std::int64_t resident_memory_bytes() {
  return status_bytes("VmRSS:");
}

void reset_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

}  // namespace treadle::internal
