#include "fit/fit_memory.h"

#include <algorithm>
#include <utility>

#include "resources/mebibytes.h"

namespace treadle::internal {

FitMemory::FitMemory(MemoryGauge gauge, Note note)
    : gauge_(std::move(gauge)), note_(std::move(note)) {}

void FitMemory::settle(std::int64_t before) {
  const std::lock_guard lock(mutex_);
  taken_ = std::max(taken_.value_or(0), gauge_.peak() - before);
  const std::optional<std::int64_t> available = gauge_.available();
  if (available && *available < 0 && !noted_excess_) {
    note_("a training took " + mebibytes(*taken_) + " of " + gauge_.name + ", " +
          mebibytes(-*available) + " more than it may; nothing stops it");
    noted_excess_ = true;
  }
}

bool FitMemory::is_plenty() const {
  const std::lock_guard lock(mutex_);
  const std::optional<std::int64_t> available = gauge_.available();
  return taken_ && available && std::max(*taken_, gauge_.in_use()) <= *available / kPlenty;
}

bool FitMemory::fits() {
  const std::lock_guard lock(mutex_);
  const std::int64_t taken = taken_.value_or(0);
  const std::int64_t needed = taken + taken / 2;
  const std::optional<std::int64_t> available = gauge_.available();
  if (!available || needed <= *available)
    return true;
  if (!noted_) {
    note_("fewer trainings at once than there are workers: one more needs about " +
          mebibytes(needed) + " of " + gauge_.name + ", and " +
          mebibytes(std::max<std::int64_t>(*available, 0)) + " are left");
  }
  noted_ = true;
  return false;
}

}  // namespace treadle::internal
