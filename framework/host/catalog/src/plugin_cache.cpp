#include <treadle/host/catalog/plugin_cache.h>

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>

namespace treadle {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// Grows when a reader of the old form would misread the new one.
constexpr int kCacheVersion = 3;
constexpr std::size_t kMaxCacheBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxMeetings = 64;

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// One text per plugin instead of an array per component: parsing the cache is most of the time of a
// warm scan. Manifests have no control characters, so these can separate.
std::string to_text(const std::vector<ManifestComponent>& components) {
  std::string text;
  for (const ManifestComponent& component : components) {
    text += component.interface_id + '\t' + component.name + '\t' + component.summary + '\n';
  }
  return text;
}

std::string to_text(const std::vector<InterfaceName>& interfaces) {
  std::string text;
  for (const InterfaceName& name : interfaces)
    text += name.word + '\t' + name.id + '\t' + name.about + '\n';
  return text;
}

/// The next part of `text`, which is taken from it.
std::string take(std::string_view& text, char end) {
  const std::size_t size = text.find(end);
  if (size == std::string_view::npos)
    throw std::invalid_argument("a line is cut short");
  std::string part(text.substr(0, size));
  text.remove_prefix(size + 1);
  return part;
}

/// Lines of three parts, into structs of three texts.
template <typename Entry>
std::vector<Entry> entries_from(std::string_view text) {
  std::vector<Entry> entries;
  while (!text.empty()) {
    std::string first = take(text, '\t');
    std::string second = take(text, '\t');
    entries.push_back({std::move(first), std::move(second), take(text, '\n')});
  }
  return entries;
}

json to_json(const FileFacts& facts, std::size_t fingerprint) {
  const FileStamp& stamp = facts.stamp;
  const Manifest& manifest = facts.manifest;
  json probe = nullptr;
  if (facts.probe)
    probe = {facts.probe->host, facts.probe->problem};
  return {{"probe", std::move(probe)},
          {"stamp", {stamp.device, stamp.inode, stamp.size, stamp.modified_ns, stamp.changed_ns}},
          {"fingerprint", fingerprint},
          {"needed", facts.needed},
          {"build_id", facts.build_id},
          {"manifest", {manifest.id, manifest.version, manifest.summary, manifest.license}},
          {"interfaces", to_text(manifest.interfaces)},
          {"components", to_text(manifest.components)},
          {"problem", facts.problem},
          {"foreign", facts.foreign}};
}

/// A whole number that fits; the library would cast any number.
template <typename Number>
Number whole(const json& value) {
  if (!(std::is_unsigned_v<Number> ? value.is_number_unsigned() : value.is_number_integer()))
    throw std::invalid_argument("a number is not whole");
  return value.get<Number>();
}

FileFacts from_json(const json& entry,
                    const std::vector<std::shared_ptr<const std::string>>& fingerprints) {
  FileFacts facts;
  const json& stamp = entry.at("stamp");
  facts.stamp = {whole<std::uint64_t>(stamp.at(0)), whole<std::uint64_t>(stamp.at(1)),
                 whole<std::uint64_t>(stamp.at(2)), whole<std::int64_t>(stamp.at(3)),
                 whole<std::int64_t>(stamp.at(4))};
  facts.fingerprint = fingerprints.at(whole<std::size_t>(entry.at("fingerprint")));
  entry.at("needed").get_to(facts.needed);
  entry.at("build_id").get_to(facts.build_id);
  const json& manifest = entry.at("manifest");
  facts.manifest.id = manifest.at(0);
  facts.manifest.version = manifest.at(1);
  facts.manifest.summary = manifest.at(2);
  facts.manifest.license = manifest.at(3);
  facts.manifest.interfaces =
      entries_from<InterfaceName>(entry.at("interfaces").get_ref<const std::string&>());
  facts.manifest.components =
      entries_from<ManifestComponent>(entry.at("components").get_ref<const std::string&>());
  entry.at("problem").get_to(facts.problem);
  entry.at("foreign").get_to(facts.foreign);
  if (const json& probe = entry.at("probe"); !probe.is_null())
    facts.probe = FileFacts::Probe{probe.at(0), probe.at(1)};
  return facts;
}

}  // namespace

std::optional<FileStamp> FileStamp::of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return std::nullopt;
  return FileStamp{status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
                   nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

FileFacts FileFacts::read(const fs::path& file, const FileStamp& stamp) {
  FileFacts facts;
  facts.stamp = stamp;
  facts.fingerprint = std::make_shared<const std::string>();
  try {
    LibraryNotes notes = read_library_notes(file);
    facts.fingerprint = std::make_shared<const std::string>(std::move(notes.fingerprint));
    facts.needed = std::move(notes.needed);
    facts.build_id = std::move(notes.build_id);
    if (!notes.manifest.empty())
      facts.manifest = parse_manifest(notes.manifest);
  } catch (const PluginError& error) {
    facts.problem = error.what();
    facts.foreign = dynamic_cast<const ForeignPlugin*>(&error) != nullptr;
  }
  return facts;
}

PluginCache::PluginCache(fs::path file) : file_(std::move(file)) {
  if (file_.empty())
    return;
  try {
    load();
  } catch (const std::exception&) {
    // Another version, cut short, edited: reading the plugins again says the same.
    files_.clear();
    meetings_.clear();
  }
}

void PluginCache::load() {
  struct stat status {};
  if (::stat(file_.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      (status.st_mode & S_IWOTH) != 0 ||
      static_cast<std::uint64_t>(status.st_size) > kMaxCacheBytes) {
    return;
  }
  std::ifstream stream(file_, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  const json cache = json::parse(text);
  if (cache.at("version") != kCacheVersion)
    return;
  std::vector<std::shared_ptr<const std::string>> fingerprints;
  for (const json& fingerprint : cache.at("fingerprints")) {
    fingerprints.push_back(std::make_shared<const std::string>(fingerprint.get<std::string>()));
  }
  for (const auto& [path, entry] : cache.at("files").items()) {
    files_.emplace(path, from_json(entry, fingerprints));
  }
  for (const json& meeting : cache.at("meetings"))
    meetings_.push_back({meeting.at("host"), meeting.at("builds")});
}

const FileFacts* PluginCache::facts(const fs::path& path) {
  const std::optional<FileStamp> stamp = FileStamp::of(path);
  if (!stamp)
    return nullptr;
  const auto known = files_.find(path.native());
  if (known != files_.end() && known->second.stamp == *stamp)
    return &known->second;
  changed_ = true;
  return &(files_[path.native()] = FileFacts::read(path, *stamp));
}

void PluginCache::remember(const fs::path& path, FileFacts::Probe probe) {
  const auto known = files_.find(path.native());
  TREADLE_EXPECTS(known != files_.end(), path.string() + " has not been read");
  changed_ = true;
  known->second.probe = std::move(probe);
}

bool PluginCache::have_met(std::string_view host, const std::vector<std::string>& builds) const {
  std::vector<std::string> sorted = builds;
  std::sort(sorted.begin(), sorted.end());
  return std::any_of(meetings_.begin(), meetings_.end(), [&](const Meeting& meeting) {
    return meeting.host == host && std::includes(meeting.builds.begin(), meeting.builds.end(),
                                                 sorted.begin(), sorted.end());
  });
}

void PluginCache::remember_meeting(std::string_view host, std::vector<std::string> builds) {
  std::sort(builds.begin(), builds.end());
  std::erase_if(meetings_, [&](const Meeting& meeting) {
    return meeting.host == host && std::includes(builds.begin(), builds.end(),
                                                 meeting.builds.begin(), meeting.builds.end());
  });
  meetings_.push_back({std::string(host), std::move(builds)});
  if (meetings_.size() > kMaxMeetings)
    meetings_.erase(meetings_.begin());
  changed_ = true;
}

void PluginCache::save() {
  if (file_.empty() || !changed_)
    return;
  std::map<std::string_view, std::size_t> numbers;
  json fingerprints = json::array();
  json files = json::object();
  for (const auto& [path, facts] : files_) {
    std::error_code error;
    if (!fs::exists(path, error))
      continue;
    const auto [known, is_new] = numbers.emplace(*facts.fingerprint, numbers.size());
    if (is_new)
      fingerprints.push_back(*facts.fingerprint);
    files[path] = to_json(facts, known->second);
  }
  json meetings = json::array();
  for (const Meeting& meeting : meetings_)
    meetings.push_back({{"host", meeting.host}, {"builds", meeting.builds}});
  const json cache{{"version", kCacheVersion},
                   {"meetings", std::move(meetings)},
                   {"fingerprints", std::move(fingerprints)},
                   {"files", std::move(files)}};
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  if (error)
    return;
  try {
    write_file_atomically(file_, cache.dump(-1, ' ', false, json::error_handler_t::replace));
    changed_ = false;
  } catch (const StorageError&) {
    // A read-only or full home makes the next command slower, nothing else.
  }
}

}  // namespace treadle
