#pragma once

#include <span>

#include <treadle/core/training/parameter_view.h>

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

/// As above, for rules whose numbers depend on how often a segment was updated: calls
/// `update(range, count)` for those that were updated equally often.
template <typename T, typename Update>
void for_each_run_of_one_count(std::span<const Segment> segments, std::span<const double> counts,
                               Update&& update) {
  Range run;
  double count = 0;
  const double* next_count = counts.data();
  for (const Segment& segment : segments) {
    const double its_count = *next_count++;
    if (!segment.active())
      continue;
    const Range range = range_of<T>(segment);
    if (range.begin != run.end || its_count != count) {
      if (run.begin != run.end)
        update(run, count);
      run = range;
      count = its_count;
    }
    run.end = range.end;
  }
  if (run.begin != run.end)
    update(run, count);
}

}  // namespace treadle::optimizers
