#pragma once

#include <span>

#include <treadle/core/parameter_arena.h>

#include "flat_rules.h"

namespace treadle::optimizers {

/// Elements [begin, end) of a segment and of the padding after it.
template <typename T>
Range range_of(const Segment& segment) {
  const std::int64_t size = (segment.size + kLine<T> - 1) / kLine<T> * kLine<T>;
  return {segment.offset, segment.offset + size};
}

/// Calls `update(range)` for what may be updated in one go: active segments that follow each other.
/// Of a small model that is everything at once, where a call per layer would take as long as the
/// work.
template <typename T, typename Update>
void for_each_run(std::span<const Segment> segments, Update&& update) {
  Range run;
  for (const Segment& segment : segments) {
    if (!segment.active())
      continue;
    const Range range = range_of<T>(segment);
    if (range.begin != run.end) {
      if (run.begin != run.end)
        update(run);
      run = range;
    }
    run.end = range.end;
  }
  if (run.begin != run.end)
    update(run);
}

/// As above, for rules whose numbers depend on how often a segment was updated. Counts this update
/// in `ages`, a slot with a number per segment, and calls `update(range, age)` for those of one
/// age.
template <typename T, typename Update>
void for_each_run_of_one_age(std::span<const Segment> segments, double* ages, Update&& update) {
  Range run;
  double age = 0;
  for (const Segment& segment : segments) {
    double& its_age = *ages++;
    if (!segment.active())
      continue;
    its_age += 1;
    const Range range = range_of<T>(segment);
    if (range.begin != run.end || its_age != age) {
      if (run.begin != run.end)
        update(run, age);
      run = range;
      age = its_age;
    }
    run.end = range.end;
  }
  if (run.begin != run.end)
    update(run, age);
}

}  // namespace treadle::optimizers
