#include "sample_starts.h"

#include <algorithm>
#include <iterator>

namespace treadle::sequences {

void SampleStarts::add(std::int64_t first_row, std::int64_t count) {
  if (count <= 0)
    return;
  series_.push_back({first_row, size_});
  size_ += count;
}

std::size_t SampleStarts::series_of(std::int64_t sample) const {
  if (series_.size() == 1)
    return 0;
  const auto after =
      std::upper_bound(series_.begin(), series_.end(), sample,
                       [](std::int64_t one, const Series& series) { return one < series.sample; });
  return static_cast<std::size_t>(after - series_.begin()) - 1;
}

std::vector<std::int64_t> SampleStarts::of(std::span<const std::int64_t> samples) const {
  std::vector<std::int64_t> rows(samples.size());
  std::transform(samples.begin(), samples.end(), rows.begin(),
                 [&](std::int64_t sample) { return (*this)[sample]; });
  return rows;
}

std::vector<SampleRun> SampleStarts::runs(const SourceRows& rows) const {
  std::vector<SampleRun> runs;
  for (std::size_t i = 0; i < series_.size(); ++i) {
    const std::int64_t end = i + 1 < series_.size() ? series_[i + 1].sample : size_;
    runs.push_back(
        {series_[i].sample, end - series_[i].sample, rows.after(series_[i].row), stride_});
  }
  return runs;
}

RowList SampleStarts::apart(const RowList& samples, std::int64_t distance) const {
  if (distance <= stride_)
    return samples;
  if (samples.is_ascending())
    return first_apart(samples, distance);
  std::vector<std::int64_t> sorted = samples.numbers();
  std::sort(sorted.begin(), sorted.end());
  const std::vector<std::int64_t> kept = first_apart(std::move(sorted), distance).numbers();
  RowList::Builder in_their_order;
  for (const std::int64_t sample : samples) {
    if (std::binary_search(kept.begin(), kept.end(), sample))
      in_their_order.add(sample);
  }
  return in_their_order.done();
}

RowList SampleStarts::first_apart(const RowList& samples, std::int64_t distance) const {
  RowList::Builder kept;
  std::size_t series = series_.size();  // of the last one that is kept
  std::int64_t row = 0;
  for (const std::int64_t sample : samples) {
    const std::size_t own_series = series_of(sample);
    const std::int64_t own_row = (*this)[sample];
    if (own_series == series && own_row - row < distance)
      continue;
    kept.add(sample);
    series = own_series;
    row = own_row;
  }
  return kept.done();
}

void add_starts(const RowRange& series, std::int64_t span, bool from_begin, SampleStarts& starts) {
  const std::int64_t room = series.size() - span;
  if (room < 0)
    return;
  starts.add(series.begin + (from_begin ? 0 : room % starts.stride()), room / starts.stride() + 1);
}

}  // namespace treadle::sequences
