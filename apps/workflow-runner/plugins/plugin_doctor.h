#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/host/catalog/plugin_catalog.h>
#include <treadle/host/catalog/plugin_probe.h>

#include "terminal/terminal.h"

/// What `plugins doctor` finds out about an installation and its surroundings.
namespace treadle::cli {

enum class Health { kGood, kDoubtful, kBad };

struct Diagnosis {
  Health health = Health::kGood;
  std::string subject;  ///< "BLAS", "plugin folder"
  std::string text;     ///< what is the case
  std::string remedy;   ///< what to do; empty when all is well
};

/// Looks at libtorch, BLAS, threads, search path, cache, permissions, and every plugin that cannot
/// be used. Starts treadle-probe: this program has no libtorch.
std::vector<Diagnosis> examine(const PluginCatalog& catalog, const PluginProbe& probe,
                               const EnvironmentReader& environment = read_environment);

/// Whether nothing is bad.
bool all_is_well(const std::vector<Diagnosis>& diagnoses);

std::string diagnoses_text(const std::vector<Diagnosis>& diagnoses, const Terminal& terminal);
nlohmann::json diagnoses_json(const std::vector<Diagnosis>& diagnoses);

}  // namespace treadle::cli
