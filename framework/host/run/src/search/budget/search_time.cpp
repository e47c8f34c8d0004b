#include "search/budget/search_time.h"

#include <algorithm>

namespace treadle::internal {

SearchTime::Clock::time_point SearchTime::at(double elapsed) const {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(elapsed - this->elapsed()));
}

void SearchTime::note() {
  if (budget_ && elapsed() - noted_ >= std::max(0.25, *budget_ / 200))
    note_now();
}

void SearchTime::note_now() {
  if (!budget_)
    return;
  noted_ = elapsed();
  journal_.searched_for(noted_);
}

}  // namespace treadle::internal
