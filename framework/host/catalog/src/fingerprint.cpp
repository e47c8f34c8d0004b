#include <treadle/host/catalog/fingerprint.h>

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <system_error>

#include <treadle/base/error.h>
#include <treadle/base/interfaces.h>
#include <treadle/base/json_words.h>

namespace treadle {
namespace {

using Facts = std::map<std::string, std::string, std::less<>>;

Facts read_facts(std::string_view fingerprint) {
  Facts facts;
  while (!fingerprint.empty()) {
    const std::string_view line = fingerprint.substr(0, fingerprint.find('\n'));
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos && !line.starts_with("info.")) {
      facts.emplace(line.substr(0, equals), line.substr(equals + 1));
    }
    fingerprint.remove_prefix(std::min(line.size() + 1, fingerprint.size()));
  }
  return facts;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(separator));
    if (!part.empty())
      parts.push_back(part);
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return parts;
}

bool equal(std::string_view plugin, std::string_view host) {
  return plugin == host;
}

/// Nothing for text that is more, or something else, than a number.
std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Plugins run with a newer library than they were built for, not with an older one.
bool at_most(std::string_view plugin, std::string_view host) {
  const std::optional<std::uint64_t> theirs = number(plugin);
  return theirs && theirs <= number(host);
}

/// Within major 0 nothing is frozen: each minor version is a world of its own.
bool fits_sdk(std::string_view plugin, std::string_view host) {
  const auto major = [](std::string_view v) { return v.substr(0, v.find('.')); };
  const auto minor = [](std::string_view v) {
    return v.substr(std::min(v.find('.'), v.size() - 1) + 1);
  };
  if (plugin.empty() || !number(major(plugin)) || number(major(plugin)) != number(major(host)))
    return false;
  const bool is_draft = number(major(host)) == 0U;
  return is_draft ? number(minor(plugin)) && number(minor(plugin)) == number(minor(host))
                  : at_most(minor(plugin), minor(host));
}

/// The words for one fact. `fits(plugin, host)`.
struct FactWords {
  std::string_view key;
  bool (*fits)(std::string_view, std::string_view);
  std::string_view before;  ///< "was built for libtorch "
  std::string_view after;
  std::string_view host;  ///< what this runner does with the value: "uses"
  bool optional;          ///< a plugin without this fact does not care
};

constexpr FactWords kFacts[] = {
    {"sdk_abi", fits_sdk, "was built for SDK ABI ", "", "has", false},
    {"libtorch", equal, "was built for libtorch ", "", "uses", false},
    {"libtorch_flavour", equal, "was built for the flavour ", " of libtorch", "uses", false},
    {"standard_library", equal, "was built for the standard library ", "", "uses", false},
    {"string_abi", equal, "was built with the string ABI \"", "\"", "uses", false},
    {"debug_containers", equal, "was built with debug containers ", "", "has them", false},
    {"c_library", equal, "was built for the C library ", "", "uses", false},
    {"rtti", equal, "was built with RTTI ", "", "has it", false},
    {"exceptions", equal, "was built with exceptions ", "", "has them", false},
    {"sanitizers", equal, "was built with sanitizers: ", "", "has", false},
    {"tbb", at_most, "was built for TBB interface ", "", "has", true},
    {"nlohmann_json", equal, "was built for nlohmann-json ", "", "uses", false},
};

/// A stranger's value, as it may stand in a sentence.
std::string shown(std::string_view value) {
  constexpr std::size_t kLongestValue = 80;
  return plain_text(value.substr(0, kLongestValue)) + (value.size() > kLongestValue ? "…" : "");
}

/// "its Tensor is 16/8 bytes (size/alignment), here 8/8".
std::vector<std::string> size_differences(std::string_view plugin, std::string_view host) {
  const std::vector<std::string_view> theirs = split(plugin, ' ');
  std::vector<std::string> differences;
  for (const std::string_view ours : split(host, ' ')) {
    if (std::find(theirs.begin(), theirs.end(), ours) != theirs.end())
      continue;
    const std::string_view name = ours.substr(0, ours.find(':') + 1);
    const auto other = std::find_if(theirs.begin(), theirs.end(), [name](std::string_view size) {
      return size.starts_with(name);
    });
    differences.push_back("its " + std::string(name.substr(0, name.size() - 1)) + " is " +
                          (other == theirs.end() ? "unknown" : shown(other->substr(name.size()))) +
                          " bytes (size/alignment), this runner's " +
                          std::string(ours.substr(name.size())));
  }
  return differences;
}

/// Two builds of one version of libtorch in one process corrupt each other just as two versions do.
std::vector<std::string> library_differences(const std::vector<std::string>& plugin,
                                             const std::vector<std::string>& host) {
  const auto stem = [](std::string_view name) { return name.substr(0, name.find(".so")); };
  static constexpr std::string_view kShared[] = {
      "libtorch",  "libtorch_cpu",    "libtorch_cuda",  "libc10",
      "libstdc++", "libtreadle-base", "libtreadle-core"};
  std::vector<std::string> differences;
  for (const std::string& theirs : plugin) {
    if (std::find(std::begin(kShared), std::end(kShared), stem(theirs)) == std::end(kShared))
      continue;
    for (const std::string& ours : host) {
      if (stem(ours) == stem(theirs) && ours != theirs) {
        differences.push_back("is linked to " + shown(theirs) + ", this runner to " + ours);
      }
    }
  }
  return differences;
}

}  // namespace

std::filesystem::path library_folder() {
  Dl_info info{};
  // Any symbol of libtreadle-base does.
  if (::dladdr(reinterpret_cast<const void*>(&interface_names), &info) == 0 ||
      info.dli_fname == nullptr) {
    throw PluginError("cannot find out where libtreadle-base was loaded from");
  }
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
  if (error) {
    throw PluginError("cannot find the folder of " + std::string(info.dli_fname) + ": " +
                      error.message());
  }
  return file.parent_path();
}

std::filesystem::path host_library() {
  return library_folder() / "libtreadle-core.so.0";
}

std::string explain_mismatch(std::string_view fingerprint, const std::vector<std::string>& needed,
                             const HostBuild& host) {
  const Facts theirs = read_facts(fingerprint);
  const Facts ours = read_facts(host.fingerprint);
  std::vector<std::string> differences;
  bool same_libtorch = true;
  for (const FactWords& fact : kFacts) {
    const auto here = ours.find(fact.key);
    const auto there = theirs.find(fact.key);
    if (there == theirs.end() && (fact.optional || here == ours.end()))
      continue;
    const std::string host_value = here == ours.end() ? "none" : here->second;
    const std::string value = there == theirs.end() ? "unknown" : shown(there->second);
    if (here != ours.end() && there != theirs.end() && fact.fits(there->second, host_value))
      continue;
    if (fact.key == "libtorch")
      same_libtorch = false;
    differences.push_back(std::string(fact.before) + value + std::string(fact.after) +
                          ", this runner " + std::string(fact.host) + " " + host_value);
  }
  // Follow from a difference that has been named already.
  if (differences.empty()) {
    const auto here = ours.find("type_sizes");
    const auto there = theirs.find("type_sizes");
    differences = size_differences(there == theirs.end() ? "" : std::string_view(there->second),
                                   here == ours.end() ? "" : std::string_view(here->second));
  }
  if (same_libtorch) {
    for (std::string& difference : library_differences(needed, host.needed)) {
      differences.push_back(std::move(difference));
    }
  }
  if (differences.empty())
    return "";
  std::string sentence;
  for (const std::string& difference : differences)
    sentence += difference + "; ";
  return sentence + "rebuild it against this SDK";
}

}  // namespace treadle
