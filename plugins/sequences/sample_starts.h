#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <treadle/core/data/row_list.h>
#include <treadle/core/data/sequence_provider.h>

namespace treadle::sequences {

/// The first rows of samples: in each series so many, `stride` rows apart. Kept by the series, not
/// by the sample. Immutable once it is full.
class SampleStarts {
 public:
  explicit SampleStarts(std::int64_t stride) : stride_(stride) {}

  /// The samples of the next series. A series with none is left out.
  void add(std::int64_t first_row, std::int64_t count);

  std::int64_t size() const { return size_; }
  std::int64_t stride() const { return stride_; }
  bool has_one_series() const { return series_.size() == 1; }
  /// Expects 0 <= sample < size().
  std::int64_t operator[](std::int64_t sample) const {
    const Series& series = series_[series_of(sample)];
    return series.row + (sample - series.sample) * stride_;
  }
  /// Which of the series, from 0, a sample is of.
  std::size_t series_of(std::int64_t sample) const;
  /// The first rows of some samples.
  std::vector<std::int64_t> of(std::span<const std::int64_t> samples) const;

  /// For SampleReader::runs(): `rows` are those of a sample that begins with row 0.
  std::vector<SampleRun> runs(const SourceRows& rows) const;

  /// Of samples in any order those whose first rows are `distance` or more apart, the first of each
  /// series among them: what SampleReader::evaluated() of overlapping samples gives.
  RowList apart(const RowList& samples, std::int64_t distance) const;

 private:
  /// The same for samples that are sorted.
  RowList first_apart(const RowList& samples, std::int64_t distance) const;

  struct Series {
    std::int64_t row;
    std::int64_t sample;
  };

  std::int64_t stride_;
  std::int64_t size_ = 0;
  std::vector<Series> series_;
};

/// The samples of `span` rows in the rows [series.begin, series.end). With `from_begin` the first
/// one begins with them; else the last one ends with them.
void add_starts(const RowRange& series, std::int64_t span, bool from_begin, SampleStarts& starts);

}  // namespace treadle::sequences
