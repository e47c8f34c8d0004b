#pragma once

#include <span>
#include <vector>

#include <treadle/core/data/row_reader.h>
#include <treadle/engine/batch_preparation.h>

namespace treadle::engine {

/// Rows as fitted transforms leave them (as in evaluation: augmentation off), images as numbers,
/// tables and targets as float64. The next transform in a chain is fitted on them. Neither rows nor
/// transforms are copied; both must outlive it.
class TransformedRows final : public RowReader {
 public:
  /// `dtype`: the run's, for images.
  TransformedRows(const RowReader& source, std::vector<const Transform*> transforms,
                  c10::ScalarType dtype);
  ~TransformedRows() override;

  const SampleReader* samples() const override { return samples_; }

 private:
  const DataSpec& do_spec() const override { return preparation_.spec(); }
  std::int64_t do_rows() const override { return source_.rows(); }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override;
  at::Tensor do_targets(std::size_t target) const override { return source_.targets(target); }
  at::Tensor do_position_weights(std::size_t target) const override {
    return source_.position_weights(target);
  }
  at::Tensor do_lengths(std::size_t input) const override;
  at::Tensor do_groups() const override { return source_.groups(); }
  at::Tensor do_timestamps() const override { return source_.timestamps(); }
  at::Tensor do_label_ends() const override { return source_.label_ends(); }
  at::Tensor do_known_from() const override { return source_.known_from(); }
  std::string do_describe_row(std::int64_t row) const override { return source_.describe_row(row); }

  const RowReader& source_;
  const SampleReader* const samples_;  // null behind transforms
  BatchPreparation preparation_;
};

}  // namespace treadle::engine
