#include "verify/evidence.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/json_text.h>
#include <treadle/base/json_words.h>

namespace treadle::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kVersion = "treadle_bundle";

std::string text_in(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw StorageError(path.string() + ": cannot be read");
  return text.str();
}

Json read_json(const fs::path& path) {
  Json value = parse_json(text_in(path));
  if (value.is_discarded())
    throw StorageError(path.string() + ": is no JSON");
  return value;
}

/// Of result.json: what two trainings of one document have in common.
bool is_reproducible(const std::string& key) {
  static const std::set<std::string, std::less<>> kOthers = {
      "choices", "data", "environment", "extensions", "model_path", "started_at", "time"};
  return kOthers.find(key) == kOthers.end() && key.find("seconds") == std::string::npos &&
         key.find("bytes") == std::string::npos && key.find("_path") == std::string::npos;
}

Json reproducible(const Json& value) {
  if (value.is_array()) {
    Json kept = Json::array();
    for (const Json& item : value)
      kept.push_back(reproducible(item));
    return kept;
  }
  if (!value.is_object())
    return value;
  Json kept = Json::object();
  for (const auto& [key, item] : value.items()) {
    if (is_reproducible(key))
      kept[key] = reproducible(item);
  }
  return kept;
}

std::vector<std::string> lines_without_seconds(const std::string& csv) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < csv.size();) {
    const std::size_t end = std::min(csv.find('\n', begin), csv.size());
    const std::string line = csv.substr(begin, end - begin);
    lines.push_back(line.substr(0, line.rfind(',')));  // the last column
    begin = end + 1;
  }
  return lines;
}

Evidence of_folder(const fs::path& run) {
  const fs::path result = run / "result.json";
  if (!fs::exists(result)) {
    throw StorageError(run.string() + (fs::exists(run / "workflow.json")
                                           ? ": has no result yet; \"resume\" lets it end"
                                           : ": is no run, nor what \"runs bundle\" made of one"));
  }
  Evidence evidence;
  evidence.document = read_json(run / "workflow.json");
  evidence.environment = environment_of(run);
  evidence.environment.erase("document");
  evidence.environment.erase("choices");
  evidence.searched = fs::exists(run / "search.journal");
  const Json all = read_json(result);
  evidence.seconds = all.value("total_time_seconds", 0.0);
  evidence.result = reproducible(all);
  for (const char* name : {"model.safetensors", "preprocessing/state.safetensors"}) {
    if (fs::exists(run / name))
      evidence.files[name] = sha256_file(run / name);
  }
  if (fs::exists(run / "history.csv"))
    evidence.history = lines_without_seconds(text_in(run / "history.csv"));
  return evidence;
}

Evidence of_bundle(const fs::path& file) {
  const Json bundle = read_json(file);
  if (!bundle.is_object() || bundle.value(kVersion, Json()) != 1) {
    throw StorageError(file.string() + ": is no run, nor what \"runs bundle\" made of one");
  }
  try {
    Evidence evidence;
    evidence.document = bundle.at("document");
    evidence.environment = bundle.at("environment");
    evidence.searched = bundle.at("searched").get<bool>();
    evidence.seconds = bundle.at("seconds").get<double>();
    evidence.files = bundle.at("sha256").get<std::map<std::string, std::string>>();
    evidence.history = bundle.at("history").get<std::vector<std::string>>();
    evidence.result = bundle.at("result");
    if (!evidence.document.is_object() || !evidence.environment.is_object())
      throw StorageError(file.string() + ": its document and its environment must be objects");
    return evidence;
  } catch (const Json::exception&) {
    throw StorageError(file.string() + ": is no bundle of this version of Treadle, or is damaged");
  }
}

/// Of a file that may be a stranger's, for the terminal.
std::string shown(const Json& value) {
  return value.is_string() ? plain_text(value.get<std::string>()) : quote_value(value);
}

/// Build ids by plugin; their files may differ where these are the same.
std::map<std::string, std::string> builds(const Json& environment) {
  std::map<std::string, std::string> found;
  const Json plugins = environment.value("plugins", Json::array());
  if (!plugins.is_array())
    return found;
  for (const Json& plugin : plugins) {
    const auto part = [&](const char* key) { return shown(plugin.value(key, Json(""))); };
    if (plugin.is_object())
      found[part("id")] = part("version") + " " + part("build_id");
  }
  return found;
}

/// The place and the two values of the first difference: "/metrics/accuracy is 0.9, was 0.8".
/// Keys in it may do things to a terminal.
std::string first_difference(const Json& before, const Json& here, const std::string& place) {
  if (before == here)
    return "";
  if (before.is_object() && here.is_object()) {
    for (const auto& [key, value] : before.items()) {
      const std::string found = here.contains(key)
                                    ? first_difference(value, here.at(key), place + "/" + key)
                                    : place + "/" + key + " is missing";
      if (!found.empty())
        return found;
    }
    for (const auto& [key, value] : here.items()) {
      if (!before.contains(key))
        return place + "/" + key + " was not there";
    }
  }
  if (before.is_array() && here.is_array() && before.size() == here.size()) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::string found =
          first_difference(before[i], here[i], place + "/" + std::to_string(i));
      if (!found.empty())
        return found;
    }
  }
  return place + " is " + quote_value(here) + ", was " + quote_value(before);
}

}  // namespace

Evidence evidence_of(const fs::path& run_or_bundle) {
  return fs::is_regular_file(run_or_bundle) ? of_bundle(run_or_bundle) : of_folder(run_or_bundle);
}

Json environment_of(const fs::path& run) {
  const Json environment = read_json(run / "environment.json");
  if (!environment.is_object())
    throw StorageError((run / "environment.json").string() + ": is no JSON object");
  return environment;
}

Json bundle_of(const Evidence& evidence) {
  return {{kVersion, 1},
          {"document", evidence.document},
          {"environment", evidence.environment},
          {"searched", evidence.searched},
          {"seconds", evidence.seconds},
          {"sha256", evidence.files},
          {"history", evidence.history},
          {"result", evidence.result}};
}

std::vector<std::string> different_conditions(const Json& before, const Json& here) {
  std::vector<std::string> found;
  for (const auto& [key, value] : before.items()) {
    // Bits do not depend on the number of workers; plugins are compared below.
    const bool is_no_matter =
        key.find("bytes") != std::string::npos || key == "plugins" || key == "workers";
    const Json now = here.value(key, Json());
    if (!is_no_matter && now != value)
      found.push_back(plain_text(key) + " is " + shown(now) + " here, was " + shown(value));
  }
  const std::map<std::string, std::string> builds_here = builds(here);
  for (const auto& [id, build] : builds(before)) {
    const auto now = builds_here.find(id);
    if (now == builds_here.end()) {
      found.push_back("plugin " + id + " is not used here, was " + build);
    } else if (now->second != build) {
      found.push_back("plugin " + id + " is " + now->second + " here, was " + build);
    }
  }
  return found;
}

std::vector<std::string> differences(const Evidence& before, const Evidence& here) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < std::max(before.history.size(), here.history.size()); ++i) {
    const std::string was = i < before.history.size() ? before.history[i] : "not there";
    const std::string is = i < here.history.size() ? here.history[i] : "not there";
    if (was != is) {
      found.push_back("history.csv, line " + std::to_string(i + 1) + ": is " + plain_text(is) +
                      ", was " + plain_text(was));
      break;
    }
  }
  for (const auto& [name, hash] : before.files) {
    const auto now = here.files.find(name);
    if (now == here.files.end() || now->second != hash)
      found.push_back(plain_text(name) +
                      (now == here.files.end() ? " is not there" : " has other bits"));
  }
  if (const std::string result = first_difference(before.result, here.result, ""); !result.empty())
    found.push_back("result.json: " + plain_text(result));
  return found;
}

}  // namespace treadle::cli
