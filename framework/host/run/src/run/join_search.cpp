#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <treadle/base/atomic_file.h>
#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/host/run/run_folder.h>
#include <treadle/host/run/workflow_run.h>
#include <treadle/search/study_storage.h>

#include "run/run_session.h"
#include "search/journal/study_description.h"

namespace treadle {
namespace {

namespace fs = std::filesystem;

/// "sqlite:study.db" as a slot of a document. The address of a server is the location as a
/// whole.
nlohmann::json storage_slot(const std::string& storage) {
  const std::size_t colon = storage.find(':');
  if (colon == std::string::npos || colon == 0) {
    throw UsageError(
        "--join: expected a kind of storage and its place, such as "
        "sqlite:study.db or postgresql://host/database, got " +
        quote_text(storage));
  }
  const bool is_address = storage.compare(colon, 3, "://") == 0;
  return {{"use", storage.substr(0, colon)},
          {"location", is_address ? storage : storage.substr(colon + 1)}};
}

/// Throws a UsageError where the storage would be made at a place that has none: whoever joins has
/// another place in mind.
void expect_there(const Runtime& runtime, const nlohmann::json& slot) {
  const FoundComponent found = runtime.schemas().find("storage", slot.at("use").get<std::string>());
  const nlohmann::json::json_pointer type("/properties/location/x-treadle-type");
  const bool is_file =
      found.schema != nullptr && found.schema->contains(type) && found.schema->at(type) == "path";
  const fs::path place = slot.at("location").get<std::string>();
  std::error_code error;
  if (is_file && fs::status(place, error).type() == fs::file_type::not_found) {
    throw UsageError("--join: no such file: " + place.string() +
                     "; give the storage of a study that has begun, or begin one with a document "
                     "whose search has this storage: workflow-runner tune DOCUMENT");
  }
}

/// The one there is, where none is named.
std::string study_in(StudyStorage& storage, const std::string& name) {
  const std::vector<std::string> studies = storage.studies();
  if (name.empty() && studies.size() == 1)
    return studies.front();
  std::string listed;
  for (const std::string& study : studies) {
    if (study == name)
      return name;
    listed += (listed.empty() ? "" : ", ") + plain_text(study);
  }
  if (studies.empty())
    throw UsageError(
        "the storage has no study yet; begin one with a document whose search has this "
        "storage: workflow-runner tune DOCUMENT");
  throw UsageError((name.empty() ? "the storage has several studies"
                                 : "the storage has no study " + quote_text(name)) +
                   "; choose one with --study: " + listed);
}

/// The folder of a process that joins; gone with it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "treadle-join-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw StorageError(pattern + ": cannot be made; set TMPDIR to a folder that can be written");
    }
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Whether the folder that the search was begun in is here, too, and no other run's of this name.
bool is_reachable(const fs::path& run, const std::string& token) {
  std::string found;
  std::ifstream(RunFolder::study_token_of(run)) >> found;
  return !found.empty() && token == found;
}

}  // namespace

JoinedSearch join_search(const Runtime& runtime, const std::string& where, const std::string& name,
                         const RunOptions& options) {
  const nlohmann::json slot = storage_slot(where);
  expect_there(runtime, slot);
  const std::shared_ptr<StudyStorage> storage = runtime.registry().make<StudyStorage>(
      slot.at("use").get<std::string>(), Config(nlohmann::json{{"location", slot.at("location")}}));
  const std::string study = study_in(*storage, name);
  const internal::StudyDescription description =
      internal::read_study_description(storage->description(study).value(), study);
  nlohmann::json document = description.document;
  document["search"]["storage"] = slot;
  document["search"]["study"] = study;
  const TemporaryFolder temporary;
  RunOptions joined = options;
  joined.output = temporary.path();
  joined.joins = true;
  const ResolvedWorkflow workflow = runtime.resolve(document);
  RunFolder folder = RunFolder::create(joined.output, workflow.name);
  const fs::path shared = description.folder;
  if (is_reachable(shared, description.token))
    folder.share_trials_of(shared);
  write_file_atomically(folder.document(), write_workflow(workflow.resolved));
  internal::RunSession session(runtime, workflow, joined, std::move(folder), /*resumed=*/false);
  return {study, session.join()};
}

}  // namespace treadle
