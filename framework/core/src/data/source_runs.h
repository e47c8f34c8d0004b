#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include <treadle/core/data/sequence_provider.h>

// The rows of the data that many rows or samples touch, without asking for each.
namespace treadle {

/// Calls `use(SampleRun)` with the given samples in their order, run by run; with those that
/// SampleReader::runs() does not know one by one.
template <typename Use>
void for_each_source_run(const SampleReader& samples, RowRange range, Use&& use) {
  const std::vector<SampleRun>& runs = samples.runs();
  if (runs.empty()) {
    for (std::int64_t sample = range.begin; sample < range.end; ++sample)
      use(SampleRun{sample, 1, samples.source_rows(sample), 1});
    return;
  }
  auto run = std::prev(std::upper_bound(
      runs.begin(), runs.end(), range.begin,
      [](std::int64_t sample, const SampleRun& one) { return sample < one.first; }));
  for (; range.begin < range.end; ++run) {
    const std::int64_t end = std::min(range.end, run->first + run->count);
    use(SampleRun{range.begin, end - range.begin,
                  run->rows.after((range.begin - run->first) * run->step), run->step});
    range.begin = end;
  }
}

template <typename Use>
void for_each_source_run(const SampleReader& samples, const RowList& list, Use&& use) {
  list.for_each_range([&](const RowRange& range) { for_each_source_run(samples, range, use); });
}

/// Adds `count` ranges, each `step` after the one before it, as few as possible.
inline void add_ranges(const RowRange& first, std::int64_t count, std::int64_t step,
                       std::vector<RowRange>& ranges) {
  if (first.size() <= 0)
    return;
  // Where they touch, they are one.
  const bool is_one = count == 1 || first.size() >= step;
  const std::int64_t length = first.size() + (is_one ? (count - 1) * step : 0);
  for (std::int64_t i = 0; i < (is_one ? 1 : count); ++i) {
    const std::int64_t begin = first.begin + i * step;
    const RowRange range{begin, begin + length};
    if (!ranges.empty() && ranges.back().begin <= begin && begin <= ranges.back().end) {
      ranges.back().end = std::max(ranges.back().end, range.end);
    } else {
      ranges.push_back(range);
    }
  }
}

/// The same rows in ascending order, each once, in as few ranges as possible.
inline std::vector<RowRange> united(std::vector<RowRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const RowRange& a, const RowRange& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const RowRange& range : ranges) {
    if (kept > 0 && range.begin <= ranges[kept - 1].end) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
  return ranges;
}

}  // namespace treadle
