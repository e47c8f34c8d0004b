#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <treadle/core/data/sequence_provider.h>

#include "sample_starts.h"
#include "step_table.h"
#include "windows.h"

namespace treadle::sequences {

/// Windows over a table: each sample is copied from its rows when it is gathered.
class WindowReader final : public SampleReader {
 public:
  /// Throws DataError where a sample would have a missing value, or a static column changes.
  WindowReader(std::unique_ptr<const StepTable> table, const WindowShape& shape,
               SampleStarts starts);
  ~WindowReader() override;

 private:
  const DataSpec& do_spec() const override { return spec_; }
  std::int64_t do_rows() const override { return starts_.size(); }
  void do_gather(std::span<const std::int64_t> samples, Batch& out) const override;
  at::Tensor do_targets(std::size_t target) const override;
  at::Tensor do_groups() const override { return groups_; }
  at::Tensor do_timestamps() const override { return timestamps_; }
  at::Tensor do_label_ends() const override { return label_ends_; }
  at::Tensor do_position_weights(std::size_t target) const override;
  std::string do_describe_row(std::int64_t sample) const override;
  SourceRows do_source_rows(std::int64_t sample) const override {
    return rows_of_first_.after(starts_[sample]);
  }
  const std::vector<SampleRun>& do_runs() const override { return runs_; }
  std::int64_t do_steps_ahead(std::size_t input) const override {
    return table_->ports()[input].part == WindowPart::kHorizon ? shape_.gap + shape_.horizon : 0;
  }
  const RowReader* do_steps() const override { return table_.get(); }
  RowList do_evaluated(const RowList& samples) const override {
    return starts_.apart(samples, shape_.evaluation_stride);
  }

  bool has_targets() const { return !spec_.targets.empty(); }
  /// Of samples that end with a value which is known later: nobody can predict from it.
  void find_unknown_ends();
  void weights_of(std::size_t target, std::span<const std::int64_t> samples, at::Tensor& out) const;
  void expect_no_missing_values();
  void expect_static_columns() const;
  RowList rows_of(StepRange range) const;

  std::unique_ptr<const StepTable> table_;
  WindowShape shape_;
  std::vector<StepRange> ranges_;  // of each input
  std::vector<bool> has_steps_;    // likewise
  DataSpec spec_;
  SampleStarts starts_;
  at::Tensor weights_;  // of rows, undefined: 1 each
  // Of rows, 0 or 1: whether a sample may end with it. Undefined: each may.
  at::Tensor may_end_;
  // From a sample's first row to the first it predicts: also the row whose time it has.
  // Without targets, to the last it is given.
  std::int64_t to_target_ = 0;
  SourceRows rows_of_first_;  // of a sample that begins with row 0
  std::vector<SampleRun> runs_;
  at::Tensor groups_;      // of samples
  at::Tensor timestamps_;  // of samples
  at::Tensor label_ends_;  // likewise, of the last row a sample predicts
};

}  // namespace treadle::sequences
