#include "plugins/plugin_doctor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/base/version.h>

namespace treadle::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Collects what the parts of the examination find.
class Examination {
 public:
  void good(std::string subject, std::string text) {
    diagnoses_.push_back({Health::kGood, std::move(subject), std::move(text), ""});
  }
  void doubtful(std::string subject, std::string text, std::string remedy) {
    diagnoses_.push_back(
        {Health::kDoubtful, std::move(subject), std::move(text), std::move(remedy)});
  }
  void bad(std::string subject, std::string text, std::string remedy) {
    diagnoses_.push_back({Health::kBad, std::move(subject), std::move(text), std::move(remedy)});
  }
  std::vector<Diagnosis> take() { return std::move(diagnoses_); }

 private:
  std::vector<Diagnosis> diagnoses_;
};

void examine_blas(Examination& findings, const std::string& blas) {
  if (blas == "reference") {
    findings.bad("BLAS", "the reference BLAS is in use: training is 10 to 20 times slower",
                 "install libopenblas0-pthread");
  } else if (blas == "unknown") {
    findings.doubtful("BLAS", "which BLAS is in use could not be found out",
                      "compare the speed of a run with one on another machine");
  } else {
    findings.good("BLAS", blas);
  }
}

void examine_libtorch(Examination& findings, const PluginProbe& probe) {
  try {
    const Json host = probe.ask_about_host();
    findings.good("libtorch", host.value("libtorch", "?") + ", kernels for " +
                                  host.value("cpu_capability", "?"));
    examine_blas(findings, host.value("blas", "unknown"));
    const int cores = host.value("cores", 0);
    findings.good("cores", std::to_string(cores) + " to work with");
  } catch (const PluginError& error) {
    findings.bad("libtorch", error.what(),
                 "install libtorch in the version Treadle was built with, or Treadle again");
  }
}

void examine_threads(Examination& findings, const EnvironmentReader& environment) {
  for (const char* variable : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    const char* value = environment(variable);
    if (value != nullptr && std::atoi(value) > 1) {
      findings.doubtful(variable,
                        "is " + std::string(value) +
                            ": every worker gets as many threads, which makes small steps slower",
                        "unset it, or set it to 1; resources.workers sets the number of workers");
    }
  }
}

void examine_folder(Examination& findings, const SearchFolder& place) {
  const std::string where = place.folder.string() + " (" + place.origin + ")";
  std::error_code error;
  if (!fs::is_directory(place.folder, error)) {
    const bool named = place.origin != "user";
    if (named) {
      findings.doubtful("plugin folder", where + " is not there",
                        "make it, or take it out of " + place.origin);
    } else {
      findings.good("plugin folder", where + " is not there yet; plugins may be put there");
    }
    return;
  }
  if (::access(place.folder.c_str(), R_OK | X_OK) != 0) {
    findings.bad("plugin folder", where + " cannot be read",
                 "run `chmod u+rx " + place.folder.string() + "` as its owner");
    return;
  }
  const std::string writable = writable_by_others(place.folder / "any.so");
  if (!writable.empty()) {
    findings.bad("plugin folder", where + " can be written by everyone; nothing in it is used",
                 "run `chmod o-w " + place.folder.string() + "`");
    return;
  }
  const std::size_t count = plugin_files(place.folder).size();
  findings.good("plugin folder",
                where + ": " + std::to_string(count) + (count == 1 ? " library" : " libraries"));
}

void examine_cache(Examination& findings, const fs::path& file) {
  if (file.empty()) {
    findings.doubtful("cache", "is off: every command reads and tries every plugin again",
                      "unset TREADLE_PLUGIN_CACHE, and set HOME");
    return;
  }
  std::error_code error;
  const fs::path folder = file.parent_path();
  const bool writable = fs::exists(file, error) ? ::access(file.c_str(), W_OK) == 0 &&
                                                      ::access(folder.c_str(), W_OK) == 0
                                                : false;
  const fs::perms permissions = fs::status(file, error).permissions();
  if (!writable) {
    findings.doubtful("cache", file.string() + " cannot be written: commands start more slowly",
                      "make " + folder.string() + " a folder that you may write to");
  } else if ((permissions & fs::perms::others_write) != fs::perms::none) {
    findings.bad("cache", file.string() + " can be written by everyone and is not used",
                 "run `chmod o-w " + file.string() + "`");
  } else {
    findings.good("cache", file.string());
  }
}

void examine_plugins(Examination& findings, const PluginCatalog& catalog) {
  for (const std::string& warning : catalog.warnings())
    findings.bad("helper", warning, "install Treadle again");
  std::size_t usable = 0;
  for (const PluginFile& plugin : catalog.plugins()) {
    const bool is_hidden =
        plugin.verdict == Verdict::kShadowed || plugin.verdict == Verdict::kDisabled;
    if (plugin.verdict == Verdict::kUsable) {
      ++usable;
    } else if (is_hidden) {
      findings.doubtful("plugin", plugin.title() + " " + plugin.reason,
                        "see `workflow-runner plugins why " + plugin.manifest.id + "`");
    } else if (plugin.verdict != Verdict::kNotAPlugin || plugin.origin == PluginFile::kNamed) {
      findings.bad("plugin", plugin.title() + " " + plugin.reason,
                   "repair or remove it: " + plugin.file.string());
    }
  }
  findings.good("plugins", std::to_string(usable) + " usable");
}

void examine_names(Examination& findings, const PluginCatalog& catalog) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> offers;
  for (const CatalogComponent& component : catalog.components()) {
    offers[{std::string(catalog.interfaces().word(component.component->interface_id)),
            component.component->name}]
        .push_back(component.qualified_name());
  }
  for (const auto& [name, who] : offers) {
    if (who.size() < 2)
      continue;
    std::string list;
    for (const std::string& one : who)
      list += (list.empty() ? "" : ", ") + one;
    findings.doubtful("name", "the " + name.first + " " + name.second + " is offered as " + list,
                      "write the whole name in documents, or remove one of the plugins");
  }
}

std::string_view word(Health health) {
  static constexpr std::string_view kWords[] = {"good", "doubtful", "bad"};
  return kWords[static_cast<std::size_t>(health)];
}

}  // namespace

std::vector<Diagnosis> examine(const PluginCatalog& catalog, const PluginProbe& probe,
                               const EnvironmentReader& environment) {
  Examination findings;
  findings.good("Treadle", std::string(version()) + " in " + library_folder().string());
  examine_libtorch(findings, probe);
  examine_threads(findings, environment);
  for (const SearchFolder& place : catalog.folders())
    examine_folder(findings, place);
  examine_cache(findings, catalog.cache_file());
  examine_plugins(findings, catalog);
  examine_names(findings, catalog);
  return findings.take();
}

bool all_is_well(const std::vector<Diagnosis>& diagnoses) {
  return std::none_of(diagnoses.begin(), diagnoses.end(),
                      [](const Diagnosis& diagnosis) { return diagnosis.health == Health::kBad; });
}

std::string diagnoses_text(const std::vector<Diagnosis>& diagnoses, const Terminal& terminal) {
  std::size_t width = 0;
  for (const Diagnosis& diagnosis : diagnoses)
    width = std::max(width, columns_of(diagnosis.subject));
  std::string text;
  for (const Diagnosis& diagnosis : diagnoses) {
    const std::string mark = left_aligned(word(diagnosis.health), 9);
    text += (diagnosis.health == Health::kBad    ? terminal.red(mark)
             : diagnosis.health == Health::kGood ? terminal.green(mark)
                                                 : terminal.bold(mark)) +
            left_aligned(diagnosis.subject, width) + "  " + diagnosis.text + "\n";
    if (!diagnosis.remedy.empty())
      text += std::string(9 + width + 2, ' ') + "-> " + diagnosis.remedy + "\n";
  }
  return text;
}

Json diagnoses_json(const std::vector<Diagnosis>& diagnoses) {
  Json list = Json::array();
  for (const Diagnosis& diagnosis : diagnoses) {
    list.push_back({{"health", word(diagnosis.health)},
                    {"subject", diagnosis.subject},
                    {"text", diagnosis.text},
                    {"remedy", diagnosis.remedy}});
  }
  return {{"well", all_is_well(diagnoses)}, {"findings", std::move(list)}};
}

}  // namespace treadle::cli
