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
using internal::JobResult;
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

/// The ends of a trial's jobs.
std::vector<JobResult> ends_of(const StudyJournal& journal, std::int64_t trial) {
  std::vector<JobResult> ends;
  while (const auto end = journal.find_end(trial, ends.size(), /*inherited=*/{}))
    ends.push_back(*end);
  return ends;
}

/// The trials of a search that resumes, and the ends of their jobs.
Json content_of(const StudyJournal& journal) {
  Json trials = Json::array();
  for (const Point& point : journal.points()) {
    Json ends = Json::array();
    for (const JobResult& end : ends_of(journal, static_cast<std::int64_t>(trials.size())))
      ends.push_back(to_json(end).dump());  // NaN is null there
    trials.push_back({journaled_space().to_json(point), ends});
  }
  return trials;
}

void promise_trials(const StudyJournal& journal) {
  const std::vector<Point> points = journal.points();
  for (std::size_t trial = 0; trial < points.size(); ++trial) {
    promise(journaled_space().contains(points[trial]), "a trial has values of the space");
    for (const JobResult& end : ends_of(journal, static_cast<std::int64_t>(trial))) {
      std::int64_t last = -1;
      for (const IntermediateValue& value : end.intermediate) {
        promise(value.step > last, "epochs of a trial ascend");
        last = value.step;
      }
      promise(end.state != TrialState::kComplete || end.values.size() == 2,
              "a complete trial has a value for each objective");
      promise(end.state != TrialState::kRunning, "a job that has ended does not run");
    }
  }
}

/// Two more trials of a search that resumes: one that pauses, and one that completes.
void resume(StudyJournal& journal) {
  const auto trial = static_cast<std::int64_t>(journal.points().size());
  const std::vector<double> positions(journaled_space().size(), 0.75);
  for (const bool is_paused : {true, false}) {
    const std::int64_t number = trial + (is_paused ? 0 : 1);
    journal.started(number, journaled_space().from_unit(positions));
    journal.reported(number, {1, 0.5});
    journal.job_ended(number,
                      {.trial = number,
                       .state = is_paused ? TrialState::kPaused : TrialState::kComplete,
                       .epoch = 2,
                       .values = is_paused ? std::vector<double>() : std::vector<double>{0.5, 2},
                       .intermediate = {{1, 0.5}, {2, NAN}},
                       .seconds = 1},
                      /*elapsed=*/1);
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
    promise_trials(journal);
    content = content_of(journal);
    ended = journal.ended();
    resume(journal);
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
