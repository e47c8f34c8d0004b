#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <treadle/core/sequence_provider.h>

namespace treadle {

/// The rows of the data that are in the targets of some samples.
class TargetRows {
 public:
  struct Touched {
    std::int64_t row = 0;     ///< of the data
    std::int64_t sample = 0;  ///< whose target it is in
  };

  TargetRows(const SampleReader& samples, const std::vector<std::int64_t>& list) {
    for (const std::int64_t sample : list) {
      const RowRange rows = samples.source_rows(sample).targets;
      for (std::int64_t row = rows.begin; row < rows.end; ++row)
        sample_of_.emplace(row, sample);
    }
  }

  /// The first of them that the sample touches with its inputs or its target.
  std::optional<Touched> touched_by(const SampleReader& samples, std::int64_t sample) const {
    const SourceRows rows = samples.source_rows(sample);
    for (const RowRange& range : {rows.inputs, rows.targets}) {
      const auto found = sample_of_.lower_bound(range.begin);
      if (found != sample_of_.end() && found->first < range.end)
        return Touched{found->first, found->second};
    }
    return std::nullopt;
  }

 private:
  std::map<std::int64_t, std::int64_t> sample_of_;  // by row of the data
};

}  // namespace treadle
