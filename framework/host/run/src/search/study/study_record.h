#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include <treadle/core/history/run_observer.h>

#include "search/settings/search_settings.h"
#include "search/study/objectives.h"
#include "search/study/study_trial.h"

namespace treadle::internal {

/// The trials of a study for observers, for other processes, and for result.json. Values
/// are in the direction of the document there. Borrows both.
class StudyRecord {
 public:
  StudyRecord(const SearchSettings& settings, const Objectives& objectives)
      : settings_(settings), objectives_(objectives) {}

  std::vector<double> in_document(const std::vector<double>& values) const;
  TrialSummary summary(const StudyTrial& trial) const;
  /// `seconds`: that the search has taken.
  SearchProgress progress(const std::vector<StudyTrial>& trials, double seconds) const;
  /// Of a search that has ended: `shown` are the trials as decisions see them.
  SearchResult of_search(const std::vector<Trial>& shown, const std::vector<StudyTrial>& trials,
                         std::int64_t best, const nlohmann::json& ended) const;

 private:
  SearchResult::Trial of_trial(const Trial& shown, const StudyTrial& trial) const;

  const SearchSettings& settings_;
  const Objectives& objectives_;
};

}  // namespace treadle::internal
