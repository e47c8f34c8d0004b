#include "search/journal/study_identity.h"

#include <fstream>
#include <random>

#include <treadle/base/atomic_file.h>
#include <treadle/host/run/run_folder.h>

namespace treadle::internal {

nlohmann::json identity_of(const ResolvedWorkflow& workflow) {
  nlohmann::json identity = workflow.resolved.at("search");
  for (const char* free :
       {"trials", "patience", "budget", "keep", "storage", "study", "lease", "ensemble"})
    identity.erase(free);
  identity["seed"] = workflow.seed;
  return identity;
}

std::string study_token(const std::filesystem::path& folder) {
  const std::filesystem::path path = RunFolder::study_token_of(folder);
  std::string token;
  if (std::ifstream(path) >> token)
    return token;
  std::random_device random;
  token = std::to_string(random()) + std::to_string(random());
  write_file_atomically(path, token + "\n");
  return token;
}

}  // namespace treadle::internal
