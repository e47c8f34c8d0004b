#include "array_options.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/path_words.h>

#include "npy_file.h"

namespace treadle::arrays {
namespace {

using Json = nlohmann::json;

constexpr std::array kAccessNames{std::pair{"memory", Access::kMemory},
                                  std::pair{"mapped", Access::kMapped},
                                  std::pair{"chunked", Access::kChunked}};
constexpr std::array kMissingNames{std::pair{"error", Missing::kError},
                                   std::pair{"nan", Missing::kNan},
                                   std::pair{"drop_row", Missing::kDropRow}};

template <typename Names, typename Value>
void read_choice(const Config& config, const char* key, const Names& names, Value& value) {
  if (!config.has(key))
    return;
  const auto name = config.get<std::string>(key);
  const auto* const found = std::find_if(names.begin(), names.end(),
                                         [&](const auto& entry) { return name == entry.first; });
  if (found == names.end()) {
    config.fail(key, "must be " + quote_text(names[0].first) + ", " + quote_text(names[1].first) +
                         " or " + quote_text(names[2].first));
  }
  value = found->second;
}

Paths paths_in(const Json& value) {
  if (value.is_string())
    return {value.get<std::string>()};
  Paths paths;
  for (const Json& path : value)
    paths.emplace_back(path.get<std::string>());
  return paths;
}

constexpr std::array kRoleNames{
    std::pair{"auto", RoleAsked::kAuto},     std::pair{"features", RoleAsked::kFeatures},
    std::pair{"tokens", RoleAsked::kTokens}, std::pair{"image", RoleAsked::kImage},
    std::pair{"mask", RoleAsked::kMask},     std::pair{"segments", RoleAsked::kSegments}};
constexpr std::array kKindNames{
    std::pair{"auto", KindAsked::kAuto}, std::pair{"classes", KindAsked::kClasses},
    std::pair{"numbers", KindAsked::kNumbers}, std::pair{"labels", KindAsked::kLabels},
    std::pair{"distribution", KindAsked::kDistribution}};
constexpr std::array kInputKeys{"path", "role", "vocabulary_size", "lengths", "of"};
constexpr std::array kTargetKeys{"path", "kind", "classes", "padded_like", "weights"};

template <typename Names>
auto word_of(const Names& names, const Json& value, const char* key) {
  const std::string word = value.value(key, std::string("auto"));
  const auto* const found = std::find_if(names.begin(), names.end(),
                                         [&](const auto& entry) { return word == entry.first; });
  return found == names.end() ? names[0].second : found->second;
}

/// Whether an object describes one array, rather than naming several.
template <typename Keys>
bool is_description(const Json& value, const Keys& keys) {
  if (!value.is_object() || !value.contains("path"))
    return false;
  for (const auto& [key, ignored] : value.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      return false;
  }
  return true;
}

InputOption input_option(const Json& value) {
  if (!value.is_object())
    return {paths_in(value)};
  InputOption input{paths_in(value.at("path"))};
  input.role = word_of(kRoleNames, value, "role");
  input.vocabulary_size = value.value("vocabulary_size", std::int64_t{0});
  if (value.contains("lengths"))
    input.lengths = paths_in(value["lengths"]);
  input.of = value.value("of", std::string());
  return input;
}

TargetOption target_option(std::string name, const Json& value) {
  if (!value.is_object())
    return {std::move(name), paths_in(value)};
  TargetOption target{std::move(name), paths_in(value.at("path"))};
  target.kind = word_of(kKindNames, value, "kind");
  if (value.contains("classes"))
    target.classes = value["classes"].get<std::vector<std::string>>();
  target.padded_like = value.value("padded_like", std::string());
  if (value.contains("weights"))
    target.weights = paths_in(value["weights"]);
  return target;
}

void read_paths(const Config& config, const char* key, std::optional<Paths>& paths) {
  if (config.has(key))
    paths = paths_in(config.json()[key]);
}

}  // namespace

ArrayOptions::ArrayOptions(const Config& config) {
  const Json& json = config.json();
  inputs = input_options(json.at("inputs"));
  if (inputs.empty())
    config.fail("inputs", "must name at least one file");
  const Json& target = json.at("target");
  if (!target.is_object() || is_description(target, kTargetKeys)) {
    targets.push_back(target_option("", target));
  } else {
    for (const auto& [name, one] : target.items())
      targets.push_back(target_option(name, one));
  }
  if (targets.empty())
    config.fail("target", "must name at least one file");
  if (config.has("columns")) {
    if (json["columns"].is_object()) {
      columns = json["columns"].get<std::map<std::string, std::vector<std::string>>>();
    } else {
      columns[kOnlyPort] = json["columns"].get<std::vector<std::string>>();
    }
  }
  if (const auto classes = config.find<std::vector<std::string>>("classes")) {
    if (targets.size() > 1)
      config.fail("classes", "is for one target; with several, each has its own \"classes\"");
    targets[0].classes = classes;
  }
  read_paths(config, "weights", weights);
  read_paths(config, "groups", groups);
  read_paths(config, "times", times);
  read_paths(config, "label_ends", label_ends);
  if (label_ends && !times)
    config.fail("label_ends", "has no effect without \"times\", the time of each row");
  read_choice(config, "access", kAccessNames, access);
  read_choice(config, "missing", kMissingNames, missing);
  chunk_rows = config.get_or("chunk_rows", chunk_rows);
  resident_bytes = static_cast<std::size_t>(
      config.get_or("resident_bytes", static_cast<std::int64_t>(resident_bytes)));
}

std::map<std::string, InputOption> input_options(const Json& inputs) {
  if (!inputs.is_object() || is_description(inputs, kInputKeys))
    return {{kOnlyPort, input_option(inputs)}};
  std::map<std::string, InputOption> by_port;
  for (const auto& [port, input] : inputs.items())
    by_port[port] = input_option(input);
  return by_port;
}

Paths find_files(const Paths& paths) {
  Paths files;
  for (const std::filesystem::path& path : paths) {
    const std::string pattern = path.filename().string();
    std::error_code error;
    const bool is_pattern =
        pattern.find_first_of("*?") != std::string::npos && !std::filesystem::exists(path, error);
    if (!is_pattern) {
      files.push_back(path);
      continue;
    }
    Paths fitting;
    std::filesystem::directory_iterator entries(path.parent_path(), error);
    for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
      const std::string name = entries->path().filename().string();
      if (::fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0)
        fitting.push_back(entries->path());
    }
    if (fitting.empty())
      throw DataError(shown_path(path) + ": no file has a name like this");
    std::sort(fitting.begin(), fitting.end(), [](const auto& a, const auto& b) {
      return a.filename().string() < b.filename().string();
    });
    files.insert(files.end(), fitting.begin(), fitting.end());
  }
  return files;
}

}  // namespace treadle::arrays
