#include "session/fit_memory.h"

#include <algorithm>
#include <utility>

#include "load/mebibytes.h"

namespace treadle::internal {

FitMemory::FitMemory(MemoryGauge gauge, Note note)
    : gauge_(std::move(gauge)), note_(std::move(note)) {}

void FitMemory::begin() {
  const std::lock_guard lock(mutex_);
  before_ = gauge_.in_use();
}

void FitMemory::settle() {
  const std::lock_guard lock(mutex_);
  taken_ = std::max(taken_, gauge_.peak() - before_);
}

bool FitMemory::fits() {
  const std::lock_guard lock(mutex_);
  const std::int64_t needed = taken_ + taken_ / 2;
  const std::optional<std::int64_t> available = gauge_.available();
  if (!available || needed <= *available)
    return true;
  if (!noted_) {
    note_("fewer trainings at once than there are workers: one more needs about " +
          mebibytes(needed) + " of " + gauge_.name + ", and " + mebibytes(*available) +
          " are left");
  }
  noted_ = true;
  return false;
}

}  // namespace treadle::internal
