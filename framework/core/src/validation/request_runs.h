#pragma once

#include <cstddef>
#include <cstdint>

#include <treadle/core/validation/cross_validator.h>

#include "data/source_runs.h"

namespace treadle {

/// As for_each_source_run() of samples, for rows of a request: SampleRun::first is a row of it.
template <typename Use>
void for_each_source_run(const SplitRequest& request, const RowList& rows, Use&& use) {
  rows.for_each_range([&](const RowRange& range) {
    std::int64_t row = range.begin;
    const auto use_numbers = [&](const RowRange& numbers) {
      if (request.samples == nullptr) {
        const RowRange first{numbers.begin, numbers.begin + 1};
        use(SampleRun{row, numbers.size(), {first, first}, 1});
        row += numbers.size();
        return;
      }
      for_each_source_run(*request.samples, numbers, [&](SampleRun run) {
        run.first = row;
        row += run.count;
        use(run);
      });
    };
    if (request.numbers.empty()) {
      use_numbers(range);
    } else {
      request.numbers.for_each_range_in(static_cast<std::size_t>(range.begin),
                                        static_cast<std::size_t>(range.end), use_numbers);
    }
  });
}

}  // namespace treadle
