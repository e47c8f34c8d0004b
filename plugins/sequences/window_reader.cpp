#include "window_reader.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>

#include <treadle/base/error.h>
#include <treadle/base/json_words.h>

#include "stretches.h"

namespace treadle::sequences {
namespace {

/// "41-136", "41".
std::string in_words(const RowRange& rows) {
  const std::string first = std::to_string(rows.begin);
  return rows.size() == 1 ? "row " + first : "rows " + first + "-" + std::to_string(rows.end - 1);
}

StepRange range_of(WindowPart part, const WindowShape& shape) {
  switch (part) {
    case WindowPart::kHorizon:
      return {shape.lookback + shape.gap, shape.horizon};
    case WindowPart::kFirstRow:
      return {0, 1};
    case WindowPart::kLookback:
      break;
  }
  return {0, shape.lookback};
}

DataSpec sample_spec(const StepTable& table, const WindowShape& shape) {
  DataSpec spec = table.spec();
  // With several rows to predict, weights are those of their positions.
  spec.has_weights = shape.horizon == 1 && !spec.targets.empty() &&
                     (table.weights().defined() || table.known_from().defined());
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const WindowPart part = table.ports()[i].part;
    std::vector<std::int64_t>& sizes = spec.inputs[i].shape;
    if (part != WindowPart::kFirstRow)
      sizes.insert(sizes.begin(), range_of(part, shape).count);
  }
  for (TargetSpec& target : spec.targets) {
    if (shape.horizon > 1)
      target.shape.insert(target.shape.begin(), shape.horizon);
  }
  return spec;
}

}  // namespace

WindowReader::WindowReader(std::unique_ptr<const StepTable> table, const WindowShape& shape,
                           SampleStarts starts)
    : table_(std::move(table)),
      shape_(shape),
      spec_(sample_spec(*table_, shape)),
      starts_(std::move(starts)),
      to_target_(has_targets() ? shape.lookback + shape.gap : shape.lookback - 1),
      rows_of_first_{{0, shape.lookback},
                     {shape.lookback + shape.gap, shape.lookback + shape.gap + shape.horizon}} {
  for (const WindowPort& port : table_->ports()) {
    ranges_.push_back(range_of(port.part, shape));
    has_steps_.push_back(port.part != WindowPart::kFirstRow);
  }
  expect_no_missing_values();
  expect_static_columns();
  if (has_targets())
    find_unknown_ends();
  runs_ = starts_.runs(rows_of_first_);
  groups_ = of_samples(table_->groups(), starts_, to_target_);
  timestamps_ = of_samples(table_->timestamps(), starts_, to_target_);
  if (has_targets())
    label_ends_ = of_samples(table_->label_ends(), starts_, to_target_ + shape.horizon - 1);
}

WindowReader::~WindowReader() = default;

/// The rows in `range` of any sample.
RowList WindowReader::rows_of(StepRange range) const {
  RowList::Builder rows;
  for (const SampleRun& run : starts_.runs(rows_of_first_)) {
    const std::int64_t first = run.rows.inputs.begin + range.offset;
    const std::int64_t last = first + (run.count - 1) * run.step;
    if (run.step <= range.count) {
      rows.add(RowRange{first, last + range.count});
      continue;
    }
    for (std::int64_t row = first; row <= last; row += run.step)
      rows.add(RowRange{row, row + range.count});
  }
  return rows.done();
}

/// A value may be missing where no sample reads it: rows to predict have only the columns that are
/// known in advance.
void WindowReader::expect_no_missing_values() {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    std::vector<Column>& columns = spec_.inputs[i].columns;
    const bool may_be_missing = std::any_of(
        columns.begin(), columns.end(), [](const Column& column) { return column.may_be_missing; });
    if (!may_be_missing)
      continue;
    if (const auto missing = table_->first_missing(i, rows_of(ranges_[i]))) {
      throw DataError(table_->describe_row(missing->row) + ": the value of column " +
                      quote_text(columns[missing->column].name) +
                      " is missing, and no transform can fill it in windows; fill it in the data, "
                      "or leave the column out of the inputs");
    }
    for (Column& column : columns)
      column.may_be_missing = false;
  }
}

void WindowReader::expect_static_columns() const {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (table_->ports()[i].part != WindowPart::kFirstRow)
      continue;
    if (const auto change = table_->first_change(i)) {
      throw DataError(table_->describe_row(change->row) + ": column " +
                      quote_text(spec_.inputs[i].columns[change->column].name) +
                      " has another value than in the row above, and it is named in \"static\" of "
                      "the sequence windows; static columns are the same in all rows of a series");
    }
  }
}

void WindowReader::do_gather(std::span<const std::int64_t> samples, Batch& out) const {
  table_->expect_unchanged();
  const std::vector<std::int64_t> firsts = starts_.of(samples);
  table_->copy_inputs(firsts, ranges_, has_steps_, out.inputs);
  out.targets.resize(spec_.targets.size());
  for (std::size_t i = 0; i < out.targets.size(); ++i) {
    copy_stretches(table_->target(i), firsts, to_target_, shape_.horizon, spec_.targets[i].shape,
                   out.targets[i]);
  }
  out.position_weights.clear();
  if (spec_.has_weights) {
    weights_of(0, samples, out.weights);
    return;
  }
  out.weights = at::Tensor();
  if (!weights_.defined())
    return;
  out.position_weights.resize(spec_.targets.size());
  for (std::size_t i = 0; i < out.position_weights.size(); ++i)
    weights_of(i, samples, out.position_weights[i]);
}

void WindowReader::find_unknown_ends() {
  weights_ = table_->weights();
  const at::Tensor known_from = table_->known_from();
  if (!known_from.defined())
    return;
  may_end_ = known_from.le(table_->timestamps()).to(at::kDouble);
  if (!weights_.defined())
    weights_ = at::ones_like(may_end_);
  may_end_ = may_end_.to(weights_.scalar_type());
}

/// Of its position or, with a horizon of 1, of the sample; not at all where its last row is not
/// known in time.
void WindowReader::weights_of(std::size_t target, std::span<const std::int64_t> samples,
                              at::Tensor& out) const {
  const std::vector<std::int64_t> firsts = starts_.of(samples);
  if (spec_.has_weights) {
    copy_stretches(weights_, firsts, to_target_, 1, {}, out);
  } else {
    copy_position_weights(weights_, firsts, to_target_, shape_.horizon,
                          spec_.targets[target].positions(), out);
  }
  if (!may_end_.defined())
    return;
  at::Tensor counts;
  copy_stretches(may_end_, firsts, shape_.lookback - 1, 1, {}, counts);
  while (counts.dim() < out.dim())
    counts = counts.unsqueeze(-1);
  out.mul_(counts);
}

at::Tensor WindowReader::do_position_weights(std::size_t target) const {
  at::Tensor weights;
  if (weights_.defined() && !spec_.has_weights) {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(starts_.size()));
    std::iota(samples.begin(), samples.end(), 0);
    weights_of(target, samples, weights);
  }
  return weights;
}

at::Tensor WindowReader::do_targets(std::size_t target) const {
  return all_stretches(table_->target(target), starts_, to_target_, shape_.horizon,
                       spec_.targets[target].shape);
}

std::string WindowReader::do_describe_row(std::int64_t sample) const {
  const SourceRows rows = do_source_rows(sample);
  return "sample " + std::to_string(sample) + " (" + in_words(rows.inputs) +
         (!has_targets() ? "" : ", target " + in_words(rows.targets)) + ")";
}

}  // namespace treadle::sequences
