#include "saved_model.h"

#include <string>

#include <treadle/base/error.h>
#include <treadle/base/hash.h>
#include <treadle/base/problem.h>
#include <treadle/host/catalog/plugin_lock.h>
#include <treadle/host/run/state_folder.h>

namespace treadle::internal {

void expect_plugins_of_run(const PluginCatalog& catalog, const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "plugins.lock";
  if (!std::filesystem::exists(file))
    return;
  PluginLock lock;
  try {
    lock = PluginLock::read(file);
  } catch (const DocumentError&) {
    return;  // damaged: the names in the document have to do
  }
  lock.expect_present(catalog);
}

StateDict read_preprocessing(const std::filesystem::path& folder) {
  constexpr const char* kRemedy =
      "; restore preprocessing/ and model.safetensors from a copy of the run, or train it again: "
      "workflow-runner run ";
  const std::string remedy = kRemedy + (folder / "workflow.json").string();
  try {
    StateDict saved = read_state_folder(folder / "preprocessing");
    const std::filesystem::path weights = folder / "model.safetensors";
    if (hash_file(weights) != saved.value(kModelChecksum)) {
      throw StorageError(weights.string() +
                         ": is damaged, or belongs to another run: its checksum does not match");
    }
    return saved;
  } catch (const StorageError& error) {
    throw StorageError(error.what() + remedy);
  }
}

}  // namespace treadle::internal
