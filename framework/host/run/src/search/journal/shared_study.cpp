#include "search/journal/shared_study.h"

#include <random>
#include <utility>

#include <unistd.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "search/study/early_end.h"

namespace treadle::internal {
namespace {

std::string name_of_worker() {
  char host[65] = {};
  gethostname(host, sizeof host - 1);
  std::random_device random;  // process ids come again
  return std::string(host) + "-" + std::to_string(getpid()) + "-" + std::to_string(random());
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

}  // namespace treadle::internal
