#pragma once

#include <chrono>
#include <optional>

#include "search/journal/study_journal.h"

namespace treadle::internal {

/// The wall time of a search, in all of its processes, and how much of its budget is left. Seconds.
class SearchTime {
 public:
  using Clock = std::chrono::steady_clock;

  /// From now on, behind what the journal has. Borrows it. `budget`: nothing: without limit.
  SearchTime(StudyJournal& journal, std::optional<double> budget)
      : journal_(journal), budget_(budget) {}

  double elapsed() const {
    return journal_.elapsed() + std::chrono::duration<double>(Clock::now() - begun_).count();
  }
  std::optional<double> left() const {
    return budget_ ? std::optional(*budget_ - elapsed()) : std::nullopt;
  }
  /// When the search will have taken so long.
  Clock::time_point at(double elapsed) const;
  /// Writes the time of a search with a budget to its journal. To be called often: a kill loses no
  /// more than a two-hundredth of the budget.
  void note();
  /// The same, whenever that was done last.
  void note_now();

 private:
  StudyJournal& journal_;
  const std::optional<double> budget_;
  const Clock::time_point begun_ = Clock::now();
  double noted_ = 0;
};

}  // namespace treadle::internal
