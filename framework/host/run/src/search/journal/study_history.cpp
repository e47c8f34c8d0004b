#include "search/journal/study_history.h"

#include <string>
#include <utility>

namespace treadle::internal {

StudyHistory::StudyHistory(StudyJournal& journal, SharedStudy* shared, const SearchTime& time,
                           ExpectedResult expected)
    : journal_(journal), shared_(shared), time_(time), expected_(std::move(expected)) {}

std::optional<StudyHistory::KnownEnd> StudyHistory::find_end(const StudyTrial& trial) {
  if (auto end = journal_.find_end(trial.now.number, trial.jobs, trial.inherited))
    return KnownEnd{*std::move(end), /*is_new=*/false};
  const nlohmann::json* stored = shared_ != nullptr ? shared_->result(trial.job) : nullptr;
  if (stored == nullptr)
    return std::nullopt;
  ExpectedResult expected = expected_;
  expected.place = "job " + std::to_string(trial.job) + " of the study " + shared_->name();
  expected.trial = trial.now.number;
  KnownEnd end{read_job_result(*stored, expected), /*is_new=*/true};
  end_untrained(trial.job, end.result);
  return end;
}

bool StudyHistory::end(std::int64_t job, const JobResult& result) {
  if (shared_ != nullptr && !shared_->finish(job, to_json(result)))
    return false;
  end_untrained(job, result);
  return true;
}

void StudyHistory::end_untrained(std::int64_t job, const JobResult& result) {
  journal_.job_ended(job, result, time_.elapsed());
}

void StudyHistory::end_early(const nlohmann::json& how) {
  if (journal_.ended().is_null())
    journal_.search_ended(shared_ != nullptr ? shared_->end(how) : how);
}

const nlohmann::json& StudyHistory::find_early_end() {
  if (shared_ == nullptr || !journal_.ended().is_null())
    return journal_.ended();
  if (const nlohmann::json ended = shared_->ended(); !ended.is_null())
    journal_.search_ended(ended);
  return journal_.ended();
}

}  // namespace treadle::internal
