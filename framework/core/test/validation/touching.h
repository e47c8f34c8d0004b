#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>

#include <treadle/core/data/matrix_rows.h>
#include <treadle/core/data/sequence_provider.h>

/// Samples for tests of what is computed from the rows they touch.
namespace treadle {

inline MatrixRows::Matrices table(std::int64_t rows, bool has_dates = false) {
  MatrixRows::Matrices matrices;
  matrices.spec.inputs = {{"features", {1}, {{"x", {}, false}}}};
  matrices.spec.targets = {number_target("price")};
  matrices.spec.has_dates = has_dates;
  matrices.inputs = {at::arange(rows, at::kFloat).unsqueeze(1)};
  matrices.targets = matrices.inputs;
  if (has_dates)
    matrices.timestamps = at::arange(rows, at::kDouble).mul(3600).add(1467331200);
  return matrices;
}

/// Samples with source rows that a test gives, one by one or as runs.
class Touching final : public SampleReader {
 public:
  explicit Touching(std::vector<SourceRows> touched, std::vector<SampleRun> runs = {})
      : touched_(std::move(touched)),
        runs_(std::move(runs)),
        rows_(table(static_cast<std::int64_t>(touched_.size()))) {}

 private:
  const std::vector<SampleRun>& do_runs() const override { return runs_; }
  SourceRows do_source_rows(std::int64_t sample) const override {
    return touched_[static_cast<std::size_t>(sample)];
  }
  const DataSpec& do_spec() const override { return rows_.spec(); }
  std::int64_t do_rows() const override { return rows_.rows(); }
  void do_gather(std::span<const std::int64_t> rows, Batch& out) const override {
    rows_.gather(rows, out);
  }
  at::Tensor do_targets(std::size_t target) const override { return rows_.targets(target); }
  std::string do_describe_row(std::int64_t sample) const override {
    return "sample " + std::to_string(sample);
  }

  const std::vector<SourceRows> touched_;
  const std::vector<SampleRun> runs_;
  const MatrixRows rows_;
};

}  // namespace treadle
