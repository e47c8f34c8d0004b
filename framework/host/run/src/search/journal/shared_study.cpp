#include "search/journal/shared_study.h"

#include <filesystem>
#include <random>
#include <utility>
#include <vector>

#include <unistd.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/base/system/host_name.h>

#include "context/run_parts.h"
#include "runtime/run_record.h"
#include "search/journal/study_identity.h"
#include "search/settings/search_settings.h"
#include "search/study/study_end.h"

namespace treadle::internal {
namespace {

std::string name_of_worker() {
  std::random_device random;  // process ids come again
  return host_name() + "-" + std::to_string(getpid()) + "-" + std::to_string(random());
}

}  // namespace

SharedStudy::SharedStudy(std::shared_ptr<StudyStorage> storage, std::string study, double lease)
    : storage_(std::move(storage)),
      study_(std::move(study)),
      worker_(name_of_worker()),
      lease_(lease) {}

StudyDescription SharedStudy::open(const StudyDescription& description) {
  StudyDescription found =
      read_study_description(storage_->create(study_, to_json(description)), study_);
  if (found.identity != description.identity) {
    throw StorageError("the storage has another study called " + quote_text(study_) +
                       ", with another document, space, objective, tuner or seed; choose another "
                       "name: --set search.study=NAME");
  }
  return found;
}

nlohmann::json SharedStudy::known(nlohmann::json ended) const {
  if (!is_early_end(ended)) {
    throw StorageError("the study " + quote_text(study_) +
                       " of the storage was ended in a way that this version does not know; use "
                       "the Treadle that ended it");
  }
  return ended;
}

bool SharedStudy::is_own(std::int64_t job, bool expected) const {
  const auto found = owned_.find(job);
  return found != owned_.end() && found->second == expected;
}

bool SharedStudy::claim(std::int64_t job) {
  if (!is_own(job))
    owned_[job] = storage_->claim(study_, job, worker_, lease_);
  return is_own(job);
}

void SharedStudy::renew(std::int64_t job) {
  if (is_own(job) && !storage_->renew(study_, job, worker_, lease_))
    leave(job);
}

void SharedStudy::release() {
  for (const auto& [job, is_own] : owned_) {
    if (is_own)
      storage_->release(study_, job, worker_);
  }
}

bool SharedStudy::finish(std::int64_t job, const nlohmann::json& result) {
  if (!claim(job) || !storage_->finish(study_, job, worker_, result)) {
    leave(job);
    return false;
  }
  owned_.erase(job);
  ++finished_;
  return true;
}

void SharedStudy::fetch() {
  for (StoredResult& result : storage_->results(study_, sequence_)) {
    sequence_ = result.sequence;
    results_.emplace(result.job, std::move(result.result));
  }
}

const nlohmann::json* SharedStudy::result(std::int64_t job) const {
  const auto found = results_.find(job);
  return found == results_.end() ? nullptr : &found->second;
}

SharedStudy open_shared_study(RunParts& run, const SearchSettings& settings) {
  const bool joins = run.options.joins;
  SharedStudy study(settings.storage, settings.study, settings.lease);
  if (!joins)
    run.folder.share_trials_of(run.folder.path());
  const nlohmann::json environment = run.conditions().environment();
  const StudyDescription found = study.open(
      {.identity = {{"search", identity_of(run.workflow())},
                    {"document",
                     document_identity(run.runtime.registry(), run.workflow().resolved)}},
       .document = run.workflow().resolved,
       .folder = std::filesystem::absolute(run.folder.path()).lexically_normal().string(),
       .token = joins ? std::string() : study_token(run.folder.path()),
       .environment = environment});
  if (joins && settings.pruner_copies && !run.folder.has_shared_trials())
    fail_without_folder(settings, found.folder);
  const std::vector<std::string> others = differences(found.environment, environment);
  if (!others.empty() && !run.options.allow_differences) {
    std::string text;
    for (const std::string& difference : others)
      text += (text.empty() ? "" : "; ") + difference;
    throw StorageError("the study " + settings.study +
                       " was begun under other conditions: " + text +
                       "; trials of this process would differ from those of the others. "
                       "Pass --allow-differences to search with them all the same");
  }
  study.fetch();
  return study;
}

void fail_without_folder(const SearchSettings& settings, const std::string& folder) {
  throw StorageError("the study " + settings.study +
                     " has trials that begin with the checkpoints of "
                     "others, as " +
                     quote_text(settings.pruner_name) + " makes them. They are in " +
                     plain_text(folder) +
                     ", which this process cannot reach; join on a machine that has this "
                     "folder under the same path, or search with another pruner");
}

}  // namespace treadle::internal
