#include <treadle/host/catalog/plugin_catalog.h>

#include <algorithm>
#include <set>
#include <system_error>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/interfaces.h>
#include <treadle/base/json_words.h>
#include <treadle/base/near_miss.h>
#include <treadle/host/catalog/elf_notes.h>
#include <treadle/host/catalog/plugin_cache.h>

namespace treadle {
namespace {

namespace fs = std::filesystem;

/// "an optimizer", "a schedule".
std::string with_article(std::string_view word) {
  constexpr std::string_view kVowels = "aeiou";
  const bool vowel = !word.empty() && kVowels.find(word.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + std::string(word);
}

// As many names as help; more are a list of their own.
constexpr std::size_t kMostNames = 20;

/// "a", "a or b", "a, b or c".
std::string alternatives(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0)
      text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

/// ": adamw, sgd"; of many, where to read them.
std::string known_names(std::string_view word, const std::vector<std::string>& names) {
  if (names.size() > kMostNames) {
    return " " + std::to_string(names.size()) + ", see \"workflow-runner plugins list " +
           std::string(word) + "\"";
  }
  std::string list;
  for (const std::string& name : names)
    list += (list.empty() ? ": " : ", ") + name;
  return list;
}

std::string explain_conflict(const InterfaceName& declared, const InterfaceName& here) {
  return "declares the interface " + quote_text(declared.word) + " as " + declared.id + ", but " +
         quote_text(here.word) + " is " + here.id;
}

std::string explain_interface(const ManifestComponent& component) {
  return "offers " + quote_text(component.name) + " for the interface " + component.interface_id +
         ", which this runner does not have; rebuild it against this SDK";
}

void condemn(PluginFile& plugin, const std::string& problem) {
  if (problem.empty())
    return;
  plugin.verdict = Verdict::kBroken;
  plugin.reason = problem;
}

Lookup not_found(std::string text, bool plugin_at_fault = false) {
  return {std::nullopt, std::move(text), plugin_at_fault};
}

}  // namespace

std::string_view verdict_word(Verdict verdict) {
  static constexpr std::string_view kWords[] = {"usable",       "not a plugin", "invalid",
                                                "incompatible", "refused",      "disabled",
                                                "broken",       "shadowed"};
  return kWords[static_cast<std::size_t>(verdict)];
}

std::string PluginFile::title() const {
  return manifest.id.empty() ? file.string() : manifest.title() + " (" + file.string() + ")";
}

std::shared_ptr<const PluginCatalog> PluginCatalog::scan(CatalogOptions options) {
  std::shared_ptr<PluginCatalog> catalog(new PluginCatalog(std::move(options)));
  PluginCache cache(catalog->options_.cache_file);
  catalog->look_through_folders(cache);
  catalog->try_out(cache);
  cache.save();
  catalog->shadow_duplicates();
  catalog->collect_interfaces();
  catalog->index_components();
  if (!catalog->options_.only_report)
    catalog->expect_named_files();
  return catalog;
}

PluginCatalog::PluginCatalog(CatalogOptions options) : options_(std::move(options)) {}

void PluginCatalog::look_through_folders(PluginCache& cache) {
  if (!options_.host) {
    const fs::path library = host_library();
    const FileFacts* facts = cache.facts(library);
    if (facts == nullptr || facts->fingerprint->empty()) {
      throw PluginError(library.string() +
                        (facts == nullptr ? ": there is no such library"
                                          : ": the library does not say how it was built") +
                        ", so no plugin can be checked; install Treadle again");
    }
    options_.host = HostBuild{*facts->fingerprint, facts->needed};
    host_build_id_ = facts->build_id;
  }
  for (const fs::path& file : options_.examined)
    look_at(cache, file, std::string(PluginFile::kExamined));
  for (const fs::path& file : options_.files)
    look_at(cache, file, std::string(PluginFile::kNamed));
  for (const SearchFolder& folder : options_.folders) {
    for (const fs::path& file : plugin_files(folder.folder)) {
      look_at(cache, file, folder.origin);
    }
  }
}

void PluginCatalog::look_at(PluginCache& cache, const fs::path& file, const std::string& origin) {
  const FileFacts* facts = cache.facts(file);
  if (facts == nullptr)
    return;  // gone meanwhile, or a link to nowhere
  // Two names of one file are one library: dlopen() gives the same handle for both.
  if (seen_.emplace(facts->stamp.device, facts->stamp.inode).second)
    plugins_.push_back(assess(file, origin, *facts));
}

/// What a probe's outcome depends on beside the plugin.
std::string PluginCatalog::host_mark() const {
  std::string text = host().fingerprint + host_build_id_;
  for (const std::string& library : host().needed)
    text += "\n" + library;
  return hash_text(text);
}

void PluginCatalog::try_out(PluginCache& cache) {
  if (options_.probing == Probing::kNever)
    return;
  const std::string mark = host_mark();
  std::vector<PluginFile*> untried;
  std::vector<fs::path> files;
  for (PluginFile& plugin : plugins_) {
    if (plugin.verdict != Verdict::kUsable)
      continue;
    const FileFacts* facts = cache.facts(plugin.file);
    const bool tried = facts != nullptr && facts->probe && facts->probe->host == mark;
    if (tried && options_.probing == Probing::kChanged) {
      condemn(plugin, facts->probe->problem);
    } else {
      untried.push_back(&plugin);
      files.push_back(plugin.file);
    }
  }
  if (files.empty())
    return;
  std::vector<ProbeVerdict> verdicts;
  try {
    verdicts = PluginProbe(options_.probe).try_each(files);
  } catch (const PluginError& error) {
    warnings_.push_back("no plugin could be tried out before it is used: " +
                        std::string(error.what()));
    return;
  }
  std::vector<std::string> met;
  for (std::size_t i = 0; i < files.size(); ++i) {
    condemn(*untried[i], verdicts[i].problem);
    if (verdicts[i].problem.empty() && !verdicts[i].alone)
      met.push_back(untried[i]->build_id);
    // What another library can mend is tried again by the next command.
    if (!verdicts[i].may_pass && cache.facts(files[i]) != nullptr)
      cache.remember(files[i], {mark, verdicts[i].problem});
  }
  // Where one broke a helper, the others did not all meet.
  if (met.size() == files.size())
    cache.remember_meeting(mark, std::move(met));
}

void PluginCatalog::expect_loadable_together(std::span<const PluginFile* const> plugins) const {
  if (options_.probing == Probing::kNever || plugins.size() < 2)
    return;
  std::vector<std::string> builds;
  std::vector<fs::path> files;
  for (const PluginFile* plugin : plugins) {
    builds.push_back(plugin->build_id);
    files.push_back(plugin->file);
  }
  const std::string mark = host_mark();
  PluginCache cache(options_.cache_file);
  if (cache.have_met(mark, builds))
    return;
  const PluginProbe probe(options_.probe);
  std::size_t culprit = 0;
  std::string problem;
  try {
    problem = probe.try_together(files, culprit);
  } catch (const PluginError&) {
    return;  // scan() has warned that nothing can be tried out
  }
  if (problem.empty()) {
    cache.remember_meeting(mark, std::move(builds));
    cache.save();
    return;
  }
  // Which of the plugins loaded before it is it that the culprit cannot stand?
  for (std::size_t other = 0; other < culprit; ++other) {
    const fs::path pair[] = {files[other], files[culprit]};
    std::size_t unused = 0;
    if (std::string why = probe.try_together(pair, unused); !why.empty()) {
      throw PluginError("plugin " + plugins[culprit]->title() +
                        " cannot be used together with plugin " + plugins[other]->title() +
                        ": it " + why + "; use one of the two");
    }
  }
  throw PluginError("plugin " + plugins[culprit]->title() +
                    " cannot be used together with the others this run needs: it " + problem);
}

PluginFile PluginCatalog::assess(const fs::path& file, const std::string& origin,
                                 const FileFacts& facts) const {
  PluginFile plugin{file, origin, Verdict::kUsable, "", facts.manifest, facts.build_id};
  const auto decide = [&plugin](Verdict verdict, std::string reason) {
    plugin.verdict = verdict;
    plugin.reason = std::move(reason);
    return plugin;
  };
  if (!facts.problem.empty()) {
    return decide(facts.foreign ? Verdict::kIncompatible : Verdict::kInvalid, facts.problem);
  }
  if (plugin.manifest.id.empty()) {
    return decide(Verdict::kNotAPlugin, "is a shared library without a Treadle manifest");
  }
  if (options_.disabled.contains(plugin.manifest.id)) {
    return decide(Verdict::kDisabled, "is named in TREADLE_PLUGIN_DISABLE");
  }
  if (!options_.only.empty() && !options_.only.contains(plugin.manifest.id)) {
    return decide(Verdict::kDisabled, "is not named in TREADLE_PLUGIN_ALLOW");
  }
  if (!options_.allow_writable) {
    if (std::string sentence = writable_by_others(file); !sentence.empty()) {
      return decide(Verdict::kRefused, std::move(sentence));
    }
  }
  if (facts.fingerprint->empty()) {
    return decide(Verdict::kInvalid,
                  "has a manifest but does not say how it was built; build it again");
  }
  if (std::string sentence = explain_mismatch(*facts.fingerprint, facts.needed, host());
      !sentence.empty()) {
    return decide(Verdict::kIncompatible, std::move(sentence));
  }
  InterfaceTable known;
  for (const InterfaceName& declared : plugin.manifest.interfaces) {
    if (const InterfaceName* other = known.add(declared)) {
      return decide(Verdict::kIncompatible, explain_conflict(declared, *other) +
                                                " in this runner; give the interface another name");
    }
  }
  for (const ManifestComponent& component : plugin.manifest.components) {
    if (known.word(component.interface_id).empty()) {
      return decide(Verdict::kIncompatible, explain_interface(component));
    }
  }
  return plugin;
}

void PluginCatalog::shadow_duplicates() {
  std::map<std::string_view, const PluginFile*> first;
  for (PluginFile& plugin : plugins_) {
    if (plugin.verdict != Verdict::kUsable)
      continue;
    const auto [earlier, is_new] = first.emplace(plugin.manifest.id, &plugin);
    if (is_new)
      continue;
    plugin.verdict = Verdict::kShadowed;
    plugin.reason = "is hidden by " + earlier->second->title() +
                    ", which has the same id and comes first in the search path";
  }
}

/// Whoever names a file means it: to go on without it would do something else.
void PluginCatalog::expect_named_files() const {
  std::string problems;
  for (const PluginFile& plugin : plugins_) {
    if (plugin.origin == PluginFile::kNamed && plugin.verdict != Verdict::kUsable)
      problems += (problems.empty() ? "" : "\n") + ("--plugin " + plugin.file.string()) +
                  ": cannot be used: it " + plugin.reason;
  }
  if (!problems.empty())
    throw PluginError(problems);
}

void PluginCatalog::collect_interfaces() {
  std::map<std::string_view, const PluginFile*> declared_by;  // by id
  for (PluginFile& plugin : plugins_) {
    if (plugin.verdict != Verdict::kUsable)
      continue;
    InterfaceTable with_its_own = interfaces_;
    for (const InterfaceName& declared : plugin.manifest.interfaces) {
      const InterfaceName* other = with_its_own.add(declared);
      if (other == nullptr) {
        declared_by.emplace(declared.id, &plugin);
        continue;
      }
      plugin.verdict = Verdict::kIncompatible;
      plugin.reason = explain_conflict(declared, *other) + " of " +
                      declared_by.at(other->id)->title() +
                      "; build both with one version of the interface, or disable one of them";
      break;
    }
    if (plugin.verdict == Verdict::kUsable)
      interfaces_ = std::move(with_its_own);
  }
}

void PluginCatalog::index_components() {
  for (const PluginFile& plugin : plugins_) {
    if (plugin.verdict != Verdict::kUsable)
      continue;
    for (const ManifestComponent& component : plugin.manifest.components) {
      by_name_.emplace(
          std::pair(std::string(interfaces_.word(component.interface_id)), component.name),
          CatalogComponent{&plugin, &component});
    }
  }
}

std::vector<CatalogComponent> PluginCatalog::components(std::string_view word) const {
  std::vector<CatalogComponent> found;
  for (const auto& [key, component] : by_name_) {
    if (word.empty() || key.first == word)
      found.push_back(component);
  }
  const auto order = [](const CatalogComponent& a, const CatalogComponent& b) {
    return std::tie(a.component->interface_id, a.component->name, a.plugin->manifest.id) <
           std::tie(b.component->interface_id, b.component->name, b.plugin->manifest.id);
  };
  std::sort(found.begin(), found.end(), order);
  return found;
}

const PluginFile* PluginCatalog::plugin(std::string_view id) const {
  for (const PluginFile& plugin : plugins_) {
    if (plugin.verdict == Verdict::kUsable && plugin.manifest.id == id)
      return &plugin;
  }
  return nullptr;
}

Lookup PluginCatalog::find(std::string_view word, std::string_view name) const {
  const std::size_t slash = name.rfind('/');
  const std::string_view id = slash == std::string_view::npos ? "" : name.substr(0, slash);
  const std::string_view plain = slash == std::string_view::npos ? name : name.substr(slash + 1);
  const auto [begin, end] = by_name_.equal_range({std::string(word), std::string(plain)});
  std::vector<CatalogComponent> candidates;
  for (auto entry = begin; entry != end; ++entry) {
    if (id.empty() || entry->second.plugin->manifest.id == id)
      candidates.push_back(entry->second);
  }
  if (candidates.size() == 1)
    return {candidates.front(), ""};
  if (candidates.empty()) {
    return slash == std::string_view::npos ? why_unknown(word, name)
                                           : why_unknown_qualified(word, id, plain);
  }
  std::vector<std::string> titles;
  std::vector<std::string> names;
  for (const CatalogComponent& candidate : candidates) {
    titles.push_back(candidate.plugin->title());
    names.push_back(quote_text(candidate.qualified_name()));
  }
  std::string list;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    if (i > 0)
      list += i + 1 == titles.size() ? " and by " : ", by ";
    list += titles[i];
  }
  return not_found("the " + std::string(word) + " " + quote_text(plain) + " is offered by " + list +
                   "; write " + alternatives(names));
}

std::string PluginCatalog::places() const {
  std::string text;
  for (const SearchFolder& folder : options_.folders) {
    std::error_code error;
    if (!text.empty())
      text += ", ";
    text += folder.folder.string();
    if (!fs::is_directory(folder.folder, error))
      text += " (not there)";
  }
  return text.empty() ? "looked in no folder" : "looked in " + text;
}

/// Components that say that others know them by this name.
std::vector<std::string> PluginCatalog::known_elsewhere(std::string_view word,
                                                        std::string_view name) const {
  std::vector<std::string> names;
  for (const CatalogComponent& candidate : components(word)) {
    try {
      const nlohmann::json also =
          schema(candidate).value("x-treadle-also", nlohmann::json::array());
      if (std::find(also.begin(), also.end(), name) != also.end())
        names.push_back(quote_text(candidate.component->name));
    } catch (const PluginError&) {
      // One whose file is damaged has no names; who asks for it is told what is wrong.
    }
  }
  return names;
}

Lookup PluginCatalog::why_unknown(std::string_view word, std::string_view name) const {
  if (interfaces_.id(word).empty())
    return not_found(interfaces_.explain_unknown(word));
  std::set<std::string> names;
  std::string elsewhere;
  bool plugin_at_fault = false;
  for (const auto& [key, component] : by_name_) {
    if (key.first == word)
      names.insert(key.second);
    if (key.second == name && key.first != word) {
      elsewhere += "; " + quote_text(name) + " is " + with_article(key.first) + " of " +
                   component.plugin->manifest.id + ", not " + with_article(word);
    }
  }
  for (const PluginFile& plugin : plugins_) {
    if (plugin.verdict == Verdict::kUsable || plugin.verdict == Verdict::kShadowed)
      continue;
    for (const ManifestComponent& component : plugin.manifest.components) {
      if (component.name != name ||
          plugin.manifest.interface_table().word(component.interface_id) != word)
        continue;
      elsewhere += "; " + plugin.title() + " offers it but cannot be used: it " + plugin.reason;
      plugin_at_fault = true;
    }
  }
  const std::string first = "no plugin offers the " + std::string(word) + " " + quote_text(name);
  if (const auto known = known_elsewhere(word, name); !known.empty() && !plugin_at_fault)
    return not_found(first + "; it is " + alternatives(known) + " here");
  if (!elsewhere.empty())
    return not_found(first + elsewhere, plugin_at_fault);
  const std::vector<std::string> known(names.begin(), names.end());
  const std::string unreadable = unreadable_files();
  if (std::string suggestion = did_you_mean(name, known); !suggestion.empty()) {
    return not_found(first + suggestion + unreadable);
  }
  if (known.empty()) {
    return not_found(
        "no plugin offers any " + std::string(word) + " (" + places() + ")" + unreadable,
        !unreadable.empty());
  }
  return not_found(
      first + " (there are" + known_names(word, known) + "; " + places() + ")" + unreadable,
      !unreadable.empty());
}

/// Damaged files of which nobody knows what they offered: one of them may be the one that is
/// missed.
std::string PluginCatalog::unreadable_files() const {
  constexpr std::size_t kMostShown = 3;
  std::vector<const PluginFile*> damaged;
  for (const PluginFile& plugin : plugins_) {
    if (plugin.verdict == Verdict::kInvalid && plugin.manifest.id.empty())
      damaged.push_back(&plugin);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(damaged.size(), kMostShown); ++i)
    text += "; " + damaged[i]->file.string() + " cannot be used: it " + damaged[i]->reason;
  if (damaged.size() > kMostShown)
    text += "; and " + std::to_string(damaged.size() - kMostShown) + " more such files";
  return text;
}

std::string PluginCatalog::why_missing(std::string_view id) const {
  if (plugin(id) != nullptr)
    return {};
  std::string text;
  for (const PluginFile& other : plugins_) {
    if (other.manifest.id == id)
      text += "; " + other.file.string() + " cannot be used: it " + other.reason;
  }
  return "is not there (" + places() + ")" + (text.empty() ? unreadable_files() : text);
}

Lookup PluginCatalog::why_unknown_qualified(std::string_view word, std::string_view id,
                                            std::string_view name) const {
  const PluginFile* plugin = this->plugin(id);
  if (plugin == nullptr) {
    std::vector<std::string> ids;
    for (const PluginFile& other : plugins_) {
      if (other.manifest.id == id) {
        return not_found("the plugin " + other.title() + " cannot be used: it " + other.reason,
                         true);
      }
      if (other.verdict == Verdict::kUsable)
        ids.push_back(other.manifest.id);
    }
    return not_found("there is no plugin " + quote_text(id) + did_you_mean(id, ids) + " (" +
                     places() + ")");
  }
  std::vector<std::string> names;
  for (const ManifestComponent& component : plugin->manifest.components) {
    if (interfaces_.word(component.interface_id) == word)
      names.push_back(component.name);
  }
  return not_found("the plugin " + plugin->manifest.title() + " offers no " + std::string(word) +
                   " " + quote_text(name) + did_you_mean(name, names) +
                   (names.empty() ? "" : " (it offers" + known_names(word, names) + ")"));
}

const nlohmann::json& PluginCatalog::schema(const CatalogComponent& component) const {
  const std::lock_guard lock(mutex_);
  const nlohmann::json*& schema = schemas_[component.component];
  if (schema == nullptr) {
    try {
      std::unique_ptr<const ManifestSchemas>& all = manifests_[component.plugin];
      if (!all) {
        all = std::make_unique<const ManifestSchemas>(
            read_library_notes(component.plugin->file).manifest);
      }
      schema = &all->sound(*component.component);
    } catch (const PluginError& error) {
      throw PluginError(component.plugin->title() + " " + error.what());
    }
  }
  return *schema;
}

}  // namespace treadle
