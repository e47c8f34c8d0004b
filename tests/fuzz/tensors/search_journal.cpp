#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/base/error.h>

#include "scratch.h"
#include "search/journal/study_journal.h"
#include "targets.h"

namespace treadle::fuzz {
namespace {

using Json = nlohmann::json;
using internal::JournaledTrial;
using internal::StudyJournal;

const SearchSpace& journaled_space() {
  static const SearchSpace space({choice("model", {"linear", Json{{"use", "deep"}}}),
                                  when(integers("model.layers", 1, 8), "model", {1}),
                                  uniform("dropout", 0, 0.9, 0.1), log_uniform("rate", 1e-4, 1)});
  return space;
}

StudyJournal journal_at(const std::filesystem::path& path) {
  return {path, "study", journaled_space(), {false, true}, {{"seed", 1}}};
}

Json number_of(double value) {
  return std::isfinite(value) ? Json(value) : Json(std::to_string(value));
}

Json numbers_of(const std::vector<double>& values) {
  Json all = Json::array();
  for (const double value : values)
    all.push_back(number_of(value));
  return all;
}

Json json_of(const JournaledTrial& trial) {
  Json jobs = Json::array();
  for (const JournaledTrial::Job& job : trial.jobs)
    jobs.push_back({job.is_paused, job.epoch, number_of(job.seconds), job.number});
  Json intermediate = Json::array();
  for (const IntermediateValue& value : trial.intermediate)
    intermediate.push_back({value.step, number_of(value.value)});
  return {trial.params,
          intermediate,
          jobs,
          static_cast<int>(trial.state),
          numbers_of(trial.values),
          numbers_of(trial.constraints),
          trial.error};
}

/// What a search that goes on knows of its trials.
Json content_of(const StudyJournal& journal) {
  Json trials = Json::array();
  for (const JournaledTrial& trial : journal.earlier())
    trials.push_back(json_of(trial));
  return trials;
}

void promise_trial(const JournaledTrial& trial) {
  std::int64_t last = -1;
  for (const IntermediateValue& value : trial.intermediate) {
    promise(value.step > last, "epochs of a trial ascend");
    last = value.step;
  }
  promise(trial.state != TrialState::kComplete || trial.values.size() == 2,
          "a complete trial has a value for each objective");
  promise(journaled_space().contains(journaled_space().from_json(trial.params)),
          "a trial has values of the space");
}

/// Two trials of a search that goes on: one that pauses, and one that ends.
void go_on(StudyJournal& journal, const SearchSpace& space) {
  const auto trial = static_cast<std::int64_t>(journal.earlier().size());
  const std::vector<double> positions(space.size(), 0.75);
  for (const bool is_paused : {true, false}) {
    const std::int64_t number = trial + (is_paused ? 0 : 1);
    journal.started(number, space, space.from_unit(positions));
    journal.reported(number, {1, 0.5});
    journal.reported(number, {2, NAN});
    journal.job_ended({.job = journal.earlier_jobs(),
                       .trial = number,
                       .state = is_paused ? TrialState::kPaused : TrialState::kComplete,
                       .epoch = 2,
                       .values = is_paused ? std::vector<double>() : std::vector<double>{0.5, 2},
                       .seconds = 1,
                       .elapsed = 1});
  }
}

}  // namespace

void search_journal(std::string_view bytes) {
  static const Scratch scratch;
  const std::filesystem::path path = scratch.folder() / "search.journal";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  Json content;
  Json ended;
  try {
    StudyJournal journal = journal_at(path);
    for (const JournaledTrial& trial : journal.earlier())
      promise_trial(trial);
    content = content_of(journal);
    ended = journal.ended();
    go_on(journal, journaled_space());
  } catch (const StorageError& error) {
    return promise_readable(error.what(), 2000 + 6 * bytes.size());
  }
  const StudyJournal again = journal_at(path);
  Json now = content_of(again);
  promise(now.size() == content.size() + 2, "what was written is there");
  now.erase(now.end() - 2, now.end());
  promise(now == content && again.ended() == ended, "what was there before is there still");
}

}  // namespace treadle::fuzz
