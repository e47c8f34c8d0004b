#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <treadle/base/component.h>
#include <treadle/core/data/row_list.h>
#include <treadle/core/data/row_reader.h>

namespace treadle {

/// The source rows of one sample.
struct SourceRows {
  RowRange inputs;  ///< what the model is given
  /// What it is to predict; of rows without targets, which may follow the last row, what is
  /// predicted.
  RowRange targets;

  /// The same so many rows further on.
  SourceRows after(std::int64_t rows) const {
    return {{inputs.begin + rows, inputs.end + rows}, {targets.begin + rows, targets.end + rows}};
  }
};

/// Samples one after the other, each made of the rows `step` after those of the one before it.
struct SampleRun {
  std::int64_t first = 0;  ///< sample
  std::int64_t count = 0;
  SourceRows rows;  ///< of the first
  std::int64_t step = 1;
};

/// Samples made of rows: windows of a series, packed texts. A RowReader whose rows are the samples,
/// so validation, samplers, transforms and models work on them as on any data.
///
/// All functions are const and thread-safe.
class SampleReader : public RowReader {
 public:
  ~SampleReader() override;

  /// The rows that the sample touches: how a split proves that nothing of its validation samples is
  /// in its training samples. Expects 0 <= sample < rows().
  SourceRows source_rows(std::int64_t sample) const;

  /// What source_rows() gives for all samples, in as few runs as there are, such as one for each
  /// series: plans of many samples are made and proved by it. In order, from sample 0 to the last.
  /// Empty where samples follow no such rule; they are asked for one by one then.
  const std::vector<SampleRun>& runs() const;

  /// How many steps the last row that an input has lies behind the last one whose targets are known
  /// when the sample is predicted: 0 for what ends there, such as a lookback; gap and horizon for
  /// the rows of a horizon; 1 for the rows whose targets are predicted, step by step, which is the
  /// default.
  std::int64_t steps_ahead(std::size_t input) const;

  /// The rows of the data as samples have them, one step each: what statistics are computed on, so
  /// that a row counts once, however many samples it is in. Its ports and targets are those of the
  /// samples without the dimension of the steps. Null where samples are not made of steps.
  const RowReader* steps() const;

  /// Of some samples those to evaluate a model on, in the same order: where samples overlap, each
  /// row of the data is worth judging only so often. The splits of a run are thinned by it, in
  /// their validation and test parts. At least one of a list that is not empty.
  RowList evaluated(const RowList& samples) const;

  const SampleReader* samples() const final { return this; }

 private:
  virtual SourceRows do_source_rows(std::int64_t sample) const = 0;
  virtual const std::vector<SampleRun>& do_runs() const;
  virtual std::int64_t do_steps_ahead(std::size_t input) const {
    static_cast<void>(input);
    return 1;
  }
  virtual const RowReader* do_steps() const { return nullptr; }
  // The default: all.
  virtual RowList do_evaluated(const RowList& samples) const { return samples; }
};

/// Makes samples of rows: windows, lags, joins. The document's `sequence`, between the data and the
/// validation.
///
/// Stateless: which samples there are is a function of the configuration and the rows, so a model
/// that was trained on windows is evaluated and predicts on windows.
class SequenceProvider : public Component {
 public:
  static constexpr std::string_view kInterface = "treadle.sequence/0";

  ~SequenceProvider() override;

  /// The samples of `rows`, which must outlive them; rows without targets give samples to predict
  /// on. Rows are in the order of time, those of a group (a series) next to one another. Throws
  /// DataError when they are not, or when there are too few for one sample.
  std::unique_ptr<SampleReader> samples(const RowReader& rows) const;

 private:
  virtual std::unique_ptr<SampleReader> do_samples(const RowReader& rows) const = 0;
};

/// The rows of the data that any of the samples touches, ascending.
RowList touched_rows(const SampleReader& samples, const RowList& list);

/// The series that rows consist of, one after the other: each run of rows of one group; without
/// groups all rows. Throws a DataError that names the row where a series goes on after another, or
/// where time does not rise within a series.
std::vector<RowRange> series_of(const RowReader& rows);

}  // namespace treadle
