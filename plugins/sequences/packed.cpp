#include "packed.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>
#include <treadle/core/data/matrix_rows.h>

#include "sample_starts.h"
#include "stretches.h"

namespace treadle::sequences {
namespace {

constexpr const char* kSegments = "segments";

std::vector<std::int64_t> with_steps(std::int64_t length, std::vector<std::int64_t> shape) {
  shape.insert(shape.begin(), length);
  return shape;
}

/// Throws DataError for rows that samples cannot be packed of.
void check(const DataSpec& spec) {
  const auto expect_fixed = [](const std::string& what, const std::vector<std::int64_t>& shape) {
    if (std::find(shape.begin(), shape.end(), kVaries) != shape.end()) {
      throw DataError("the sequence packed takes rows of one shape, and that of " + what +
                      " varies; of texts, give each token a row: \"rows\": \"tokens\"");
    }
  };
  for (const PortSpec& port : spec.inputs) {
    expect_fixed("input " + quote_text(port.name), port.shape);
    if (port.name == kSegments || port.is_auxiliary()) {
      throw DataError("the sequence packed takes inputs of their own, and " +
                      quote_text(port.name) +
                      (port.is_auxiliary() ? " describes " + quote_text(port.of)
                                           : std::string(" has the name of what it adds")));
    }
    for (const Column& column : port.columns) {
      if (column.may_be_missing) {
        throw DataError("the sequence packed: values of column " + quote_text(column.name) +
                        " are missing, and no transform can fill them in samples; fill them in the "
                        "data, or leave the column out");
      }
    }
  }
  for (const TargetSpec& target : spec.targets)
    expect_fixed("target " + quote_text(target.name), target.shape);
}

/// Which document each row belongs to, counted from 0: int64 [N].
at::Tensor documents_of(const std::vector<RowRange>& series, std::int64_t rows) {
  at::Tensor documents = at::empty({rows}, at::kLong);
  auto* const document = documents.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < series.size(); ++i)
    std::fill(document + series[i].begin, document + series[i].end, static_cast<std::int64_t>(i));
  return documents;
}

class PackedReader final : public SampleReader {
 public:
  PackedReader(const RowReader& rows, std::int64_t length, std::int64_t evaluation_stride,
               SampleStarts starts, const std::vector<RowRange>& series)
      : length_(length),
        evaluation_stride_(evaluation_stride),
        starts_(std::move(starts)),
        has_documents_(rows.groups().defined()) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(rows.rows()));
    std::iota(all.begin(), all.end(), 0);
    Batch batch;
    rows.gather(all, batch);
    for (const at::Tensor& weights : batch.position_weights) {
      if (weights.defined())
        throw DataError(
            "the sequence packed takes weights of rows, and these are of positions; leave them out "
            "of the data");
    }
    spec_ = rows.spec();
    for (PortSpec& port : spec_.inputs) {
      port.shape = with_steps(length_, std::move(port.shape));
      port.columns.clear();
    }
    for (TargetSpec& target : spec_.targets)
      target.shape = with_steps(length_, std::move(target.shape));
    spec_.has_weights = false;
    MatrixRows::Matrices steps;
    steps.spec = rows.spec();
    steps.spec.has_weights = false;
    for (PortSpec& port : steps.spec.inputs)
      port.columns.clear();
    for (const at::Tensor& input : batch.inputs)
      steps.inputs.push_back(input.contiguous());
    for (const at::Tensor& target : batch.targets)
      steps.targets.push_back(target.contiguous());
    if (batch.weights.defined())
      weights_ = batch.weights.contiguous();
    steps_.emplace(std::move(steps));
    if (has_documents_) {
      documents_ = documents_of(series, rows.rows());
      PortSpec segments{kSegments, {length_}, {}, Role::kSegments, at::kLong};
      segments.of = spec_.inputs.front().name;
      spec_.inputs.push_back(std::move(segments));
    } else {
      timestamps_ = of_samples(rows.timestamps(), starts_, 0);
      label_ends_ = of_samples(rows.label_ends(), starts_, length_ - 1);
    }
    const RowRange of_first{0, length_};
    runs_ = starts_.runs({of_first, of_first});
  }

 private:
  const DataSpec& do_spec() const override { return spec_; }
  std::int64_t do_rows() const override { return starts_.size(); }

  void copy(const at::Tensor& source, std::span<const std::int64_t> samples,
            const std::vector<std::int64_t>& shape, at::Tensor& out) const {
    copy_stretches(source, starts_.of(samples), 0, length_, shape, out);
  }

  void do_gather(std::span<const std::int64_t> samples, Batch& out) const override {
    const MatrixRows::Matrices& rows = steps_->matrices();
    out.inputs.resize(spec_.inputs.size());
    for (std::size_t i = 0; i < rows.inputs.size(); ++i)
      copy(rows.inputs[i], samples, spec_.inputs[i].shape, out.inputs[i]);
    if (has_documents_) {
      at::Tensor& segments = out.inputs.back();
      copy(documents_, samples, {length_}, segments);
      auto* segment = segments.data_ptr<std::int64_t>();
      for (std::size_t i = 0; i < samples.size(); ++i, segment += length_) {
        const std::int64_t first = segment[0];
        std::transform(segment, segment + length_, segment,
                       [first](std::int64_t document) { return document - first; });
      }
    }
    out.targets.resize(rows.targets.size());
    for (std::size_t i = 0; i < rows.targets.size(); ++i)
      copy(rows.targets[i], samples, spec_.targets[i].shape, out.targets[i]);
    out.weights = at::Tensor();
    out.position_weights.resize(weights_.defined() ? rows.targets.size() : 0);
    for (std::size_t i = 0; i < out.position_weights.size(); ++i)
      weights_of(i, samples, out.position_weights[i]);
  }

  void weights_of(std::size_t target, std::span<const std::int64_t> samples,
                  at::Tensor& out) const {
    copy_position_weights(weights_, starts_.of(samples), 0, length_,
                          spec_.targets[target].positions(), out);
  }

  std::vector<std::int64_t> all() const {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(starts_.size()));
    std::iota(samples.begin(), samples.end(), 0);
    return samples;
  }
  at::Tensor do_targets(std::size_t target) const override {
    return all_stretches(steps_->matrices().targets[target], starts_, 0, length_,
                         spec_.targets[target].shape);
  }
  at::Tensor do_position_weights(std::size_t target) const override {
    at::Tensor weights;
    if (weights_.defined())
      weights_of(target, all(), weights);
    return weights;
  }
  at::Tensor do_timestamps() const override { return timestamps_; }
  at::Tensor do_label_ends() const override { return label_ends_; }

  SourceRows do_source_rows(std::int64_t sample) const override {
    const RowRange rows{starts_[sample], starts_[sample] + length_};
    return {rows, rows};
  }
  const std::vector<SampleRun>& do_runs() const override { return runs_; }
  std::string do_describe_row(std::int64_t sample) const override {
    const RowRange rows = do_source_rows(sample).inputs;
    return "sample " + std::to_string(sample) + " (rows " + std::to_string(rows.begin) + "-" +
           std::to_string(rows.end - 1) + ")";
  }
  const RowReader* do_steps() const override { return has_documents_ ? nullptr : &*steps_; }
  RowList do_evaluated(const RowList& samples) const override {
    return starts_.apart(samples, evaluation_stride_);
  }

  const std::int64_t length_;
  const std::int64_t evaluation_stride_;
  const SampleStarts starts_;
  std::vector<SampleRun> runs_;
  const bool has_documents_;
  DataSpec spec_;
  std::optional<MatrixRows> steps_;
  at::Tensor weights_;    // [N]
  at::Tensor documents_;  // int64 [N]
  at::Tensor timestamps_;
  at::Tensor label_ends_;
};

}  // namespace

Packed::Packed(const Config& config)
    : length_(config.get<std::int64_t>("length")),
      stride_(config.get_or<std::int64_t>("stride", length_)),
      evaluation_stride_(config.get_or<std::int64_t>("evaluation_stride", length_)) {}

Packed::~Packed() = default;

std::unique_ptr<SampleReader> Packed::do_samples(const RowReader& rows) const {
  check(rows.spec());
  const std::vector<RowRange> series = series_of(rows);
  if (rows.rows() < length_) {
    throw DataError("there are " + std::to_string(rows.rows()) +
                    " rows, and a sample of the sequence "
                    "packed has " +
                    std::to_string(length_) + "; set a smaller \"length\"");
  }
  SampleStarts starts(stride_);
  add_starts({0, rows.rows()}, length_, !rows.spec().targets.empty(), starts);
  return std::make_unique<PackedReader>(rows, length_, evaluation_stride_, std::move(starts),
                                        series);
}

}  // namespace treadle::sequences
