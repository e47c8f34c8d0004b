#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <treadle/core/matrix_rows.h>
#include <treadle/core/sequence_provider.h>

#include "stretches.h"
#include "windows.h"

namespace treadle::sequences {

/// Windows over rows that lie in memory.
class WindowReader final : public SampleReader {
 public:
  /// The rows, contiguous, one after the other: [N, C], [N, target.shape...], [N].
  struct Rows {
    DataSpec spec;
    at::Tensor inputs;
    std::vector<at::Tensor> targets;  ///< none: samples to predict on
    at::Tensor weights;               ///< undefined: 1 each
    at::Tensor groups;
    at::Tensor timestamps;
    at::Tensor label_ends;
  };

  WindowReader(Rows rows, const WindowShape& shape, std::vector<std::int64_t> starts);
  ~WindowReader() override;

 private:
  const DataSpec& do_spec() const override { return spec_; }
  std::int64_t do_rows() const override { return static_cast<std::int64_t>(starts_.size()); }
  void do_gather(std::span<const std::int64_t> samples, Batch& out) const override;
  at::Tensor do_targets(std::size_t target) const override;
  at::Tensor do_groups() const override { return groups_; }
  at::Tensor do_timestamps() const override { return timestamps_; }
  at::Tensor do_label_ends() const override { return label_ends_; }
  std::string do_describe_row(std::int64_t sample) const override;
  SourceRows do_source_rows(std::int64_t sample) const override;
  const RowReader* do_steps() const override { return &steps_; }
  std::vector<std::int64_t> do_evaluated(std::span<const std::int64_t> samples) const override {
    return apart(samples, starts_, groups_, shape_.evaluation_stride);
  }

  void copy(const at::Tensor& source, std::span<const std::int64_t> samples, std::int64_t offset,
            std::int64_t count, const std::vector<std::int64_t>& shape, at::Tensor& out) const {
    copy_stretches(source, starts_, samples, offset, count, shape, out);
  }

  WindowShape shape_;
  MatrixRows steps_;
  DataSpec spec_;
  std::vector<std::int64_t> starts_;
  at::Tensor inputs_;
  std::vector<at::Tensor> targets_;
  at::Tensor weights_;     // [N]
  at::Tensor groups_;      // of samples
  at::Tensor timestamps_;  // of samples
  at::Tensor label_ends_;  // likewise, of the last row a sample predicts
  // From a sample's first row to the first it predicts: also the row whose weight and time it has.
  // Without targets, to the last it is given.
  std::int64_t to_target_ = 0;
};

}  // namespace treadle::sequences
