#include <treadle/core/data/sequence_provider.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_set>
#include <utility>

#include <treadle/base/error.h>
#include <treadle/core/components/plugin_call.h>

#include "data/source_runs.h"

namespace treadle {
namespace {

std::vector<RowRange> runs_of_groups(const RowReader& rows) {
  const at::Tensor groups = rows.groups();
  if (!groups.defined())
    return {{0, rows.rows()}};
  const at::Tensor dense = groups.contiguous();
  const std::int64_t* const group = dense.data_ptr<std::int64_t>();
  std::vector<RowRange> runs;
  std::unordered_set<std::int64_t> seen;
  for (std::int64_t row = 0; row < rows.rows(); ++row) {
    if (row > 0 && group[row] == group[row - 1]) {
      ++runs.back().end;
      continue;
    }
    if (!seen.insert(group[row]).second) {
      throw DataError(rows.describe_row(row) +
                      ": its group began earlier, and rows of another one lie between; sort the "
                      "rows by group, then by time");
    }
    runs.push_back({row, row + 1});
  }
  return runs;
}

}  // namespace

SampleReader::~SampleReader() = default;

SourceRows SampleReader::source_rows(std::int64_t sample) const {
  TREADLE_EXPECTS(sample >= 0 && sample < rows(), "there is no such sample");
  return call_plugin(*this, "source_rows", [&] { return do_source_rows(sample); });
}

std::int64_t SampleReader::steps_ahead(std::size_t input) const {
  TREADLE_EXPECTS(input < spec().inputs.size(), "there is no such input");
  return call_plugin(*this, "steps_ahead", [&] { return do_steps_ahead(input); });
}

const RowReader* SampleReader::steps() const {
  return call_plugin(*this, "steps", [&] { return do_steps(); });
}

const std::vector<SampleRun>& SampleReader::runs() const {
  return call_plugin(*this, "runs", [&]() -> const std::vector<SampleRun>& { return do_runs(); });
}

const std::vector<SampleRun>& SampleReader::do_runs() const {
  static const std::vector<SampleRun> none;
  return none;
}

RowList SampleReader::evaluated(const RowList& samples) const {
  RowList some = call_plugin(*this, "evaluated", [&] { return do_evaluated(samples); });
  if (some == samples)
    return some;
  auto next = samples.begin();
  for (const std::int64_t sample : some) {
    while (next != samples.end() && *next != sample)
      ++next;
    if (next == samples.end())
      refuse_result(*this, "evaluated",
                    "returned samples that it was not given, or in another order");
    ++next;
  }
  if (some.empty() && !samples.empty())
    refuse_result(*this, "evaluated", "left no sample");
  return some;
}

RowList touched_rows(const SampleReader& samples, const RowList& list) {
  std::vector<RowRange> ranges;
  for_each_source_run(samples, list, [&](const SampleRun& run) {
    for (const RowRange& range : {run.rows.inputs, run.rows.targets})
      add_ranges(range, run.count, run.step, ranges);
  });
  RowList::Builder touched;
  for (const RowRange& range : united(std::move(ranges)))
    touched.add(range);
  return touched.done();
}

SequenceProvider::~SequenceProvider() = default;

std::unique_ptr<SampleReader> SequenceProvider::samples(const RowReader& rows) const {
  std::unique_ptr<SampleReader> samples =
      call_plugin(*this, "samples", [&] { return do_samples(rows); });
  if (samples == nullptr)
    refuse_result(*this, "samples", "returned no samples");
  samples->set_origin(origin());
  return samples;
}

std::vector<RowRange> series_of(const RowReader& rows) {
  std::vector<RowRange> series = runs_of_groups(rows);
  const at::Tensor times = rows.timestamps();
  if (!times.defined())
    return series;
  const at::Tensor dense = times.contiguous();
  const double* const time = dense.data_ptr<double>();
  for (const RowRange& one : series) {
    for (std::int64_t row = one.begin + 1; row < one.end; ++row) {
      if (time[row] > time[row - 1])
        continue;
      throw DataError(rows.describe_row(row) + ": its time is " +
                      (time[row] == time[row - 1] ? "that of" : "before that of") +
                      " the row above, and times must rise within a series; sort the rows by time" +
                      (rows.groups().defined() ? " within each group"
                                               : ", or name the column that tells several series "
                                                 "apart as the data's group"));
    }
  }
  return series;
}

}  // namespace treadle
